"""Rebuilds the deliveries of one share group from its events in time order. Every acquired offset is in exactly one
`Delivery` row per delivery, except offsets acknowledged as gaps, which have no record.

Each end has one rule, the first that the wire proves (protocol note 45 to 35a, KIP-932); docs/health-share.md lists
them. The rules are in `acquired`, `acknowledged`, `sessions` and `brokers`, the state in `book`.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from kafkascope.health.share.acknowledged import acknowledged, unrecorded
from kafkascope.health.share.acquired import acquired
from kafkascope.health.share.book import Book
from kafkascope.health.share.brokers import altered, broker_error, seen, state_written
from kafkascope.health.share.events import Delivery, ShareEvent
from kafkascope.health.share.sessions import disconnected, forgotten, session

_RULES = {
    "acquired": acquired,
    "acknowledged": acknowledged,
    "session": session,
    "forgotten": forgotten,
    "disconnected": disconnected,
    "state_written": state_written,
    "altered": altered,
    "broker_error": broker_error,
    "seen": seen,
}


def share_deliveries(events: Iterable[ShareEvent], *, delivery_limit: int | None = None) -> Iterator[Delivery]:
    """`delivery_limit` is the group's, if known; otherwise it's learned from what the leader archives."""
    book = Book(delivery_limit)
    rules = {kind: partial(rule, book) for kind, rule in _RULES.items()}
    out = book.out
    for event in events:
        rules[event[0]](event)
        book.now = event[1]
        if out:
            yield from out
            out.clear()
    for partition in book.partitions.values():
        unrecorded(book, partition)
    book.finish()
    yield from out
