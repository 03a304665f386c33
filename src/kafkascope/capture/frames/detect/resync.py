"""The next true frame of a stream: a run of bytes without a gap in, chains of frames that agree out. One header that
fits goes wrong in real traffic; frames that follow each other and decode do not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from kafkascope.capture.base.flow import Int64s, Uint8s
from kafkascope.capture.frames.detect.candidates import MOST_CANDIDATES, request_candidates, response_candidates
from kafkascope.capture.frames.detect.credit import (
    CANDIDATE,
    CAREFUL,
    CAREFUL_BYTES,
    CHAIN,
    LOOK,
    QUICK,
    QUICK_BYTES,
    SCAN_BYTES,
    Credit,
)
from kafkascope.capture.frames.detect.grade import MORE, SMALLEST_REQUEST, Grade, Graded, grade_request, grade_response
from kafkascope.capture.frames.frame_table import Given
from kafkascope.limits import MAX_FRAME_BYTES

# Frames of a chain that are looked at: more would prove no more.
LONGEST_CHAIN = 6
# Grades that are remembered of one run: many times the places that are looked at again.
MOST_GRADES = 4_096
# Below this a run is looked at anew each time: a request may have come that a response belongs to.
LOOKED_AT_ANEW = 16_384
# Bytes that nobody looked at are looked at anew with each piece up to this.
MOST_BARREN = 4_096
# Frames between the start of a run and a true one, and how far apart their correlation ids are.
MOST_STEPS = 64
SASL_HANDSHAKE = 17
# Raw tokens behind a handshake, as far as frames are looked for behind them: Kerberos sends three.
MOST_TOKENS, MOST_TOKEN_BYTES = 4, 65_536

_NO_FRAME = (Grade.BAD, Grade.MORE)
Asked = Mapping[int, tuple[int, int]]


class Chain(NamedTuple):
    """Frames from `at` on. `broken`: what follows them is no frame; otherwise it is not there yet."""

    at: int
    frames: tuple[Graded, ...]
    broken: bool
    end: int

    @property
    def strong(self) -> list[Graded]:
        return [frame for frame in self.frames if frame.grade is Grade.STRONG]


class _Looked:
    """What is known of a run in one of two roles: how far it was looked at, which places may be frames, and grades. Of
    a run shorter than `due` these places say no more than before."""

    __slots__ = ("candidates", "due", "grades", "scanned")

    def __init__(self) -> None:
        self.scanned = 0
        self.due = 0
        self.candidates: list[int] = []
        self.grades: dict[int, Graded] = {}

    def drop(self, count: int) -> None:
        self.scanned = max(0, self.scanned - count)
        self.due = 0
        self.candidates = [place - count for place in self.candidates if place >= count]
        self.grades = {}


Mark = tuple[int, int, int]


class Parts(NamedTuple):
    """Of neighbouring pieces that come together. Arrays: of very many nobody looks at a single piece."""

    kinds: Uint8s
    lengths: Int64s
    times: Int64s
    packets: Int64s

    def marks(self, place: int) -> Iterator[Mark]:
        places = accumulate(self.lengths.tolist(), initial=place)
        return zip(places, self.times.tolist(), self.packets.tolist(), strict=False)


class Run:
    """Bytes of a stream without a gap, in `count` pieces. `aligned`: a frame begins with the first of them, if this is
    Kafka at all. No frame begins in the first `skipped` bytes."""

    __slots__ = ("_marks", "_parts", "_requests", "_responses", "aligned", "count", "data", "offset", "skipped")

    def __init__(self, offset: int, *, aligned: bool, skipped: int = 0) -> None:
        self.data = bytearray()
        self.offset = offset
        self.aligned = aligned
        self.skipped = skipped
        self.count = 0
        self._marks: list[Mark] = []
        self._parts: list[tuple[int, int, Parts]] = []  # not among the marks yet: (index there, place, parts)
        # Made when it is looked at: of very many runs most never are.
        self._requests: _Looked | None = None
        self._responses: _Looked | None = None

    def add(self, data: bytes, time: int, packet: int, parts: Parts | None = None) -> None:
        if parts is None:
            self.count += 1
            self._marks.append((len(self.data), time, packet))
        else:
            self.count += len(parts.lengths)
            self._parts.append((len(self._marks), len(self.data), parts))
        self.data += data

    @property
    def marks(self) -> list[Mark]:
        """(place in data, time, packet) of each piece"""
        if self._parts:
            marks, done = [], 0
            for index, place, parts in self._parts:
                marks += self._marks[done:index]
                marks += parts.marks(place)
                done = index
            self._marks, self._parts = marks + self._marks[done:], []
        return self._marks

    def is_barren(self, more: bytes) -> bool:
        """Whether no request begins in what nobody looked at yet, with `more` after it, and none waits for its end."""
        looked = self._requests
        if self.aligned:
            length = int.from_bytes(self.data[:4], "big")
            return len(self.data) >= 4 and not SMALLEST_REQUEST <= length <= MAX_FRAME_BYTES
        if looked is not None and looked.candidates:
            return False
        start = self.skipped if looked is None else max(looked.scanned, self.skipped)
        return len(self.data) - start <= MOST_BARREN and not request_candidates(self.data[start:] + more, 0)[0]

    def drop(self, count: int) -> None:
        """Without the first `count` bytes."""
        del self.data[:count]
        before = [mark for mark in self.marks if mark[0] <= count]
        kept = [(place - count, time, packet) for place, time, packet in self.marks if place > count]
        self._marks = ([(0, before[-1][1], before[-1][2])] if before and self.data else []) + kept
        self.count = len(self._marks)
        self.offset += count
        self.aligned = False
        self.skipped = max(0, self.skipped - count)
        for looked in (self._requests, self._responses):
            if looked is not None:
                looked.drop(count)

    @property
    def looked_for_responses(self) -> _Looked:
        if self._responses is None:
            self._responses = _Looked()
        return self._responses

    def requests(self, credit: Credit) -> list[Chain]:
        """Chains of request frames that still may be true, the earliest first; of those that there is credit for."""
        looked = self._requests = self._requests or _Looked()
        if self.aligned:
            credit.spend(LOOK)
            chain = self._chain(0, looked, None, credit)
            return [] if chain.broken and not chain.frames else [chain]
        return self._look(looked, None, credit)

    def responses(self, asked: Asked, credit: Credit, *, anew: bool = False) -> list[Chain]:
        """The same of responses to requests that are known."""
        looked = self.looked_for_responses
        if anew or len(self.data) <= LOOKED_AT_ANEW:
            looked.scanned = looked.due = 0
            looked.candidates = []
            looked.grades = {at: known for at, known in looked.grades.items() if known.api_key >= 0}
        return self._look(looked, asked, credit)

    def _look(self, looked: _Looked, asked: Asked | None, credit: Credit) -> list[Chain]:
        """What was not scanned yet, after the places that were kept."""
        credit.spend(LOOK + (0 if asked is None else len(asked)))
        kept = looked.candidates[-MOST_CANDIDATES:]
        chains: list[Chain] = []
        if len(self.data) >= looked.due:
            looked.due = MAX_FRAME_BYTES + len(self.data) + 4
            kept, chains = self._kept(looked, kept, asked, credit)
        identities = None if asked is None else np.array(sorted(asked), np.int64)
        more = MOST_CANDIDATES
        while more == MOST_CANDIDATES and not credit.is_spent:
            start = max(looked.scanned, self.skipped)
            if identities is None:
                found, looked.scanned = request_candidates(self.data, start)
            else:
                found, looked.scanned = response_candidates(self.data, start, identities)
            credit.spend((looked.scanned - start) // SCAN_BYTES)
            kept_too, more_chains = self._kept(looked, found, asked, credit)
            kept += kept_too
            chains += more_chains
            more = len(found)
        looked.candidates = kept
        if len(looked.grades) > MOST_GRADES:
            looked.grades.clear()
        return chains

    def _kept(
        self, looked: _Looked, places: list[int], asked: Asked | None, credit: Credit
    ) -> tuple[list[int], list[Chain]]:
        """A place whose frame is not all there is kept, and no chain yet; so is one that there is no credit for."""
        kept: list[int] = []
        chains: list[Chain] = []
        size = len(self.data)
        for done, at in enumerate(places):
            if credit.is_spent:
                kept += places[done:]
                looked.due = 0
                break
            credit.spend(CANDIDATE)
            end = at + 4 + int.from_bytes(self.data[at : at + 4], "big")
            if end > size:
                kept.append(at)
                looked.due = min(looked.due, end)
                continue
            if self._grade(at, looked, asked, credit).grade in _NO_FRAME:
                continue
            credit.spend(CHAIN)
            chain = self._chain(at, looked, asked, credit)
            if _may_be_true(chain):
                kept.append(at)
                looked.due = 0
                chains.append(chain)
        return kept, chains

    def _chain(self, at: int, looked: _Looked, asked: Asked | None, credit: Credit) -> Chain:
        frames: list[Graded] = []
        place = at
        tokens = 0
        while len(frames) < LONGEST_CHAIN:
            graded = self._grade(place, looked, asked, credit)
            if graded.grade is Grade.BAD:
                end = self._token_end(place) if tokens < MOST_TOKENS and _is_handshake(frames) else -1
                if end < 0:
                    return Chain(at, tuple(frames), True, place)
                if end > len(self.data):
                    break
                tokens += 1
                place = end
                continue
            if graded.grade is Grade.MORE:
                break
            frames.append(graded)
            place = graded.end
        return Chain(at, tuple(frames), False, place)

    def _grade(self, at: int, looked: _Looked, asked: Asked | None, credit: Credit) -> Graded:
        if len(self.data) - at < 4:
            return MORE
        graded = looked.grades.get(at)
        if graded is None or (graded.grade is Grade.MORE and graded.end <= len(self.data)):
            graded = grade_request(self.data, at) if asked is None else grade_response(self.data, at, asked)
            credit.spend(cost(graded, at))
            looked.grades[at] = graded
        return graded

    def _token_end(self, at: int) -> int:
        """Of a raw SASL token behind its handshake, -1 where there is none."""
        length = int.from_bytes(self.data[at : at + 4], "big", signed=True)
        return at + 4 + length if 0 <= length <= MOST_TOKEN_BYTES else -1

    def first_before(self, chain: Chain, *, response: bool) -> int:
        """The start of the run, where frames lead from there to the true one: a recorder loses whole packets, and
        frames begin where packets do. They need not decode, but lengths alone prove nothing: strings and records have
        some as well. Otherwise where the chain begins."""
        identity = chain.frames[0].correlation_id
        place = 0
        for _ in range(MOST_STEPS):
            if place >= chain.at:
                break
            graded = grade_response(self.data, place, {}) if response else grade_request(self.data, place)
            if graded.end < 0 or abs(graded.correlation_id - identity) > MOST_STEPS:
                return chain.at
            if not response and graded.grade is Grade.BAD:
                return chain.at
            place = graded.end
        return 0 if place == chain.at else chain.at


@dataclass(slots=True)
class Search:
    """A stream of a Kafka connection whose next frame is not found yet. Everything from `offset` on is lost so far.
    `end` is the piece that ended responses whose requests may still come; there were `asked` of them then."""

    row: int  # of the kernel's state
    offset: int
    first_ns: int
    packet: int
    run: Run
    time: int
    end: Given | None = None
    asked: int = 0


def cost(graded: Graded, at: int) -> int:
    """Of grading what begins at `at`, in steps of `Credit`."""
    if graded.grade is Grade.MORE or graded.api_key < 0:
        return CANDIDATE
    length = graded.end - at
    steps = QUICK + length // QUICK_BYTES
    return steps + CAREFUL + length // CAREFUL_BYTES if graded.careful else steps


def _may_be_true(chain: Chain) -> bool:
    if not chain.frames or chain.frames[0].grade is not Grade.STRONG:
        return False
    # A lone frame with nonsense behind it is chance; but raw SASL tokens follow on a handshake of version 0.
    return not (chain.broken and len(chain.frames) == 1) or _is_handshake(chain.frames)


def _is_handshake(frames: Sequence[Graded]) -> bool:
    return bool(frames) and (frames[-1].api_key, frames[-1].version) == (SASL_HANDSHAKE, 0)
