"""Adds up the deliveries of a share group by partition, minute and delivery count, and their acknowledgement times by
minute: what a group's minutes are made of. The pipeline has Spark do the same (`pipeline/mart/share/counts.py`)."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkascope.health.share.events import Delivery

MINUTE_US = 60_000_000

# In the order of the columns of `ShareGroupHealth`.
COUNTED_OUTCOMES = (
    "accepted",
    "released",
    "rejected",
    "lock_expired",
    "disconnected",
    "session_closed",
    "moved",
)
ACKNOWLEDGED_OUTCOMES = ("accepted", "released", "rejected")


class PlaceMinute(NamedTuple):
    """Counts are of records. What was acquired counts in the minute of the acquisition, what ended in that of its
    end. `minute` is None for deliveries that have neither time."""

    topic_id: str | None
    partition: int
    minute: int | None
    delivery_count: int | None
    topic: str | None = None
    acquired: int = 0
    # By `COUNTED_OUTCOMES`.
    outcomes: tuple[int, ...] = ()
    renewals: int = 0
    archived: int = 0
    # Something was finished.
    progress: bool = False
    # Archived without being rejected: it was at the limit.
    at_limit: bool = False
    # Deliveries held from the start of the next minute on, less those that were held until then.
    held: int = 0
    first_at: int | None = None
    last_at: int | None = None


class AcknowledgeTimes(NamedTuple):
    """From acquisition to acknowledgement, each record counting once."""

    minute: int
    p50_us: int | None
    p95_us: int | None
    max_us: int | None


@dataclass(slots=True)
class _Sums:
    topic: str | None = None
    acquired: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    renewals: int = 0
    archived: int = 0
    progress: bool = False
    at_limit: bool = False
    held: int = 0
    first_at: int | None = None
    last_at: int | None = None

    def see(self, at_us: int) -> None:
        self.first_at = at_us if self.first_at is None else min(self.first_at, at_us)
        self.last_at = at_us if self.last_at is None else max(self.last_at, at_us)


def counts_of(deliveries: Iterable[Delivery]) -> Iterator[PlaceMinute | AcknowledgeTimes]:
    """In any order."""
    places: dict[tuple[str | None, int, int | None, int | None], _Sums] = defaultdict(_Sums)
    # An array each, since there may be millions in a minute.
    times: dict[int, tuple[array[int], array[int]]] = defaultdict(lambda: (array("q"), array("q")))
    for row in deliveries:
        records = row.last_offset - row.first_offset + 1
        acquired_at, outcome_at = row.acquired_at, row.outcome_at
        began = None if acquired_at is None else acquired_at // MINUTE_US
        ended = None if outcome_at is None else outcome_at // MINUTE_US
        for minute in (began, ended):
            places[row.topic_id, row.partition, minute, row.delivery_count].topic = row.topic
        if acquired_at is not None:
            sums = places[row.topic_id, row.partition, began, row.delivery_count]
            sums.see(acquired_at)
            sums.acquired += records
            sums.held += began != ended
        if outcome_at is None or ended is None:
            continue
        sums = places[row.topic_id, row.partition, ended, row.delivery_count]
        sums.see(outcome_at)
        sums.outcomes[row.outcome] += records
        sums.renewals += row.renewals
        sums.archived += records if row.archived else 0
        sums.progress |= row.archived or row.outcome in ("accepted", "rejected")
        sums.at_limit |= row.archived and row.outcome != "rejected"
        if acquired_at is not None:
            sums.held -= began != ended
            if row.outcome in ACKNOWLEDGED_OUTCOMES:
                micros, weights = times[ended]
                micros.append(max(0, outcome_at - acquired_at))
                weights.append(records)
    for (topic_id, partition, minute, count), sums in places.items():
        yield PlaceMinute(
            topic_id, partition, minute, count, sums.topic, sums.acquired,
            tuple(sums.outcomes.get(outcome, 0) for outcome in COUNTED_OUTCOMES),
            sums.renewals, sums.archived, sums.progress, sums.at_limit, sums.held, sums.first_at, sums.last_at,
        )  # fmt: skip
    for number, (micros, weights) in times.items():
        yield _percentiles(number, sorted(zip(micros, weights, strict=True)))


def _percentiles(minute: int, latencies: list[tuple[int, int]]) -> AcknowledgeTimes:
    """In ascending order, with the records of each."""
    total = sum(records for _, records in latencies)
    percentiles: list[int | None] = []
    for percent in (50, 95):
        so_far = 0
        for micros, records in latencies:
            so_far += records
            if so_far * 100 >= total * percent:
                percentiles.append(micros)
                break
    return AcknowledgeTimes(minute, percentiles[0], percentiles[1], latencies[-1][0])
