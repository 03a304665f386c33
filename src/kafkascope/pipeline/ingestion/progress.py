"""Reports the progress of an ingest. Each task writes a small file in the lake, the one place that tasks and driver
share wherever they run; the driver sums them up."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import NamedTuple

from kafkascope.columnar.compiling.compile_once import on_compile
from kafkascope.errors import KafkascopeError
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.inside import inside
from kafkascope.lake.place import Place
from kafkascope.lake.write.heartbeat import INGESTS

# An object store is polled less often than a disk.
LOCAL_SECONDS, _REMOTE_SECONDS = 0.5, 5.0
_SUFFIX = ".progress"
_COMPILING = b"compiling"
# Bytes, frames, exchanges.
_ZERO = (0, 0, 0)


class IngestProgress(NamedTuple):
    """Progress of an ingest: bytes of its files as stored (perhaps compressed), frames and exchanges. A request log has
    no frames, a file of frames no exchanges. While it is `compiling`, its tasks wait for kernels, once per machine."""

    files: int
    total_bytes: int
    read_bytes: int = 0
    frames: int = 0
    exchanges: int = 0
    compiling: bool = False


def place_for(lake: Lake, ingest_id: str, task: int) -> Place:
    return inside(lake.place, f"{INGESTS}/{ingest_id}-{task}{_SUFFIX}")


def write_progress(lake: Lake, ingest_id: str, task: int, size: int, frames: int, exchanges: int) -> None:
    place_for(lake, ingest_id, task).write(f"{size} {frames} {exchanges}".encode())


@contextmanager
def reporting_compiles(lake: str, ingest_id: str, task: int) -> Iterator[None]:
    """While a task runs: whether it waits for kernels. Its next report of another kind replaces that."""
    reported = False

    def report() -> None:
        nonlocal reported
        if not reported:
            reported = True
            with suppress(KafkascopeError):
                place_for(open_lake(lake), ingest_id, task).write(_COMPILING)

    on_compile(report)
    try:
        yield
    finally:
        on_compile(None)


@contextmanager
def watch_progress(
    lake: Lake, ingest_id: str, shares: Sequence[int], start: IngestProgress, report: Callable[[IngestProgress], None]
) -> Iterator[None]:
    """`report` gets the sums over all tasks; `shares` is, per task, how many tasks read the same files. Their reports
    are deleted at the end."""
    stop = Event()
    seconds = LOCAL_SECONDS if lake.place.local else _REMOTE_SECONDS

    def poll() -> None:
        while not stop.wait(seconds):
            tasks = [_read_progress(place_for(lake, ingest_id, task), share) for task, share in enumerate(shares)]
            # If no file can be read, no task reports anything.
            size, frames, exchanges = (
                sum(column) for column in zip(_ZERO, *(task or _ZERO for task in tasks), strict=True)
            )
            read = min(round(size), start.total_bytes)
            report(IngestProgress(start.files, start.total_bytes, read, frames, exchanges, None in tasks))

    thread = Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for task in range(len(shares)):
            place_for(lake, ingest_id, task).delete()


def _read_progress(place: Place, share: int) -> tuple[float, int, int] | None:
    """None from a task that waits for kernels."""
    try:
        content = place.read()
        if content == _COMPILING:
            return None
        size, frames, exchanges = map(int, content.split())
    except (KafkascopeError, ValueError):
        return _ZERO
    return size / share, frames, exchanges
