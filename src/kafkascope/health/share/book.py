"""Holds the state of a share group's ledger. A `Delivery` row is emitted as soon as a whole acquired range is settled;
the rules are in the neighbouring modules.

A piece that ended unfinished (released, expired, closed) waits in its partition: whether the broker archived it shows
only when its offsets are redelivered, or in the leader's state writes.
"""

from collections.abc import Iterator

from kafkascope.health.share.events import ACKNOWLEDGED, ARCHIVED, Delivery, Outcome, ShareEvent
from kafkascope.health.share.limit import IF_AT_LIMIT, UNANSWERED, DeliveryLimit, LimitEvidence, limit_of
from kafkascope.health.share.pieces import Partition, RangePiece

# share.record.lock.duration.ms, as a broker has it when nobody set it
_DEFAULT_LOCK_MS = 30_000

# A request log has milliseconds, and derives one time from the other.
CLOCK_SLACK_US = 10_000
# The explanation of an end may come slightly later in the recording.
LATE_US = 1_000_000
FOREVER = 1 << 63
# A response may cross with the end of its connection: one that was closed this long ago counts as closed.
CROSSED_US = 60_000_000
_ROWS_AT_ONCE = 1000

# Kafka delivers these offsets again, or archives them at the delivery limit.
UNFINISHED_OUTCOMES = frozenset({"released", "lock_expired", "disconnected", "session_closed"})

# A member on a broker.
Link = tuple[str | None, str | None]


class Book:
    """State is what is annotated here; `out` isn't, whose rows a walk passes on after every event."""

    now: int
    evidence: LimitEvidence
    limit: DeliveryLimit
    lock_ms: int | None
    partitions: dict[tuple[str | None, int], Partition]
    # By member on a broker: the connection whose end ends the session.
    sessions: dict[Link, str | None]
    sessions_of: dict[str, dict[Link, None]]
    # When a connection was closed: those of the last minute.
    closed: dict[str, int]
    forgotten: dict[Link, set[Partition]]
    touched: dict[str | None, dict[Partition, None]]
    seen: dict[str | None, int]

    def __init__(self, delivery_limit: int | None) -> None:
        self.out: list[Delivery] = []
        self.now = 0
        self.evidence = LimitEvidence()
        self.limit = limit_of((), delivery_limit)
        self.lock_ms = None
        self.partitions, self.touched = {}, {}
        self.sessions, self.sessions_of, self.closed = {}, {}, {}
        self.forgotten, self.seen = {}, {}

    def partition_of(self, event: ShareEvent) -> Partition:
        key = (event.topic_id, event.partition)
        partition = self.partitions.get(key)
        if partition is None:
            partition = self.partitions[key] = Partition()
        return partition

    def lock_end(self, piece: RangePiece, since: int) -> int:
        return since + (piece.lock_ms or self.lock_ms or _DEFAULT_LOCK_MS) * 1000

    def has_closed(self, connection: str | None, at_us: int) -> bool:
        return connection in self.closed and at_us - self.closed[connection] <= CROSSED_US

    def end(
        self,
        partition: Partition,
        piece: RangePiece,
        outcome: Outcome,
        rule: str,
        at_us: int,
        exchange_id: str | None,
        note: str | None = None,
    ) -> None:
        """Ends a held piece, for a reason that the recording shows."""
        written = piece.written
        if written is not None and written.state == ACKNOWLEDGED and rule != "acknowledged":
            self.by_written(piece)
        elif rule != "acknowledged" and self.ran_out(piece, at_us):
            return
        else:
            piece.end(outcome, rule, at_us, exchange_id, note)
            if piece.claim is not None:
                piece.notes = (*piece.notes, UNANSWERED)
            if outcome == "rejected":
                piece.archived = True
            elif outcome in UNFINISHED_OUTCOMES:
                if written is None:
                    return
                self.reveal(piece, written.state)
        self.settle(partition, piece)

    def expired(self, piece: RangePiece, rule: str, event: ShareEvent) -> None:
        at = min(self.lock_end(piece, piece.lock_high), event.at_us)
        note = None if piece.lock_ms or self.lock_ms else "lock_time_unknown"
        piece.end("lock_expired", rule, at, event.exchange_id, note)

    def ran_out(self, piece: RangePiece, at_us: int) -> bool:
        """Ends a held piece whose lock was over by then. The broker's timer decides alone: without a renewal, or an
        acknowledgement that may have counted, the lock ended first, whatever came after."""
        until = self.lock_end(piece, piece.lock_high)
        if piece.claim is not None or at_us <= until + CLOCK_SLACK_US or not (piece.lock_ms or self.lock_ms):
            return False
        piece.end("lock_expired", "lock_passed", until, None)
        return True

    def by_written(self, piece: RangePiece) -> None:
        """The leader wrote a state, and nothing else in the recording explains it."""
        written = piece.written
        assert written is not None
        if written.state == ACKNOWLEDGED:
            piece.end("accepted", "state_written", written.at_us, written.exchange_id, "acknowledgement_not_recorded")
        else:
            piece.end("moved", "state_written", written.at_us, written.exchange_id, "cause_not_recorded")
            piece.archived = written.state == ARCHIVED

    def reveal(self, piece: RangePiece, state: int) -> None:
        """What the leader did with a delivery that ended unfinished; archiving reveals the group's delivery limit."""
        piece.archived = state == ARCHIVED
        if piece.archived and piece.origin.delivery_count is not None:
            self.limit = self.evidence.archived_at(piece.origin.delivery_count, self.now)

    def settle(self, partition: Partition, piece: RangePiece) -> None:
        partition.drop(piece)
        self.settled(piece)

    def settled(self, piece: RangePiece) -> None:
        """Settles a piece that is in no partition any more. Without an outcome it was a gap, and makes no row."""
        acquired_range = piece.acquired_range
        if acquired_range is None:
            if piece.outcome is not None:
                self.out.append(_row(piece))
            return
        acquired_range.unsettled -= piece.last - piece.first + 1
        if piece.outcome is not None:
            acquired_range.done.append(piece)
        if not acquired_range.unsettled:
            self.out.extend(map(_row, acquired_range.joined()))

    def unrecorded(self, event: ShareEvent, outcome: Outcome, archived: bool) -> None:
        """Emits a delivery of which only an acknowledgement is known. It makes no piece: a recording that begins late,
        or has one broker of several, may have little else."""
        self.out.append(
            Delivery(
                event.group_id,
                event.topic,
                event.topic_id,
                event.partition,
                event.first_offset,
                event.last_offset,
                event.delivery_count,
                event.member_id,
                event.client_id,
                None,
                event.lock_timeout_ms,
                0,
                outcome,
                event.at_us,
                archived,
                None,
                event.exchange_id,
                event.broker,
                "acknowledged",
                "acquisition_not_recorded",
            )
        )

    def finish(self) -> Iterator[None]:
        """The end of the recording: what is held is open. Stops now and then, for rows to be taken."""
        for partition in self.partitions.values():
            pieces, partition.pieces, partition.starts = partition.pieces, [], []
            for piece in pieces:
                if piece.outcome is not None:
                    self.perhaps_archived(piece)
                elif piece.written is not None:
                    self.by_written(piece)
                else:
                    self._open(piece)
                self.settled(piece)
                if len(self.out) >= _ROWS_AT_ONCE:
                    yield
            for piece in partition.limbo:
                self.settled(piece)
            yield

    def _open(self, piece: RangePiece) -> None:
        until = max(self.seen.get(piece.origin.broker, 0), self.seen.get(None, 0)) or self.now
        if self.ran_out(piece, until):
            piece.notes = ("not_delivered_again",)
            self.perhaps_archived(piece)
        else:
            piece.end("open", "end_of_recording", None, None)
            if piece.claim is not None:
                piece.notes = (UNANSWERED,)

    def perhaps_archived(self, piece: RangePiece) -> None:
        """Nothing later can show the outcome of a delivery that ended unfinished: the delivery limit decides."""
        count = piece.origin.delivery_count
        if count is None:
            return
        if not self.limit.known:
            piece.notes = (*piece.notes, IF_AT_LIMIT)
        elif count >= self.limit.count:
            piece.archived = True


def _row(piece: RangePiece) -> Delivery:
    origin = piece.origin
    acquired = origin.kind == "acquired"
    notes = piece.notes if acquired else ("acquisition_not_recorded", *piece.notes)
    assert piece.outcome is not None
    return Delivery(
        origin.group_id,
        origin.topic,
        origin.topic_id,
        origin.partition,
        piece.first,
        piece.last,
        origin.delivery_count,
        origin.member_id,
        origin.client_id,
        origin.at_us if acquired else None,
        piece.lock_ms,
        piece.renewals,
        piece.outcome,
        piece.outcome_at,
        bool(piece.archived),
        origin.exchange_id if acquired else None,
        piece.outcome_exchange,
        origin.broker,
        piece.rule,
        ",".join(notes) if notes else None,
    )
