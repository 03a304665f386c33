"""Applies `acquired` events of a share group: new ranges are held, and earlier holds of these offsets end.

Offsets that are redelivered prove that their delivery ended. Acquiring adds one to the delivery count and isn't written
to the coordinator, so a count that doesn't rise means that a leader reloaded its state (SharePartition, 4.0 to 4.3).
"""

from kafkascope.health.share.acknowledged import acknowledged_early
from kafkascope.health.share.book import CLOCK_SLACK_US, Book
from kafkascope.health.share.brokers import lost
from kafkascope.health.share.events import RELEASE, ShareEvent
from kafkascope.health.share.pieces import NO_NOTES, AcquiredRange, Partition, RangePiece
from kafkascope.health.share.sessions import opened

# Outcomes inferred only from a lock's time: a count that didn't rise overrides them.
_INFERRED = frozenset({"lock_passed", "refused_late"})


def acquired(book: Book, event: ShareEvent) -> None:
    partition = book.partition_of(event)
    first, last, at = event.first_offset, event.last_offset, event.at_us
    if partition.links.get(event.member_id) != (event.broker, event.connection_id):
        _linked(book, event, partition)
    lock_ms = event.lock_timeout_ms or None
    if lock_ms is not None:
        book.lock_ms = lock_ms
    asked_us = event.asked_us
    low = asked_us if asked_us is not None and asked_us < at else at
    pieces = partition.pieces
    if not pieces or pieces[-1].last < first:
        piece = RangePiece(event, first, last, low, at, lock_ms)
        partition.starts.append(first)
        pieces.append(piece)
        added = [piece]
    else:
        added = _again(book, event, partition, low, lock_ms)
    if book.forgotten:
        book.forgotten.get((event.member_id, event.broker), set()).discard(partition)
    if book.closed and book.has_closed(event.connection_id, at):
        # The response crossed with the member's FIN: the broker learns of that after acquiring.
        for piece in added:
            book.end(partition, piece, "disconnected", "connection_closed", at, None)
    elif partition.early:
        acknowledged_early(book, event, partition)


def _linked(book: Book, event: ShareEvent, partition: Partition) -> None:
    """A member reaches a partition's leader at one address. A different address means a different leader, and that the
    locks from the first one are lost. Members may use different listeners, so only this member's addresses count."""
    member, broker, connection = event.member_id, event.broker, event.connection_id
    old = partition.links.get(member)
    partition.links[member] = (broker, connection)
    book.touched.setdefault(member, {})[partition] = None
    if old is not None and old[0] != broker:
        lost(book, partition, old[0], event)
    if book.sessions.get((member, broker)) != connection:
        opened(book, (member, broker), connection)


def _again(book: Book, event: ShareEvent, partition: Partition, low: int, lock_ms: int | None) -> list[RangePiece]:
    first, last = event.first_offset, event.last_offset
    free = first
    ranges: list[tuple[int, int]] = []
    for overlap in partition.overlapping(first, last):
        start, end = max(first, overlap.first), min(last, overlap.last)
        if overlap.origin.exchange_id == event.exchange_id is not None:
            # The same response twice.
            if free < start:
                ranges.append((free, start - 1))
            free = end + 1
        else:
            _superseded(book, event, partition, partition.cut(overlap, start, end))
    if free <= last:
        ranges.append((free, last))
    added = [RangePiece(event, start, end, low, event.at_us, lock_ms) for start, end in ranges]
    acquired_range = AcquiredRange(sum(end - start + 1 for start, end in ranges)) if len(ranges) > 1 else None
    for piece in added:
        piece.acquired_range = acquired_range
        partition.put(piece)
    return added


def _superseded(book: Book, event: ShareEvent, partition: Partition, piece: RangePiece) -> None:
    """Offsets that were held, or had been, are delivered again. The first rule that fits decides the outcome."""
    before, now = piece.origin.delivery_count, event.delivery_count
    rises = before is None or now is None or now > before
    if rises and before is not None:
        book.limit = book.evidence.passed_at(before, event.at_us, book.limit)
    piece.archived = False
    claim = piece.claim
    if piece.outcome is not None and (rises or piece.rule not in _INFERRED):
        if claim is not None:
            # It didn't count.
            piece.notes = NO_NOTES
    elif not rises:
        piece.end("moved", "state_reloaded", event.at_us, event.exchange_id)
    elif claim is not None and claim.type == RELEASE:
        piece.end("released", "delivered_again", claim.at_us, claim.exchange_id)
    elif piece.written is None and event.at_us >= book.lock_end(piece, piece.lock_low) - CLOCK_SLACK_US:
        book.expired(piece, "delivered_again", event)
    else:
        piece.end("moved", "unexplained", event.at_us, event.exchange_id, "cause_not_recorded")
        partition.drop(piece)
        partition.limbo.append(piece)
        return
    if before is not None and now is not None and now > before + 1:
        piece.notes = (*piece.notes, "deliveries_between_not_recorded")
    book.settle(partition, piece)
