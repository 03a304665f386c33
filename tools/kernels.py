"""Compiles the kernels into the user's cache folder for `make setup`, so that the first command does not wait for them.

Two processes share the work; where the kernels are on disk already it takes a second."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

_RECORDED = Path(__file__).parents[1] / "tests" / "captures" / "clients"
CAPTURE, REQUEST_LOG = _RECORDED / "capture.pcap.xz", _RECORDED / "request-1.log.xz"
FRAMES, _PACKETS = "frames", "packets"


def main() -> int:
    print("compiling the kernels, once: half a minute or so", flush=True)
    start = perf_counter()
    halves = [subprocess.Popen([sys.executable, "-m", "tools.kernels", half]) for half in (FRAMES, _PACKETS)]
    codes = [half.wait() for half in halves]
    if not any(codes):
        print(f"kernels ready in {perf_counter() - start:.0f} s")
    return max(map(abs, codes))


def _compile_half(half: str) -> None:
    if half == FRAMES:
        from kafkascope.columnar import batch_headers
        from kafkascope.columnar.kernel.entry import warm_up
        from kafkascope.columnar.uuid_text import uuid_text

        # In the order in which the other half needs them: framing, then what a request log takes, which has no packets.
        _split()
        read(REQUEST_LOG)
        warm_up()
        batch_headers.warm_up()
        uuid_text(np.zeros(16, np.uint8), 1)
        return
    from kafkascope.capture.exchanges.exchange_columns import to_arrow
    from kafkascope.capture.files.writer import PcapngWriter
    from kafkascope.capture.reader import Reading

    read(CAPTURE)
    with TemporaryDirectory() as folder:
        path = Path(folder, "empty.pcapng")
        with path.open("wb") as file:
            PcapngWriter(file).write(0, bytes(60))
        for batch in Reading(path).batches():
            to_arrow(batch)


def _split() -> None:
    """A connection's start, without a byte."""
    from kafkascope.capture.base.flow import Connection, Endpoints, PieceKind, Pieces
    from kafkascope.capture.frames.framing import Framer

    offset, start, length, time_ns, packet = (np.zeros(1, np.int64) for _ in range(5))
    kind, stream = np.full(1, PieceKind.OPEN, np.uint8), np.zeros(1, np.int32)
    ends = Endpoints(bytes(16), 0, bytes(16), 1)
    connection = Connection(0, 0, ends, 0, 0, (0, 0), opened=True)
    pieces = Pieces(np.zeros(1, np.uint8), kind, stream, offset, start, length, time_ns, packet)
    Framer([connection]).feed(pieces)


def read(recording: Path) -> None:
    from kafkascope.capture.exchanges.body_places import places_of
    from kafkascope.capture.exchanges.exchange_columns import to_arrow
    from kafkascope.capture.exchanges.waiting_bodies import copied
    from kafkascope.capture.query.stats import Stats
    from kafkascope.capture.reader import Reading

    stats = Stats()
    for batch in Reading(recording).batches():
        columns = to_arrow(batch)
        copied(columns, places_of(batch))
        stats.add(columns)
    assert stats.apis.summaries()


if __name__ == "__main__":
    if sys.argv[1:]:
        _compile_half(sys.argv[1])
    else:
        sys.exit(main())
