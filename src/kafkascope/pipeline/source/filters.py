"""Applies filters that Spark pushes down, with their meaning in SQL: a row for which one is null is left out. Filters
that aren't known to mean the same here are left to Spark."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}
_PATTERNS: dict[type, Callable[..., Any]] = {
    StringStartsWith: pc.starts_with,
    StringEndsWith: pc.ends_with,
    StringContains: pc.match_substring,
}


class Pushdown:
    """A reader's `pushFilters`. While `spark.sql.python.filterPushdown.enabled` is false, which is the default, Spark
    refuses a reader that has the method: it compares its function with the one of the base class. So that is the
    function here; then it is never called, and Spark filters."""

    def __init__(self, schema: pa.Schema, taken: list[Filter]) -> None:
        self.__func__ = DataSourceReader.pushFilters
        self._schema, self._taken = schema, taken

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        left: list[Filter] = []
        for condition in filters:
            (self._taken if can_apply(condition, self._schema) else left).append(condition)
        return left


def can_apply(condition: Filter, schema: pa.Schema) -> bool:
    """Whether it is about one column of `schema`, of a type whose values compare here as they do in Spark."""
    if isinstance(condition, Not):
        # Of null it is neither, as the filter itself: but what `In` drops for a null it would keep.
        return not isinstance(condition.child, In | IsNull | IsNotNull) and can_apply(condition.child, schema)
    name = column_of(condition)
    if name is None or name not in schema.names:
        return False
    kind = schema.field(name).type
    if isinstance(condition, IsNull | IsNotNull):
        return True
    value: Any = getattr(condition, "value", None)
    if isinstance(condition, In):
        return any(value is not None for value in condition.value) and all(
            value is None or _fits(value, kind) for value in condition.value
        )
    if type(condition) in _PATTERNS:
        return bool(pa.types.is_string(kind)) and isinstance(value, str)
    return type(condition) in _COMPARISONS and _fits(value, kind)


def column_of(condition: Filter) -> str | None:
    """None for a field within a struct."""
    path: Sequence[str] = getattr(condition, "attribute", ())
    return path[0] if len(path) == 1 else None


def _fits(value: object, kind: pa.DataType) -> bool:
    if pa.types.is_string(kind):
        return isinstance(value, str)
    if pa.types.is_integer(kind):
        return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63
    return bool(pa.types.is_timestamp(kind)) and isinstance(value, datetime) and value.tzinfo is not None


def mask(filters: Iterable[Filter], rows: pa.RecordBatch) -> pa.BooleanArray | None:
    """Which rows pass all of them; None where there is no filter."""
    passed = None
    for condition in filters:
        own = _applied(condition, lambda name: rows.column(name))
        passed = own if passed is None else pc.and_(passed, own)
    return None if passed is None else pc.fill_null(passed, False)


def expression(filters: Iterable[Filter]) -> pc.Expression | None:
    """The same for a dataset, which opens only files that can have such rows."""
    passed = None
    for condition in filters:
        own = _applied(condition, pc.field)
        passed = own if passed is None else passed & own
    return passed


def _applied(condition: Filter, column: Callable[[str], Any]) -> Any:
    if isinstance(condition, Not):
        return pc.invert(_applied(condition.child, column))
    name = column_of(condition)
    assert name is not None
    values = column(name)
    if isinstance(condition, IsNull):
        return pc.is_null(values)
    if isinstance(condition, IsNotNull):
        return pc.is_valid(values)
    if isinstance(condition, In):
        known = [value for value in condition.value if value is not None]
        # One by one: a set has to be of the column's own type, whose range a value may exceed.
        equal = [pc.equal(values, pa.scalar(value, _literal_type(value))) for value in known]
        return reduce(pc.or_, equal)
    value: Any = getattr(condition, "value", None)
    if type(condition) in _PATTERNS:
        return _PATTERNS[type(condition)](values, pattern=value)
    return _COMPARISONS[type(condition)](values, pa.scalar(value, _literal_type(value)))


def _literal_type(value: object) -> pa.DataType:
    if isinstance(value, datetime):
        return pa.timestamp("us", "UTC")
    return pa.int64() if isinstance(value, int) else pa.string()
