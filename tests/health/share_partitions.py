"""Splits simulated traffic of one share partition into several that the same members share, and gives each partition
the events that the pipeline gives it (`pipeline/mart/share/routes.py`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafkascope.health.share.book import CROSSED_US
from kafkascope.health.share.events import RENEW, Delivery, ShareEvent
from kafkascope.health.share.ledger import Ledger
from kafkascope.health.share.limit import decided, is_undecided, limit_of

_OF_MEMBERS = frozenset({"session", "disconnected"})
_OF_ALL = frozenset({"seen"})
_OF_LINKS = _OF_MEMBERS | {"linked"}


def split(events: Iterable[ShareEvent], size: int, highest: int) -> Iterator[ShareEvent]:
    """Each partition has `size` of the offsets, up to `highest`; the offsets stay as they are."""
    for event in events:
        if event.kind in _OF_MEMBERS | _OF_ALL:
            yield event._replace(topic_id=None, topic=None, partition=-1)
        elif event.first_offset < 0:
            for partition in range(highest // size + 1):
                yield event._replace(partition=partition)
        else:
            for partition in range(event.first_offset // size, event.last_offset // size + 1):
                first = max(event.first_offset, partition * size)
                last = min(event.last_offset, (partition + 1) * size - 1)
                yield event._replace(partition=partition, first_offset=first, last_offset=last)


def walked_apart(events: Sequence[ShareEvent], *, since_touched: bool = False) -> list[Delivery]:
    """By one ledger for each partition. `since_touched` as of `by_partition`."""
    ledgers: list[Ledger] = []
    undecided: list[Delivery] = []
    rows: list[Delivery] = []
    for part in by_partition(events, since_touched=since_touched):
        ledger = Ledger()
        for row in ledger.deliveries(part):
            (undecided if is_undecided(row) else rows).append(row)
        ledgers.append(ledger)
    limit = limit_of(ledger.evidence for ledger in ledgers)
    return rows + [decided(row, limit) for row in undecided]


def by_partition(events: Sequence[ShareEvent], *, since_touched: bool = False) -> Iterator[list[ShareEvent]]:
    """With `since_touched`, partitions don't see what happened to a member before it acquired there, but for the
    connections that were closed just before."""
    touched: dict[int, dict[tuple[str | None, str | None], int]] = {}
    linked: dict[tuple[str | None, str | None], dict[str | None, ShareEvent]] = {}
    for event in events:
        if event.kind == "acquired" or (event.kind == "acknowledged" and event.value == RENEW):
            link = (event.member_id, event.broker)
            touched.setdefault(event.partition, {}).setdefault(link, event.at_us)
            linked.setdefault(link, {}).setdefault(event.connection_id, event)
    for partition in sorted({event.partition for event in events} - {-1}):
        links = touched.get(partition, {})
        part = [
            event
            for event in events
            if event.partition == partition
            or event.kind in _OF_ALL
            or (event.kind in _OF_MEMBERS and (event.member_id, event.broker) in links)
        ]
        part += [
            first._replace(kind="linked", partition=-1, topic_id=None)
            for link in links
            if len(linked[link]) > 1
            for first in linked[link].values()
        ]
        if since_touched:
            part = [event for event in part if event.kind not in _OF_LINKS or _is_seen(event, links)]
        yield sorted(part, key=lambda event: (event.at_us, event.order, event.kind == "linked"))


def _is_seen(event: ShareEvent, links: Mapping[tuple[str | None, str | None], int]) -> bool:
    before = CROSSED_US if event.kind == "disconnected" else 0
    return event.at_us >= links[event.member_id, event.broker] - before
