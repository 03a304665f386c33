"""Deletes files that left the tables some time ago, at the end of an ingest. It happens no more often than that time
passes, so most ingests only look at a note. Files that a reader may still use stay; `vacuum` takes out rows too."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kafkascope.errors import KafkascopeError
from kafkascope.lake.home import SIGN, Lake
from kafkascope.lake.inside import inside
from kafkascope.lake.upkeep.retention import delete_unnamed

# In the lake's folder: when this was done last.
NOTE = "_vacuum.json"
_AT = "at"


@dataclass(frozen=True, slots=True)
class Tidied:
    """Files that are gone from the disk, and those that are not old enough yet."""

    deleted_files: int
    deleted_bytes: int
    waiting_files: int
    waiting_bytes: int


def tidy_if_due(lake: Lake, age: timedelta, now: datetime | None = None) -> Tidied | None:
    """None where it isn't due, or where a store refuses: the next ingest tries again."""
    now = now or datetime.now(UTC)
    try:
        last = _last(lake)
        if timedelta(0) <= now - last < age:
            return None
        done = Tidied(*delete_unnamed(lake, age))
        inside(lake.place, NOTE).write(f'{{"{_AT}": "{now.isoformat()}"}}'.encode())
    except KafkascopeError:
        return None
    return done


def _last(lake: Lake) -> datetime:
    """The lake's own beginning if it never was: before that, nothing can have been left."""
    note = inside(lake.place, NOTE)
    if note.exists():
        try:
            at = datetime.fromisoformat(str(note.read_json().get(_AT)))
            return at if at.tzinfo else at.replace(tzinfo=UTC)
        except (KafkascopeError, ValueError):
            return datetime.fromtimestamp(0, UTC)
    mtime = inside(lake.place, SIGN).info().mtime
    return mtime if isinstance(mtime, datetime) else datetime.fromtimestamp(0, UTC)
