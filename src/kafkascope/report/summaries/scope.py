"""Limits a report to groups and an interval. Both are filters on marts, so that only what is needed is read."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.capture.exchanges.exchange_columns import TIME
from kafkascope.schema.names import matches

MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class Scope:
    """`groups` are ids or patterns with `*` and `?`; none means all. The interval is from `since` to before `until`, in
    microseconds; None is an open end."""

    groups: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None

    @property
    def always(self) -> bool:
        return self.since is None and self.until is None

    def takes(self, group_id: str) -> bool:
        return not self.groups or any(matches(group_id, pattern) for pattern in self.groups)

    def chosen(self, group_ids: Iterable[str]) -> list[str]:
        return sorted(group_id for group_id in group_ids if self.takes(group_id))

    def clip(self, first: int, last: int) -> tuple[int, int]:
        """The part of an interval that is in the scope."""
        first = first if self.since is None else max(first, self.since)
        last = last if self.until is None else min(last, self.until)
        return first, max(first, last)

    def at(self, column: str) -> pc.Expression | None:
        """Rows with one time."""
        return self.over(column, column)

    def over(self, start: str, end: str) -> pc.Expression | None:
        """Rows with an interval that overlaps the scope. A null end is after the recording. A null start wasn't seen,
        so only the end of the row is known."""
        where = None
        if self.until is not None:
            until = moment(self.until)
            ended = pc.field(start).is_null() & _or_null(end, pc.field(end) < until)
            where = (pc.field(start) < until) | ended
        if self.since is not None:
            where = both(where, _or_null(end, pc.field(end) >= moment(self.since)))
        return where

    def minute(self, column: str) -> pc.Expression | None:
        """Rows of the minute that begins at `column`."""
        since = None if self.since is None else self.since // MINUTE_US * MINUTE_US
        return Scope(until=self.until, since=since).at(column)


def both(left: pc.Expression | None, right: pc.Expression | None) -> pc.Expression | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def of_groups(group_ids: Iterable[str]) -> pc.Expression:
    return pc.field("group_id").isin(pa.array(sorted(group_ids), pa.string()))


def moment(microseconds: int) -> pa.Scalar:
    return pa.scalar(microseconds, TIME)


def _or_null(column: str, holds: pc.Expression) -> pc.Expression:
    return pc.field(column).is_null() | holds
