"""Counts the exchanges that a lake holds in an interval."""

import pyarrow.compute as pc

from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import batches
from kafkascope.lake.read.visible_rows import open_as_of_now, table_as_stored, visible_rows
from kafkascope.report.summaries.scope import Scope, both

_EXCHANGES = "exchanges"


def exchanges_in(lake: Lake, scope: Scope) -> int:
    """Counts existing rows: `captures` also counts those that `lake expire` removed."""
    if not scope.always:
        requested, answered = scope.at("request_at"), scope.at("response_at")
        # A response without its request has only its own time.
        where = both(requested, None if answered is None else pc.field("request_at").is_valid() | answered)
        return sum(batch.num_rows for batch in batches(lake, _EXCHANGES, ["request_at"], where))
    tables, seen = open_as_of_now(lake, [_EXCHANGES])
    return sum(
        visible_rows(lake, table_as_stored(name, table), active_files(table), seen) for name, table in tables.items()
    )
