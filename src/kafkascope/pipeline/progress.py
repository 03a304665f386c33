"""How far the tasks of an ingest are: each says so in a small file of the lake, which is the one place that tasks and
driver share wherever they run; the driver sums them up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from kafkascope.errors import KafkascopeError
from kafkascope.lake.home import Lake
from kafkascope.lake.place import Place
from kafkascope.lake.running import INGESTS

# An object store is asked less often than a disk.
LOCAL_SECONDS, REMOTE_SECONDS = 0.5, 5.0
SUFFIX = ".progress"


def place_for(lake: Lake, ingest_id: str, task: int) -> Place:
    return lake.place.child(INGESTS, f"{ingest_id}-{task}{SUFFIX}")


def tell(lake: Lake, ingest_id: str, task: int, size: int) -> None:
    place_for(lake, ingest_id, task).write(str(size).encode())


@contextmanager
def watched(lake: Lake, ingest_id: str, tasks: int, hear: Callable[[int], None]) -> Iterator[None]:
    """`hear` gets the bytes that all tasks together have read; the files are gone in the end."""
    stop = Event()
    seconds = LOCAL_SECONDS if lake.place.local else REMOTE_SECONDS

    def look() -> None:
        while not stop.wait(seconds):
            hear(sum(_size(place_for(lake, ingest_id, task)) for task in range(tasks)))

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for task in range(tasks):
            place_for(lake, ingest_id, task).delete()


def _size(place: Place) -> int:
    try:
        return int(place.read())
    except (KafkascopeError, ValueError):
        return 0
