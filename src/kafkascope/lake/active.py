"""Lists the files that the log of a Delta table names, each with what the log records about it."""

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

import pyarrow as pa
from deltalake import DeltaTable

from kafkascope.errors import InputError
from kafkascope.lake.file_names import COMPACTED, INGEST_PREFIX, ingest_of
from kafkascope.lake.inside import check_files
from kafkascope.lake.place import place_of, readable
from kafkascope.lake.tables import DATE

# Prefixes of file names that kafkascope writes. Rows of marts and of the catalog belong to no ingest.
_OURS = (INGEST_PREFIX, f"{COMPACTED}-", "mart-", "catalog-")


@dataclass(frozen=True, slots=True)
class ActiveFile:
    """`path` is relative to the table's folder. `low` and `high` are bounds of the table's time, None if it isn't known
    for every row; `first` and `last` are those of the known times."""

    path: str
    size: int
    rows: int
    date: date | None
    low: datetime | None
    high: datetime | None
    first: datetime | None = None
    last: datetime | None = None

    @property
    def ingest(self) -> str | None:
        return ingest_of(self.path)

    @property
    def compacted(self) -> bool:
        return self.path.rsplit("/", 1)[-1].startswith(f"{COMPACTED}-")

    @property
    def foreign(self) -> bool:
        """If another tool wrote it, an OPTIMIZE for example: it may have rows of any ingests, half-done ones too."""
        return not self.path.rsplit("/", 1)[-1].startswith(_OURS)


def active_files(table: DeltaTable, time: str | None = None, otherwise: str | None = None) -> list[ActiveFile]:
    """Refuses a log that names a file outside the table's folder, so that a lake never leads a reader elsewhere. Rows
    without `time` have their time in `otherwise`."""
    with readable(table.table_uri):
        adds = pa.table(table.get_add_actions(flatten=True))

    def column(name: str) -> list[object]:
        try:
            return adds.column(name).to_pylist() if name in adds.column_names else [None] * len(adds)
        except (OverflowError, ValueError):
            raise InputError(f"{table.table_uri}: its log has an impossible {name}") from None

    whole = zip(
        column("path"),
        column("size_bytes"),
        column("num_records"),
        column(f"partition.{DATE}"),
        column(f"null_count.{time}"),
        column(f"min.{time}"),
        column(f"max.{time}"),
        column(f"min.{otherwise}"),
        column(f"max.{otherwise}"),
        strict=True,
    )
    files = []
    for path, size, rows, day, nulls, low, high, *others in whole:
        times = [moment for moment in (low, high, *(others if nulls else ())) if isinstance(moment, datetime)]
        known = nulls == 0 and isinstance(low, datetime) and isinstance(high, datetime)
        file = ActiveFile(
            path=str(path),
            size=size if isinstance(size, int) else 0,
            rows=rows if isinstance(rows, int) else 0,
            date=day if isinstance(day, date) else None,
            low=low if known and isinstance(low, datetime) else None,
            high=high if known and isinstance(high, datetime) else None,
            first=min(times, default=None),
            last=max(times, default=None),
        )
        files.append(replace(file, high=_above(file.high)) if file.foreign and file.high is not None else file)
    check_files(place_of(table.table_uri), (file.path for file in files))
    return sorted(files, key=lambda file: file.path)


def _above(high: datetime) -> datetime:
    """Adds a millisecond: other tools truncate the upper bound to milliseconds."""
    return high + min(timedelta(milliseconds=1), datetime.max.replace(tzinfo=high.tzinfo) - high)
