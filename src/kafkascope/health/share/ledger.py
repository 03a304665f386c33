"""Rebuilds the deliveries of one share group from its events in time order. Every acquired offset is in exactly one
`Delivery` row per delivery, except offsets acknowledged as gaps, which have no record.

Each end has one rule, the first that the wire proves (protocol note 45 to 35a, KIP-932); docs/health-share.md lists
them. The rules are in `acquired`, `acknowledged`, `sessions` and `brokers`, the state in `book`.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from kafkascope.health.share.acknowledged import acknowledged, unrecorded
from kafkascope.health.share.acquired import acquired
from kafkascope.health.share.book import LATE_US, Book
from kafkascope.health.share.brokers import altered, broker_error, seen, state_written
from kafkascope.health.share.events import Delivery, ShareEvent
from kafkascope.health.share.limit import LimitEvidence, decided, is_undecided, limit_of
from kafkascope.health.share.sessions import disconnected, forgotten, linked, session
from kafkascope.health.state import decoded, encoded

_RULES = {
    "acquired": acquired,
    "acknowledged": acknowledged,
    "session": session,
    "linked": linked,
    "forgotten": forgotten,
    "disconnected": disconnected,
    "state_written": state_written,
    "altered": altered,
    "broker_error": broker_error,
    "seen": seen,
}


def share_deliveries(events: Iterable[ShareEvent], *, delivery_limit: int | None = None) -> Iterator[Delivery]:
    """`delivery_limit` is the group's, if known; otherwise it's inferred from what the leader archives."""
    ledger = Ledger(delivery_limit)
    undecided = []
    for row in ledger.deliveries(events):
        if is_undecided(row):
            undecided.append(row)
        else:
            yield row
    limit = limit_of((ledger.evidence,), delivery_limit)
    for row in undecided:
        yield decided(row, limit)


class Ledger:
    """Of a whole group, or of one of its partitions: then the group's events that have no partition, of the members
    that acquired from it, belong among the partition's (`session`, `linked`, `disconnected`)."""

    def __init__(self, delivery_limit: int | None = None, state: object = None) -> None:
        """`state` is what an earlier ledger left: `ValueError` for one that none leaves."""
        self._book = Book(delivery_limit) if state is None else _resumed(state)

    def state(self) -> object:
        """For JSON, between two events: a ledger that begins with it goes on from there."""
        return encoded(self._book, Book)

    @property
    def unsettled_since(self) -> int | None:
        """No row that is still to come has a time before; None if no row is to come."""
        times = [
            at
            for partition in self._book.partitions.values()
            for at in (
                *(piece.origin.at_us for pieces in (partition.pieces, partition.limbo) for piece in pieces),
                *(event.at_us for event in partition.early),
            )
        ]
        # An acknowledgement may come that much before what it acknowledges.
        return min(times) - LATE_US if times else None

    @property
    def evidence(self) -> LimitEvidence:
        """What it has shown of the delivery limit."""
        return self._book.evidence

    def deliveries(self, events: Iterable[ShareEvent]) -> Iterator[Delivery]:
        """Each row as soon as it is known. What the delivery limit of the group decides is left open
        (`limit.is_undecided`)."""
        yield from self.walked(events)
        yield from self.finish()

    def walked(self, events: Iterable[ShareEvent]) -> Iterator[Delivery]:
        """Rows that no later event changes."""
        book = self._book
        rules = {kind: partial(rule, book) for kind, rule in _RULES.items()}
        out = book.out
        for event in events:
            book.now = event[1]
            rules[event[0]](event)
            if out:
                yield from out
                out.clear()

    def finish(self) -> Iterator[Delivery]:
        """What the end of the recording leaves. The ledger is at its end then."""
        book, out = self._book, self._book.out
        for partition in book.partitions.values():
            unrecorded(book, partition)
        for _ in book.finish():
            yield from out
            out.clear()


def _resumed(state: object) -> Book:
    book = decoded(state, Book)
    book.out = []
    for partition in book.partitions.values():
        pieces = partition.pieces
        offsets = [offset for piece in pieces for offset in (piece.first, piece.last)]
        if partition.starts != [piece.first for piece in pieces] or offsets != sorted(offsets):
            raise ValueError("pieces of a partition overlap")
    return book
