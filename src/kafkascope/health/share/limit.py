"""The delivery limit of a share group, as its partitions show it one by one, and the rows that depend on it.

No message carries the limit. A delivery that ended unfinished and that the leader archived has reached it; one that was
given out again has not. Each partition of a group keeps what it shows; all of them together decide the rows that one
alone can't.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kafkascope.health.share.events import Delivery

# share.delivery.count.limit, as a broker has it when nobody set it
DEFAULT_DELIVERY_LIMIT = 5

UNANSWERED = "acknowledgement_unanswered"
# The last note of a row that the limit decides: archived at it, or either of two ends.
IF_AT_LIMIT, _EITHER_AT_LIMIT = "?archived", "?either"
_MARKS = frozenset({IF_AT_LIMIT, _EITHER_AT_LIMIT})


@dataclass(frozen=True, slots=True)
class DeliveryLimit:
    count: int
    known: bool

    def unanswered(self, count: int | None) -> str | None:
        """The note of an unanswered rejection: at the limit, the end of the connection has the same effect."""
        if not self.known:
            return _EITHER_AT_LIMIT
        return UNANSWERED if count == self.count else None


@dataclass(slots=True)
class LimitEvidence:
    """By delivery count: when a delivery with it was last archived, and when records with it were last given out
    again. A few numbers, however many deliveries there are."""

    archived: dict[int, int] = field(default_factory=dict)
    passed: dict[int, int] = field(default_factory=dict)

    def archived_at(self, count: int, at_us: int) -> DeliveryLimit:
        self.archived[count] = at_us
        return DeliveryLimit(count, True)

    def passed_at(self, count: int, at_us: int, limit: DeliveryLimit) -> DeliveryLimit:
        self.passed[count] = at_us
        return limit if count < limit.count else DeliveryLimit(count + 1, False)


def limit_of(evidence: Iterable[LimitEvidence], configured: int | None = None) -> DeliveryLimit:
    """Of a group: what was archived last shows it, unless a higher count was given out again since."""
    if configured is not None:
        return DeliveryLimit(configured, True)
    evidence = list(evidence)
    archived = [(at, count) for part in evidence for count, at in part.archived.items()]
    since, count = max(archived, default=(-1, DEFAULT_DELIVERY_LIMIT))
    highest = max((number for part in evidence for number, at in part.passed.items() if at > since), default=0)
    return DeliveryLimit(highest + 1, False) if highest >= count else DeliveryLimit(count, bool(archived))


def is_undecided(row: Delivery) -> bool:
    """Whether only the limit of the whole group decides it."""
    notes = row.uncertain
    return notes is not None and notes.rpartition(",")[2] in _MARKS


def decided(row: Delivery, limit: DeliveryLimit) -> Delivery:
    """An undecided row as the group's limit decides it."""
    assert row.uncertain is not None
    *notes, mark = row.uncertain.split(",")
    count = row.delivery_count
    if mark == _EITHER_AT_LIMIT:
        if count == limit.count:
            notes.append(UNANSWERED)
    elif count is not None and count >= limit.count:
        row.archived = True
        if not limit.known:
            notes.append("limit_not_recorded")
    row.uncertain = ",".join(notes) or None
    return row
