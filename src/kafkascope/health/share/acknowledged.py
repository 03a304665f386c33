"""Applies `acknowledged` events of a share group: deliveries end, are renewed, or stay as they are.

The broker's response decides: 0 counts, an error undoes every acknowledgement of that request for the partition
(SharePartition.rollbackOrProcessStateUpdates), no response leaves a claim that something else must prove.
"""

from kafkascope.health.share.book import FOREVER, LATE_US, Book
from kafkascope.health.share.brokers import LOST_PARTITION, lost
from kafkascope.health.share.events import ACCEPT, GAP, OUTCOME_OF, REJECT, RELEASE, RENEW, ShareEvent
from kafkascope.health.share.pieces import NO_NOTES, Claim, Partition, RangePiece

INVALID_RECORD_STATE = 121
_ENDING = frozenset({GAP, ACCEPT, RELEASE, REJECT})


def acknowledged(book: Book, event: ShareEvent) -> None:
    partition = book.partition_of(event)
    error = event.error_code
    if error is None:
        _unanswered(event, partition)
    elif error:
        _refused(book, event, partition)
    elif not _is_duplicate(event, partition):
        _counted(book, event, partition)


def _is_duplicate(event: ShareEvent, partition: Partition) -> bool:
    """The same acknowledgement twice, as in a recording that was merged from two."""
    place = (event.first_offset, event.last_offset)
    if partition.acked_by != event.exchange_id or event.exchange_id is None:
        partition.acked_by = event.exchange_id
        partition.acked = {place}
        return False
    if place in partition.acked:
        return True
    partition.acked.add(place)
    return False


def _counted(book: Book, event: ShareEvent, partition: Partition) -> None:
    first, last, member = event.first_offset, event.last_offset, event.member_id
    free = first
    for held in partition.overlapping(first, last):
        # Error 0 proves that the member held it, whatever was inferred before.
        if held.origin.member_id != member or (held.outcome is not None and held.rule == "acknowledged"):
            continue
        start, end = max(first, held.first), min(last, held.last)
        if free < start:
            _unheld(book, event, partition, free, start - 1)
        free = end + 1
        exact = held.first == start and held.last == end
        _taken(book, event, partition, held if exact else partition.cut(held, start, end))
    if free <= last:
        _unheld(book, event, partition, free, last)


def _taken(book: Book, event: ShareEvent, partition: Partition, piece: RangePiece) -> None:
    kind = event.value
    if kind not in _ENDING and kind != RENEW:
        # A type that isn't in any known release.
        return
    piece.outcome, piece.claim, piece.archived, piece.notes = None, None, None, NO_NOTES
    if kind == RENEW:
        piece.renewals += 1
        piece.written = None
        piece.lock_low = event.at_us
        piece.lock_high = max(event.at_us, event.answered_us or 0)
        piece.lock_ms = event.lock_timeout_ms or piece.lock_ms
    elif kind == GAP:
        book.settle(partition, piece)
    else:
        assert kind is not None
        book.end(partition, piece, OUTCOME_OF[kind], "acknowledged", event.at_us, event.exchange_id)


def _unanswered(event: ShareEvent, partition: Partition) -> None:
    kind = event.value
    if kind not in _ENDING:
        return
    assert kind is not None
    for held in partition.overlapping(event.first_offset, event.last_offset):
        if held.outcome is None and held.origin.member_id == event.member_id:
            piece = partition.cut(held, max(event.first_offset, held.first), min(event.last_offset, held.last))
            piece.claim = Claim(kind, event.at_us, event.exchange_id)


def _refused(book: Book, event: ShareEvent, partition: Partition) -> None:
    leader = partition.links.get(event.member_id, (event.broker, None))[0]
    if leader != event.broker:
        # The member found a leader other than the one that it acquired from.
        lost(book, partition, leader, event)
    elif event.error_code in LOST_PARTITION:
        lost(book, partition, event.broker, event)
    elif event.error_code == INVALID_RECORD_STATE:
        # The error doesn't name offsets, but a lock that had run out by then no longer belonged to the member.
        for overlap in partition.overlapping(event.first_offset, event.last_offset):
            held = overlap.outcome is None and overlap.origin.member_id == event.member_id
            if held and event.at_us >= book.lock_end(overlap, overlap.lock_high):
                first, last = max(event.first_offset, overlap.first), min(event.last_offset, overlap.last)
                book.expired(partition.cut(overlap, first, last), "refused_late", event)


def _unheld(book: Book, event: ShareEvent, partition: Partition, first: int, last: int) -> None:
    """The broker accepted an acknowledgement of offsets that the member isn't known to hold."""
    kind = event.value
    for piece in partition.limbo:
        if (
            piece.origin.member_id == event.member_id
            and piece.first <= last
            and piece.last >= first
            and kind in OUTCOME_OF
        ):
            break
    else:
        if kind in OUTCOME_OF or kind == RENEW:
            is_whole = first == event.first_offset and last == event.last_offset
            partition.early.append(event if is_whole else event._replace(first_offset=first, last_offset=last))
            unrecorded(book, partition, event.at_us - LATE_US)
        return
    start, end = max(first, piece.first), min(last, piece.last)
    partition.limbo.remove(piece)
    before, after = (piece.first, start - 1), (end + 1, piece.last)
    partition.limbo.extend(piece.clone(*offsets) for offsets in (before, after) if offsets[0] <= offsets[1])
    piece.first, piece.last = start, end
    piece.end(OUTCOME_OF[kind], "acknowledged", event.at_us, event.exchange_id)
    piece.archived = kind == REJECT
    book.settled(piece)
    if first < start:
        _unheld(book, event, partition, first, start - 1)
    if end < last:
        _unheld(book, event, partition, end + 1, last)


def acknowledged_early(book: Book, event: ShareEvent, partition: Partition) -> None:
    """Matches acknowledgements that come before their acquisition in the recording."""
    unrecorded(book, partition, event.at_us - LATE_US)
    member = event.member_id
    waiting, partition.early = partition.early, []
    for early in waiting:
        # Most wait for other offsets: keep these without copying them. A request can't acknowledge what its own
        # response acquires.
        mine = early.member_id == member and early.exchange_id != event.exchange_id
        if mine and (partition.limbo or partition.overlapping(early.first_offset, early.last_offset)):
            _counted(book, early, partition)
        else:
            partition.early.append(early)


def unrecorded(book: Book, partition: Partition, until: int = FOREVER) -> None:
    """Emits acknowledgements whose acquisition didn't follow: it isn't in the recording."""
    while partition.early and partition.early[0].at_us < until:
        early = partition.early.pop(0)
        kind = early.value
        if kind in OUTCOME_OF:
            book.unrecorded(early, OUTCOME_OF[kind], kind == REJECT)
        elif not partition.overlapping(early.first_offset, early.last_offset):
            at = early.at_us
            piece = RangePiece(early, early.first_offset, early.last_offset, at, at, early.lock_timeout_ms)
            piece.renewals = 1
            partition.put(piece)
            book.touched.setdefault(early.member_id, {})[partition] = None
