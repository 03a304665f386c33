"""Keeps what one broker locked for us in one partition: each acquired offset is held, queued or sent, until exactly one
result ends it. Nothing that isn't held can be acknowledged."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from kafkascope.client.share.values import (
    DELIVERED_AGAIN,
    NOT_HELD,
    UNKNOWN_OUTCOMES,
    AcknowledgeRange,
    AcknowledgeResult,
    Acquired,
    DeliveryId,
    Range,
    SharePartition,
)

_RENEW = 4
# What a piece waits for.
HELD, QUEUED, SENT = range(3)


class _Piece:
    """Offsets with one history. `type` is the acknowledgement that is queued or sent, `then` one that follows a renewal
    that is already sent."""

    __slots__ = ("delivery", "delivery_count", "first", "last", "retried", "state", "then", "type", "until")

    def __init__(self, first: int, last: int, delivery: DeliveryId, delivery_count: int, until: float) -> None:
        self.first, self.last = first, last
        self.delivery, self.delivery_count = delivery, delivery_count
        self.until = until
        self.state = HELD
        self.type: int | None = None
        self.then: int | None = None
        # Whether it was sent before, with a result that leaves its outcome open.
        self.retried = False

    def part(self, first: int, last: int) -> "_Piece":
        copy = _Piece(first, last, self.delivery, self.delivery_count, self.until)
        copy.state, copy.type, copy.then, copy.retried = self.state, self.type, self.then, self.retried
        return copy


class Holding:
    """`pieces` is the number of ranges that describe what is held."""

    __slots__ = ("_firsts", "_pieces", "_queued", "partition")

    def __init__(self, partition: SharePartition) -> None:
        self.partition = partition
        self._pieces: list[_Piece] = []
        self._firsts: list[int] = []
        # How many pieces are queued, so that nobody searches for none.
        self._queued = 0

    @property
    def pieces(self) -> int:
        return len(self._pieces)

    @property
    def offsets(self) -> int:
        return sum(piece.last - piece.first + 1 for piece in self._pieces)

    @property
    def unsettled(self) -> bool:
        return any(piece.state != HELD for piece in self._pieces)

    @property
    def queued(self) -> bool:
        return self._queued > 0

    def acquire(self, acquired: Iterable[Acquired], delivery: DeliveryId, until: float) -> list[AcknowledgeResult]:
        """Takes ranges over. Offsets that were held already are delivered again: what was queued for them is void."""
        void: list[AcknowledgeResult] = []
        for first, last, delivery_count in acquired:
            void += self._remove(first, last, DELIVERED_AGAIN)
            self._insert(_Piece(first, last, delivery, delivery_count, until))
        return void

    def acknowledge(
        self, first: int, last: int, kind: int, delivery: DeliveryId | None = None
    ) -> list[AcknowledgeResult]:
        """Queues it for the offsets that are held, and returns the others as refused; with `delivery` also those that
        were delivered again since."""
        refused: list[AcknowledgeResult] = []
        position = first
        for piece in self._cut_out(first, last):
            if piece.first > position:
                refused.append(self._refusal(position, piece.first - 1, kind, NOT_HELD))
            position = piece.last + 1
            if delivery is not None and piece.delivery != delivery:
                refused.append(self._refusal(piece.first, piece.last, kind, DELIVERED_AGAIN))
            elif piece.state == HELD:
                self._queue(piece, kind)
            elif piece.type != _RENEW or kind == _RENEW or piece.then is not None:
                refused.append(self._refusal(piece.first, piece.last, kind, NOT_HELD))
            elif piece.state == QUEUED:
                piece.type = kind
            else:
                piece.then = kind
        if position <= last:
            refused.append(self._refusal(position, last, kind, NOT_HELD))
        return refused

    def queued_renewal(self) -> bool:
        return self._queued > 0 and any(piece.state == QUEUED and piece.type == _RENEW for piece in self._pieces)

    def take(self, *, renewals: bool) -> list[AcknowledgeRange]:
        """What is queued, as sent from now on; without renewals they stay queued."""
        if not self._queued:
            return []
        ranges: list[AcknowledgeRange] = []
        for piece in self._pieces:
            if piece.state != QUEUED or (piece.type == _RENEW and not renewals):
                continue
            piece.state = SENT
            self._queued -= 1
            kind = piece.type
            assert kind is not None
            if ranges and ranges[-1].type == kind and ranges[-1].last == piece.first - 1:
                ranges[-1] = AcknowledgeRange(ranges[-1].first, piece.last, kind)
            else:
                ranges.append(AcknowledgeRange(piece.first, piece.last, kind))
        return ranges

    def settle(self, code: int, now: float, lock: float | None) -> list[AcknowledgeResult]:
        """The result of all that was sent. A renewal that counts keeps its offsets, anything else ends them."""
        results: list[AcknowledgeResult] = []
        kept: list[_Piece] = []
        for piece in self._pieces:
            if piece.state != SENT:
                kept.append(piece)
                continue
            assert piece.type is not None
            unknown = code in UNKNOWN_OUTCOMES or (code != 0 and piece.retried)
            _append(
                results, AcknowledgeResult(self.partition, piece.first, piece.last, piece.type, code, True, unknown)
            )
            if piece.type == _RENEW and code == 0:
                piece.until = now + lock if lock else piece.until
                self._again(piece)
                kept.append(piece)
            elif piece.then is not None:
                _append(results, self._refusal(piece.first, piece.last, piece.then, code))
        self._replace(kept)
        return results

    def put_back(self, now: float, code: int) -> list[AcknowledgeResult]:
        """What was sent is queued again, for another try; it ends with `code` where the lock has ended."""
        late = [piece for piece in self._pieces if piece.state == SENT and piece.until <= now]
        for piece in self._pieces:
            if piece.state == SENT and piece.until > now:
                piece.state, piece.retried = QUEUED, True
                self._queued += 1
        return self.settle(code, now, None) if late else []

    def end(self, code: int) -> tuple[list[AcknowledgeResult], int]:
        """Ends everything: the results of what was queued or sent, and how many offsets were only held."""
        results: list[AcknowledgeResult] = []
        unacknowledged = 0
        for piece in self._pieces:
            if piece.type is None:
                unacknowledged += piece.last - piece.first + 1
            else:
                for result in self._ended(piece, code):
                    _append(results, result)
        self._replace([])
        return results, unacknowledged

    def refuse_queued(self, code: int) -> list[AcknowledgeResult]:
        """Ends what is queued, where it can't be sent."""
        results: list[AcknowledgeResult] = []
        kept = []
        for piece in self._pieces:
            if piece.state == QUEUED:
                for result in self._ended(piece, code):
                    _append(results, result)
            else:
                kept.append(piece)
        self._replace(kept)
        return results

    def drop_expired(self, now: float) -> int:
        """Forgets offsets whose lock ended this long ago, unless something is under way for them; returns how many."""
        dropped = 0
        if any(piece.until <= now and piece.state == HELD for piece in self._pieces):
            dropped = sum(p.last - p.first + 1 for p in self._pieces if p.until <= now and p.state == HELD)
            self._replace([piece for piece in self._pieces if piece.until > now or piece.state != HELD])
        return dropped

    def held(self, first: int, last: int, delivery: DeliveryId | None = None) -> Iterator[tuple[Range, float]]:
        """Ranges of those offsets that wait for an acknowledgement, and when the lock of each ends."""
        start = max(bisect_right(self._firsts, first) - 1, 0)
        for piece in self._pieces[start : bisect_right(self._firsts, last)]:
            if piece.state == HELD and piece.last >= first and (delivery is None or piece.delivery == delivery):
                yield Range(max(piece.first, first), min(piece.last, last)), piece.until

    def waiting(self) -> Iterator[tuple[Acquired, float]]:
        """All that waits for an acknowledgement, with its delivery count, and when its lock ends."""
        for piece in self._pieces:
            if piece.state == HELD:
                yield Acquired(piece.first, piece.last, piece.delivery_count), piece.until

    def find(self, offset: int, delivery: DeliveryId | None = None) -> tuple[int, float] | None:
        """The delivery count and the end of the lock of an offset; None if it isn't ours, or not by that delivery."""
        pieces = self._pieces
        index = bisect_right(pieces, offset, key=_first) - 1
        if index < 0 or pieces[index].last < offset or (delivery is not None and pieces[index].delivery != delivery):
            return None
        return pieces[index].delivery_count, pieces[index].until

    def _queue(self, piece: _Piece, kind: int) -> None:
        piece.state, piece.type = QUEUED, kind
        self._queued += 1

    def _again(self, piece: _Piece) -> None:
        """After a renewal: held, or queued for what was asked in the meantime."""
        following, piece.then, piece.type, piece.state = piece.then, None, None, HELD
        piece.retried = False
        if following is not None:
            self._queue(piece, following)

    def _ended(self, piece: _Piece, code: int) -> Iterator[AcknowledgeResult]:
        assert piece.type is not None
        # Its response is still to come, or won't come.
        unknown = piece.state == SENT or piece.retried
        yield AcknowledgeResult(self.partition, piece.first, piece.last, piece.type, code, unknown, unknown)
        if piece.then is not None:
            yield self._refusal(piece.first, piece.last, piece.then, code)

    def _refusal(self, first: int, last: int, kind: int, code: int) -> AcknowledgeResult:
        return AcknowledgeResult(self.partition, first, last, kind, code, False)

    def _insert(self, piece: _Piece) -> None:
        index = bisect_right(self._firsts, piece.first)
        self._pieces.insert(index, piece)
        self._firsts.insert(index, piece.first)

    def _remove(self, first: int, last: int, code: int) -> list[AcknowledgeResult]:
        gone = self._cut_out(first, last)
        if not gone:
            return []
        results = [result for piece in gone if piece.type is not None for result in self._ended(piece, code)]
        ids = set(map(id, gone))
        self._replace([piece for piece in self._pieces if id(piece) not in ids])
        return results

    def _cut_out(self, first: int, last: int) -> list[_Piece]:
        """The pieces within the range, after those at its ends were cut in two."""
        start = max(bisect_right(self._firsts, first) - 1, 0)
        end = bisect_right(self._firsts, last)
        pieces: list[_Piece] = []
        for piece in self._pieces[start:end]:
            if piece.last < first:
                continue
            if piece.first < first:
                rest = piece.part(first, piece.last)
                piece.last = first - 1
                self._add_cut(rest)
                piece = rest
            if piece.last > last:
                self._add_cut(piece.part(last + 1, piece.last))
                piece.last = last
            pieces.append(piece)
        return pieces

    def _add_cut(self, piece: _Piece) -> None:
        self._queued += piece.state == QUEUED
        self._insert(piece)

    def _replace(self, pieces: list[_Piece]) -> None:
        self._pieces = pieces
        self._firsts = [piece.first for piece in pieces]
        self._queued = sum(piece.state == QUEUED for piece in pieces)


def _first(piece: _Piece) -> int:
    return piece.first


def _append(results: list[AcknowledgeResult], result: AcknowledgeResult) -> None:
    """Joined with the last one if that is of the same kind and ends before it."""
    if results:
        last = results[-1]
        same = (last.type, last.code, last.unknown) == (result.type, result.code, result.unknown)
        if same and last.sent == result.sent and last.last == result.first - 1:
            results[-1] = replace(last, last=result.last)
            return
    results.append(result)
