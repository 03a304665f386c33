"""Corrects earlier minutes of share groups once more is known of the delivery limit: how many records were near it."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.visible_rows import rows_of
from kafkascope.lake.write.files import Files, NewFile
from kafkascope.pipeline.mart.increments.kept import kept_files
from kafkascope.pipeline.mart.increments.plan import Plan, segment_of

_HEALTH = MARTS["share_group_health"]
_COLUMN = "near_limit"


def with_near(lake: Lake, plan: Plan, near: Mapping[str, int], replaced: set[tuple[str, str]]) -> list[NewFile]:
    """New files for those before the plan's start that have rows of these groups; `replaced` gets the old ones. `near`
    is the delivery count from which on a delivery of a group is near the limit."""
    made = []
    for file in kept_files(lake, _HEALTH.name, plan) if near else ():
        with filesystem_errors(lake.table(_HEALTH.name).uri):
            rows = rows_of(lake, _HEALTH.name, _HEALTH.file_schema, [file]).to_table()
        start = segment_of(file)
        if start is not None and pc.any(pc.is_in(rows.column("group_id"), pa.array(near))).as_py():
            files = Files(lake, "", plan.prefix(start))
            files.add(_HEALTH, _corrected(rows, near))
            made += files.close()
            replaced.add((_HEALTH.name, file.path))
    return made


def _corrected(rows: pa.Table, near: Mapping[str, int]) -> pa.Table:
    columns = (rows.column(name).to_pylist() for name in ("group_id", "redeliveries", _COLUMN))
    counts = [
        sum(records for count, records in redeliveries if count >= near[group_id]) if group_id in near else before
        for group_id, redeliveries, before in zip(*columns, strict=True)
    ]
    place = rows.schema.get_field_index(_COLUMN)
    field = rows.schema.field(place)
    return rows.set_column(place, field, pa.array(counts, field.type))
