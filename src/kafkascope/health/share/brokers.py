"""Applies what brokers report about deliveries (`state_written`, `altered`, `broker_error`, `seen`): ends that no
member sent.

The leader writes only what changed (protocol note 49). A write of state 0 or 4 at the lock's time, with no other cause,
is an expiry. Any other write without a known cause is remembered, because the acknowledgement may come later in the
recording.
"""

from kafkascope.health.share.book import CLOCK_SLACK_US, FOREVER, UNFINISHED_OUTCOMES, Book
from kafkascope.health.share.events import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    ARCHIVING,
    GAP,
    OUTCOME_OF,
    REJECT,
    RELEASE,
    ShareEvent,
)
from kafkascope.health.share.limit import UNANSWERED
from kafkascope.health.share.pieces import Claim, Partition, RangePiece, Written

# UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID,
# FENCED_STATE_EPOCH: the broker has dropped what it knew of the partition's locks
LOST_PARTITION = frozenset({3, 6, 74, 100, 103, 124})


def state_written(book: Book, event: ShareEvent) -> None:
    partition = book.partition_of(event)
    if event.error_code:
        if event.error_code in LOST_PARTITION:
            lost(book, partition, event.broker, event)
        return
    # a record that is archiving isn't delivered again, whether or not its dead-letter record is written
    state = ARCHIVED if event.value == ARCHIVING else event.value
    first, last = event.first_offset, event.last_offset
    if state is not None and first >= 0:
        for overlap in partition.overlapping(first, last):
            count = overlap.origin.delivery_count
            if count is None or event.delivery_count in (None, count):
                piece = partition.cut(overlap, max(first, overlap.first), min(last, overlap.last))
                _written(book, event, partition, piece, state)
    start = event.start_offset
    if start is not None and start > partition.start_offset:
        partition.start_offset = start
        _passed(book, partition, start, event)


def _written(book: Book, event: ShareEvent, partition: Partition, piece: RangePiece, state: int) -> None:
    claim = piece.claim
    if claim is not None and _proves(state, claim):
        _claimed(book, partition, piece, claim, state)
    elif piece.outcome is not None:
        if piece.outcome in UNFINISHED_OUTCOMES and state != ACKNOWLEDGED:
            book.reveal(piece, state)
            # The acknowledgement did not count.
            piece.notes = tuple(note for note in piece.notes if note != UNANSWERED)
            book.settle(partition, piece)
    elif state != ACKNOWLEDGED and event.at_us >= book.lock_end(piece, piece.lock_low) - CLOCK_SLACK_US:
        book.expired(piece, "state_written", event)
        book.reveal(piece, state)
        book.settle(partition, piece)
    else:
        piece.written = Written(state, event.at_us, event.exchange_id)


def _proves(state: int, claim: Claim) -> bool:
    if claim.type == ACCEPT:
        return state == ACKNOWLEDGED
    return state == ARCHIVED if claim.type in (REJECT, GAP) else state != ACKNOWLEDGED


def _claimed(book: Book, partition: Partition, piece: RangePiece, claim: Claim, state: int) -> None:
    """Counts an acknowledgement without a response as accepted."""
    if claim.type == GAP:
        piece.outcome = None
    else:
        # The end of the connection would have had the same written.
        note = None
        if piece.outcome is not None and claim.type != ACCEPT:
            note = UNANSWERED if claim.type == RELEASE else book.limit.unanswered(piece.origin.delivery_count)
        piece.end(OUTCOME_OF[claim.type], "state_written", claim.at_us, claim.exchange_id, note)
        if claim.type == RELEASE:
            book.reveal(piece, state)
        else:
            piece.archived = claim.type == REJECT
    book.settle(partition, piece)


def _passed(book: Book, partition: Partition, start: int, event: ShareEvent) -> None:
    """The start offset passes offsets that are finished, and offsets that the log no longer has."""
    for overlap in partition.overlapping(0, start - 1):
        piece = partition.cut(overlap, overlap.first, min(start - 1, overlap.last))
        claim = piece.claim
        if claim is not None and claim.type != RELEASE:
            _claimed(book, partition, piece, claim, ARCHIVED)
        elif piece.outcome is not None:
            if piece.outcome in UNFINISHED_OUTCOMES:
                piece.archived = True
            book.settle(partition, piece)
        else:
            if piece.written is not None and piece.written.state == ACKNOWLEDGED:
                book.by_written(piece)
            elif not book.ran_out(piece, event.at_us):
                piece.end("moved", "start_offset_moved", event.at_us, event.exchange_id)
            partition.drop(piece)
            partition.limbo.append(piece)


def altered(book: Book, event: ShareEvent) -> None:
    start = event.start_offset
    rule = "offsets_altered" if start is None else "records_deleted"
    for partition in _named(book, event):
        last = FOREVER
        if start is None:
            partition.start_offset = -1
        else:
            last = start - 1
        for overlap in partition.overlapping(0, last):
            piece = partition.cut(overlap, overlap.first, min(last, overlap.last))
            if piece.outcome is None and not book.ran_out(piece, event.at_us):
                piece.end("moved", rule, event.at_us, event.exchange_id)
            if piece.outcome in UNFINISHED_OUTCOMES:
                book.perhaps_archived(piece)
            book.settle(partition, piece)


def _named(book: Book, event: ShareEvent) -> list[Partition]:
    """The partitions that the event names by topic id, or by name if the request has no id."""
    if event.topic_id is not None:
        return [book.partition_of(event)]
    return [
        partition
        for (_, number), partition in book.partitions.items()
        if number == event.partition and any(piece.origin.topic == event.topic for piece in partition.pieces)
    ]


def broker_error(book: Book, event: ShareEvent) -> None:
    if event.error_code in LOST_PARTITION:
        lost(book, book.partition_of(event), event.broker, event)


def lost(book: Book, partition: Partition, broker: str | None, event: ShareEvent) -> None:
    """The broker no longer leads the partition: its locks are void, for every member."""
    for piece in partition.pieces[:]:
        if piece.outcome is None and piece.origin.broker == broker and not book.ran_out(piece, event.at_us):
            piece.end("moved", "leader_moved", event.at_us, event.exchange_id)
            book.settle(partition, piece)


def seen(book: Book, event: ShareEvent) -> None:
    book.seen[event.broker] = event.at_us
