"""Compiles the kernels into the user's cache folder for `make setup`, so that the first command does not wait for
them. Two processes share the work; where they are on disk already it takes a second."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

_RECORDED = Path(__file__).parents[1] / "tests" / "captures" / "clients"
CAPTURE, REQUEST_LOG = _RECORDED / "capture.pcap.xz", _RECORDED / "request-1.log.xz"
COLUMNS, _PACKETS = "columns", "packets"


def main() -> int:
    print("compiling the kernels, once: a minute or so", flush=True)
    start = perf_counter()
    halves = [subprocess.Popen([sys.executable, "-m", "tools.kernels", half]) for half in (COLUMNS, _PACKETS)]
    codes = [half.wait() for half in halves]
    if not any(codes):
        print(f"kernels ready in {perf_counter() - start:.0f} s")
    return max(map(abs, codes))


def _compile_half(half: str) -> None:
    if half == COLUMNS:
        import numpy as np

        from kafkascope.columnar.kernel.entry import warm_up
        from kafkascope.columnar.uuid_text import uuid_text

        # A request log has no packets: what it takes is ready when the other half comes to exchanges.
        read(REQUEST_LOG)
        warm_up()
        # Arrow's buffers are of both kinds.
        for raw in (np.zeros(16, np.uint8), np.frombuffer(bytes(16), np.uint8)):
            uuid_text(raw, 1)
        return
    from kafkascope.capture.exchanges.exchange_columns import to_arrow
    from kafkascope.capture.files.writer import PcapngWriter
    from kafkascope.capture.reader import Reading

    read(CAPTURE)
    with TemporaryDirectory() as folder:
        path = Path(folder, "one.pcapng")
        with path.open("wb") as file:
            PcapngWriter(file).write(0, bytes(60))
        for batch in Reading(path).batches():
            to_arrow(batch)


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
