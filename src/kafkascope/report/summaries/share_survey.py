"""Totals the deliveries of each share group, its partitions and its members. Arrow sums batches, so memory grows with
groups, partitions and members, not with deliveries."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import batches
from kafkascope.report.summaries.scope import Scope, both, of_groups

_Key = tuple[Any, ...]

_COLUMNS = (
    "group_id topic topic_id partition member_id client_id outcome delivery_count first_offset last_offset acquired_at"
    " outcome_at archived renewals"
).split()
_BY_MEMBER = ["group_id", "member_id", "client_id", "outcome"]
_BY_PLACE = ["group_id", "topic", "topic_id", "partition", "delivery_count"]


@dataclass(slots=True)
class MemberTotals:
    member_id: str
    client_id: str | None
    outcomes: Counter[str] = field(default_factory=Counter)  # to records
    renewals: int = 0
    longest_us: int | None = None
    first_at: int | None = None

    @property
    def records(self) -> int:
        return self.outcomes.total()

    @property
    def trouble(self) -> int:
        """Records whose delivery didn't end by being accepted."""
        return self.records - self.outcomes["accepted"] - self.outcomes["open"]


@dataclass(slots=True)
class PartitionTotals:
    """A partition. `acquired` counts a record once per delivery. `archived` counts records that the broker dropped
    after the delivery limit; rejected records are an outcome of their own."""

    name: str
    acquired: int = 0
    redelivered: int = 0
    highest_count: int = 0
    archived: int = 0


@dataclass(slots=True)
class ShareGroupTotals:
    """Totals of one group."""

    group_id: str
    first_at: int | None = None
    last_at: int | None = None
    counts: Counter[int] = field(default_factory=Counter)  # delivery count to records
    members: dict[_Key, MemberTotals] = field(default_factory=dict)
    places: dict[str, PartitionTotals] = field(default_factory=dict)

    @property
    def outcomes(self) -> Counter[str]:
        outcomes: Counter[str] = Counter()
        for member in self.members.values():
            outcomes.update(member.outcomes)
        return outcomes

    @property
    def trouble(self) -> tuple[int, int]:
        """Sort key: records in trouble, then records."""
        members = self.members.values()
        return sum(member.trouble for member in members), sum(member.records for member in members)

    def see(self, *times: int | None) -> None:
        for at in times:
            if at is not None:
                self.first_at = at if self.first_at is None else min(self.first_at, at)
                self.last_at = at if self.last_at is None else max(self.last_at, at)


def survey(lake: Lake, scope: Scope, groups: Collection[str]) -> dict[str, ShareGroupTotals]:
    surveys: defaultdict[str, ShareGroupTotals] = defaultdict(lambda: ShareGroupTotals(""))
    where = both(of_groups(groups), scope.over("acquired_at", "outcome_at"))
    for batch in batches(lake, "share_deliveries", _COLUMNS, where):
        table = _summed(batch)
        for group_id, member_id, client_id, outcome, *sums in _grouped(table, _BY_MEMBER, _MEMBER_SUMS):
            _add_member(surveys[group_id], (member_id, client_id), outcome, sums)
        for group_id, topic, topic_id, partition, count, *sums in _grouped(table, _BY_PLACE, _PLACE_SUMS):
            _add_place(surveys[group_id], _place_name(topic, topic_id, partition), count, sums)
    # A client that only described the group, as `observe` does, had no delivery.
    minutes = both(of_groups(set(groups) - surveys.keys()), scope.minute("minute_at"))
    for batch in batches(lake, "share_group_health", ["group_id", "minute_at"], minutes):
        table = pa.Table.from_batches([batch])
        for group_id, *times in _grouped(table, ["group_id"], [("minute_at", "min"), ("minute_at", "max")]):
            surveys[group_id].see(*times)
    for group_id, group in surveys.items():
        group.group_id = group_id
    return dict(surveys)


def _place_name(topic: str | None, topic_id: str | None, partition: int) -> str:
    return f"{topic if topic is not None else topic_id or ''}-{partition}"


_MEMBER_SUMS = [
    ("records", "sum"),
    ("renewals", "sum"),
    ("held_us", "max"),
    ("acquired_at", "min"),
    ("acquired_at", "max"),
    ("outcome_at", "min"),
    ("outcome_at", "max"),
]
_PLACE_SUMS = [("records", "sum"), ("archived_records", "sum")]


def _summed(batch: pa.RecordBatch) -> pa.Table:
    table = pa.Table.from_batches([batch])
    records = pc.add(pc.subtract(table["last_offset"], table["first_offset"]), 1)
    table = table.append_column("records", records)
    table = table.append_column("held_us", pc.subtract(table["outcome_at"], table["acquired_at"]))
    dropped = pc.and_(pc.fill_null(table["archived"], False), pc.not_equal(table["outcome"], "rejected"))
    gone = pc.if_else(dropped, records, 0)
    return table.append_column("archived_records", gone)


def _grouped(table: pa.Table, keys: list[str], sums: list[tuple[str, str]]) -> Iterator[list[Any]]:
    totals = table.group_by(keys, use_threads=False).aggregate(sums)
    names = [*keys, *(f"{column}_{how}" for column, how in sums)]
    for row in zip(*(totals[name].to_pylist() for name in names), strict=True):
        yield list(row)


def _add_member(group: ShareGroupTotals, key: _Key, outcome: str, sums: list[Any]) -> None:
    records, renewals, held, first_acquired, last_acquired, first_ended, last_ended = sums
    member = group.members.get(key)
    if member is None:
        member = group.members[key] = MemberTotals(key[0] or "", key[1])
    member.outcomes[outcome] += records
    member.renewals += renewals or 0
    member.longest_us = _larger(member.longest_us, held)
    since = first_ended if first_acquired is None else first_acquired
    if since is not None and (member.first_at is None or since < member.first_at):
        member.first_at = since
    group.see(first_acquired, last_acquired, first_ended, last_ended)


def _add_place(group: ShareGroupTotals, name: str, count: int | None, sums: list[Any]) -> None:
    records, archived = sums
    place = group.places.get(name)
    if place is None:
        place = group.places[name] = PartitionTotals(name)
    place.acquired += records
    place.archived += archived or 0
    if count is not None:
        group.counts[count] += records
        place.highest_count = max(place.highest_count, count)
        place.redelivered += records if count > 1 else 0


def _larger(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return max(left, right)
