"""Reports the progress of an ingest. Each task writes a small file in the lake, the one place that tasks and driver
share wherever they run; the driver sums them up."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import NamedTuple

from kafkascope.errors import KafkascopeError
from kafkascope.lake.home import Lake
from kafkascope.lake.inside import inside
from kafkascope.lake.place import Place
from kafkascope.lake.write.heartbeat import INGESTS

# An object store is polled less often than a disk.
LOCAL_SECONDS, _REMOTE_SECONDS = 0.5, 5.0
_SUFFIX = ".progress"
# Bytes, frames, exchanges.
_ZERO = (0, 0, 0)


class IngestProgress(NamedTuple):
    """Progress of an ingest: bytes of its files as stored (perhaps compressed), frames and exchanges. A request log has
    no frames, a file of frames no exchanges."""

    files: int
    total_bytes: int
    read_bytes: int = 0
    frames: int = 0
    exchanges: int = 0


def place_for(lake: Lake, ingest_id: str, task: int) -> Place:
    return inside(lake.place, f"{INGESTS}/{ingest_id}-{task}{_SUFFIX}")


def write_progress(lake: Lake, ingest_id: str, task: int, size: int, frames: int, exchanges: int) -> None:
    place_for(lake, ingest_id, task).write(f"{size} {frames} {exchanges}".encode())


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
            progress = [_read_progress(place_for(lake, ingest_id, task), share) for task, share in enumerate(shares)]
            # If no file can be read, no task reports anything.
            size, frames, exchanges = (sum(column) for column in zip(_ZERO, *progress, strict=True))
            read = min(round(size), start.total_bytes)
            report(start._replace(read_bytes=read, frames=frames, exchanges=exchanges))

    thread = Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for task in range(len(shares)):
            place_for(lake, ingest_id, task).delete()


def _read_progress(place: Place, share: int) -> tuple[float, int, int]:
    try:
        size, frames, exchanges = map(int, place.read().split())
    except (KafkascopeError, ValueError):
        return _ZERO
    return size / share, frames, exchanges
