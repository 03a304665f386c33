"""Splits the acquired ranges of one share-partition into pieces where offsets end differently, and rejoins them where
they end alike.

No offset is in two pieces. Time and memory grow with the number of pieces, never with the number of offsets.
"""

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from kafkascope.health.share.events import Outcome, ShareEvent

NO_NOTES: tuple[str, ...] = ()


class Claim(NamedTuple):
    """An acknowledgement without a response: it may have counted."""

    type: int
    at_us: int
    exchange_id: str | None


class Written(NamedTuple):
    """A state that the partition's leader wrote, with no known cause yet."""

    state: int
    at_us: int
    exchange_id: str | None


class RangePiece:
    """Offsets of one delivery with the same outcome. `outcome` is None while they are held; one that ended unfinished
    stays, with its outcome, until the offsets are redelivered or the recording ends."""

    __slots__ = (
        "acquired_range",
        "archived",
        "claim",
        "first",
        "last",
        "lock_high",
        "lock_low",
        "lock_ms",
        "notes",
        "origin",
        "outcome",
        "outcome_at",
        "outcome_exchange",
        "renewals",
        "rule",
        "written",
    )

    acquired_range: "AcquiredRange | None"
    archived: bool | None
    claim: Claim | None
    first: int
    last: int
    # The broker started the lock between these two times.
    lock_high: int
    lock_low: int
    lock_ms: int | None
    notes: tuple[str, ...]
    origin: ShareEvent
    outcome: Outcome | None
    outcome_at: int | None
    outcome_exchange: str | None
    renewals: int
    rule: str
    written: Written | None

    def __init__(
        self, origin: ShareEvent, first: int, last: int, lock_low: int, lock_high: int, lock_ms: int | None
    ) -> None:
        self.origin = origin
        self.first = first
        self.last = last
        self.lock_low = lock_low
        self.lock_high = lock_high
        self.lock_ms = lock_ms
        self.renewals = 0
        self.claim = None
        self.written = None
        self.outcome = None
        self.outcome_at = None
        self.outcome_exchange = None
        self.rule = ""
        self.archived = None
        self.notes = NO_NOTES
        self.acquired_range = None

    def end(
        self, outcome: Outcome, rule: str, at_us: int | None, exchange_id: str | None, note: str | None = None
    ) -> None:
        self.outcome = outcome
        self.rule = rule
        self.outcome_at = at_us
        self.outcome_exchange = exchange_id
        self.notes = NO_NOTES if note is None else (note,)

    def clone(self, first: int, last: int) -> "RangePiece":
        """A copy for part of the offsets, with the same state."""
        acquired_range = self.acquired_range
        if acquired_range is None:
            acquired_range = self.acquired_range = AcquiredRange(self.last - self.first + 1)
        other = RangePiece(self.origin, first, last, self.lock_low, self.lock_high, self.lock_ms)
        other.renewals = self.renewals
        other.claim = self.claim
        other.written = self.written
        other.outcome = self.outcome
        other.outcome_at = self.outcome_at
        other.outcome_exchange = self.outcome_exchange
        other.rule = self.rule
        other.archived = self.archived
        other.notes = self.notes
        other.acquired_range = acquired_range
        return other


class AcquiredRange:
    """The pieces of one acquired range: `unsettled` offsets aren't settled, `done` are."""

    __slots__ = ("done", "unsettled")

    unsettled: int
    done: list[RangePiece]

    def __init__(self, unsettled: int) -> None:
        self.unsettled = unsettled
        self.done = []

    def joined(self) -> list[RangePiece]:
        """Merges neighbours with equal state, and returns them. The range drops them: the caller owns them, and a
        reference cycle would keep both alive."""
        done, self.done = self.done, []
        pieces: list[RangePiece] = []
        for piece in sorted(done, key=_FIRST):
            if pieces and pieces[-1].last + 1 == piece.first and _FATE(pieces[-1]) == _FATE(piece):
                pieces[-1].last = piece.last
            else:
                pieces.append(piece)
        return pieces


_FIRST = attrgetter("first")
_FATE = attrgetter("outcome", "outcome_at", "outcome_exchange", "rule", "archived", "notes", "renewals", "lock_ms")


class Partition:
    """`pieces` by offset. `limbo` are pieces whose offsets were redelivered for no known reason, `early`
    acknowledgements that match no delivery yet: merged recordings, and logs in milliseconds, aren't exactly in
    order."""

    __slots__ = ("acked", "acked_by", "early", "limbo", "links", "pieces", "start_offset", "starts")

    starts: list[int]
    pieces: list[RangePiece]
    limbo: list[RangePiece]
    early: list[ShareEvent]
    start_offset: int
    # By member: the broker and connection that it last acquired from.
    links: dict[str | None, tuple[str | None, str | None]]
    acked_by: str | None
    acked: set[tuple[int, int]]

    def __init__(self) -> None:
        self.starts, self.pieces, self.limbo, self.early = [], [], [], []
        self.start_offset = -1
        self.links = {}
        self.acked_by, self.acked = None, set()

    def has_of(self, member: str | None) -> bool:
        """Whether a piece is of that member."""
        return any(piece.origin.member_id == member for pieces in (self.pieces, self.limbo) for piece in pieces)

    def overlapping(self, first: int, last: int) -> list[RangePiece]:
        starts = self.starts
        index = bisect_right(starts, first) - 1
        if index < 0 or self.pieces[index].last < first:
            index += 1
        return self.pieces[index : bisect_right(starts, last, index)]

    def put(self, piece: RangePiece) -> None:
        index = bisect_right(self.starts, piece.first)
        self.starts.insert(index, piece.first)
        self.pieces.insert(index, piece)

    def drop(self, piece: RangePiece) -> None:
        index = bisect_right(self.starts, piece.first) - 1
        del self.starts[index]
        del self.pieces[index]

    def cut(self, piece: RangePiece, first: int, last: int) -> RangePiece:
        """Cuts the piece from `first` to `last` out of a piece that contains it; the remainders on both sides stay."""
        if piece.first < first:
            right = piece.clone(first, piece.last)
            piece.last = first - 1
            self.put(right)
            piece = right
        if piece.last > last:
            left_piece = piece.clone(piece.first, last)
            self.starts[bisect_right(self.starts, piece.first) - 1] = last + 1
            piece.first = last + 1
            self.put(left_piece)
            piece = left_piece
        return piece
