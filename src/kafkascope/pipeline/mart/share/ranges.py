"""Splits the ranges that a message acknowledged or acquired into one event each, in the order that the ledger needs,
with numpy and one portion at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Events in memory at once, unless a single message has more.
_EVENTS = 50_000
_NESTED = ("acknowledged", "acquired")
_EVENT_COLUMNS = ("first_offset", "last_offset", "value", "delivery_count")
_ROW_KEYS = ("group_id", "cluster", "topic_id", "partition", "at_us", "order", "exchange_id")

Columns = dict[str, list[Any]]
_Ints = npt.NDArray[np.int64]
_Objects = npt.NDArray[np.object_]


def events_of(batch: pa.RecordBatch) -> Iterator[Columns]:
    """All columns except the ranges, as Python values."""
    acknowledged = _range_counts(batch.column("acknowledged"), "acknowledge_types")
    weights = 1 + acknowledged + _range_counts(batch.column("acquired"))
    ends = np.cumsum(weights)
    start = 0
    while start < len(batch):
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + _EVENTS, "right")))
        yield _events(batch.slice(start, end - start))
        start = end


def _range_counts(rows: pa.Array, deeper: str | None = None) -> _Ints:
    """How many ranges a row has; of acknowledgements at most, if each is of another type."""
    ranges, of_range = _flat(rows)
    if deeper:
        of_range = of_range[_flat(_fields(ranges)[deeper])[1]]
    return np.bincount(of_range, minlength=len(rows))


@dataclass(slots=True)
class _Ranges:
    """The columns that differ between the events of a row: `rows` is the row that each comes from."""

    rows: _Ints
    values: Mapping[str, _Objects]


def _events(rows: pa.RecordBatch) -> Columns:
    columns = {name: _objects(rows.column(name)) for name in rows.schema.names if name not in _NESTED}
    plain = np.flatnonzero(~np.isin(columns["kind"], _NESTED))
    parts = [
        _Ranges(plain, {name: columns[name][plain] for name in _EVENT_COLUMNS}),
        _acknowledged(rows.column("acknowledged")),
        _acquired(rows.column("acquired")),
    ]
    of_row = np.concatenate([part.rows for part in parts])
    values = {name: _joined(parts, name) for name in _EVENT_COLUMNS}
    order = _order(columns, of_row, values)
    of_row = of_row[order]
    return {
        name: (values[name][order] if name in values else column[of_row]).tolist() for name, column in columns.items()
    }


def _joined(parts: list[_Ranges], name: str) -> _Objects:
    """Null if a kind of event lacks the column."""
    return np.concatenate([part.values.get(name, np.full(len(part.rows), None)) for part in parts])


def _order(columns: Mapping[str, _Objects], of_row: _Ints, values: Mapping[str, _Objects]) -> _Ints:
    """Rows are in order already, and those of one exchange, seen twice, count as one. Within it: by offset; nulls
    first, as Spark has them."""
    keys = list(zip(*(columns[name] for name in _ROW_KEYS), strict=True))
    number = np.cumsum([False, *(key != previous for previous, key in pairwise(keys))])
    order: _Ints = np.lexsort((_ints(values["first_offset"]), number[of_row]))
    return order


def _ints(values: _Objects) -> _Ints:
    lowest = np.iinfo(np.int64).min
    return np.array([lowest if value is None else value for value in values], np.int64)


def _acknowledged(rows: pa.Array) -> _Ranges:
    """Runs of one type: one entry covers the whole range, else there is one an offset (protocol note 46)."""
    ranges, of_row = _flat(rows)
    range_fields = _fields(ranges)
    types, of_range = _flat(range_fields["acknowledge_types"])
    kinds = types.to_numpy()
    first, last = (range_fields[name].to_numpy() for name in ("first_offset", "last_offset"))
    begins = np.ones(len(kinds), bool)
    begins[1:] = (kinds[1:] != kinds[:-1]) | (of_range[1:] != of_range[:-1])
    start = np.flatnonzero(begins)
    of_run = of_range[start]
    # The index of each type in its own range.
    lengths = np.bincount(of_range, minlength=len(ranges))
    offset = np.arange(len(kinds)) - (np.cumsum(lengths) - lengths)[of_range]
    run_first = first[of_run] + offset[start]
    run_last = last[of_run]
    goes_on = np.flatnonzero(of_run[1:] == of_run[:-1])
    run_last[goes_on] = run_first[goes_on + 1] - 1
    return _Ranges(
        of_row[of_run],
        {
            "first_offset": run_first.astype(object),
            "last_offset": run_last.astype(object),
            "value": kinds[start].astype(object),
        },
    )


def _acquired(rows: pa.Array) -> _Ranges:
    ranges, of_row = _flat(rows)
    return _Ranges(of_row, {name: _objects(column) for name, column in _fields(ranges).items()})


def _flat(lists: pa.ListArray) -> tuple[Any, _Ints]:
    """The values of the lists, and the list that each comes from."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return lists.flatten(), np.repeat(np.arange(len(lists)), lengths)


def _fields(structs: pa.StructArray) -> dict[str, pa.Array]:
    # `flatten` respects the offset of a slice, which `field` doesn't.
    return {field.name: column for field, column in zip(structs.type, structs.flatten(), strict=True)}


def _objects(column: pa.Array) -> _Objects:
    values = np.empty(len(column), object)
    values[:] = column.to_pylist()
    return values
