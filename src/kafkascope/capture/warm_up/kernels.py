"""Loads kernels into this process; those that have no file yet are compiled."""

import io
import sys

import numpy as np

from kafkascope.capture.base.flow import Connection, Endpoints, PieceKind, Pieces
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.messages import Messages
from kafkascope.capture.frames.framing import Framer
from kafkascope.capture.query.stats import Stats
from kafkascope.capture.reader import Reading, read
from kafkascope.capture.warm_up.recordings import recordings
from kafkascope.columnar import batch_headers
from kafkascope.columnar.compiling.interrupt import INTERRUPTED, OWN_PROCESS
from kafkascope.columnar.kernel.entry import kernel
from kafkascope.columnar.log.framing import framing_kernel
from kafkascope.columnar.log.lines import lines_kernel
from kafkascope.columnar.uuid_text import uuid_text

# The halves of the work, for a process each.
PACKETS, FRAMES = "packets", "frames"


def load_readers() -> None:
    """Those that list the exchanges of a recording."""
    for content in recordings():
        for _ in read(_file(content)):
            pass


def load_all(half: str = PACKETS) -> None:
    """Every kernel. `half` is what comes first: two processes that begin with different halves rarely wait for each
    other."""
    if half == FRAMES:
        _split()
        kernel()
        batch_headers.warm_up()
        uuid_text(np.zeros(16, np.uint8), 1)
    load_readers()
    for content in recordings():
        stats, messages = Stats(), Messages()
        for batch in Reading(_file(content)).batches():
            stats.add(to_arrow(batch))
            list(messages.add(batch))
        list(messages.finish())
        stats.apis.summaries()
    batch_headers.warm_up()
    lines_kernel()
    framing_kernel()
    uuid_text(np.zeros(16, np.uint8), 1)


def _file(content: bytes) -> io.BytesIO:
    file = io.BytesIO(content)
    file.name = "a recording of the warm-up"
    return file


def _split() -> None:
    """A connection's start, without a byte: splitting frames is the longest to compile."""
    offset, start, length, time_ns, packet = (np.zeros(1, np.int64) for _ in range(5))
    kind, stream = np.full(1, PieceKind.OPEN, np.uint8), np.zeros(1, np.int32)
    ends = Endpoints(bytes(16), 0, bytes(16), 1)
    connection = Connection(0, 0, ends, 0, 0, (0, 0), opened=True)
    pieces = Pieces(np.zeros(1, np.uint8), kind, stream, offset, start, length, time_ns, packet)
    Framer([connection]).feed(pieces)


if __name__ == "__main__":
    # Ctrl-C ends it at once, without a traceback.
    setattr(sys, OWN_PROCESS, True)
    try:
        load_all(sys.argv[1])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
