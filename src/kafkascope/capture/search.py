"""The next true frame of a stream: a run of bytes without a gap in, chains of frames that agree out. One header that
fits goes wrong in real traffic; frames that follow each other and decode do not."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kafkascope.capture.recognise import Grade, Graded, grade_request, grade_response
from kafkascope.capture.scan import MOST_CANDIDATES, request_candidates, response_candidates

# Frames of a chain that are looked at: more would prove no more.
LONGEST_CHAIN = 6
# Below this a run is looked at anew each time: a request may have come that a response belongs to.
LOOKED_AT_ANEW = 16_384
# Frames between the start of a run and a true one, and how far apart their correlation ids are.
MOST_STEPS = 64
SASL_HANDSHAKE = 17

Asked = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Chain:
    """Frames from `at` on. `broken`: what follows them is no frame; otherwise it is not there yet."""

    at: int
    frames: tuple[Graded, ...]
    broken: bool
    end: int

    @property
    def strong(self) -> list[Graded]:
        return [frame for frame in self.frames if frame.grade is Grade.STRONG]


class Run:
    """Bytes of a stream without a gap. `aligned`: a frame begins with the first of them, if this is Kafka at all."""

    __slots__ = ("_candidates", "_grades", "_scanned", "_skipped", "aligned", "data", "marks", "offset")

    def __init__(self, offset: int, *, aligned: bool) -> None:
        self.data = bytearray()
        self.offset = offset
        self.aligned = aligned
        self.marks: list[tuple[int, int, int]] = []  # (place in data, time, packet) of each piece
        self._scanned = 0
        self._skipped = 0
        self._candidates: list[int] = []
        self._grades: dict[int, Graded] = {}

    def add(self, data: bytes, time: int, packet: int) -> None:
        self.marks.append((len(self.data), time, packet))
        self.data += data

    def drop(self, count: int) -> None:
        """Without the first `count` bytes."""
        del self.data[:count]
        before = [mark for mark in self.marks if mark[0] <= count]
        kept = [(place - count, time, packet) for place, time, packet in self.marks if place > count]
        self.marks = ([(0, before[-1][1], before[-1][2])] if before and self.data else []) + kept
        self.offset += count
        self.aligned = False
        self._scanned = max(0, self._scanned - count)
        self._skipped = 0
        self._candidates = [place - count for place in self._candidates if place >= count]
        self._grades = {}

    def skip(self, count: int) -> None:
        """No frame begins in the first `count` bytes."""
        self._skipped = count
        self._scanned = max(self._scanned, count)

    def requests(self) -> list[Chain]:
        """Chains of request frames that still may be true, the earliest first."""
        if self.aligned:
            chain = self._chain(0, None)
            return [] if chain.broken and not chain.frames else [chain]
        found, self._scanned = request_candidates(self.data, self._scanned)
        chains = [self._chain(at, None) for at in self._candidates[-MOST_CANDIDATES:] + found]
        kept = [chain for chain in chains if _may_be_true(chain)]
        self._candidates = [chain.at for chain in kept]
        return kept

    def responses(self, asked: Asked, *, anew: bool = False) -> list[Chain]:
        """The same of responses to requests that are known."""
        if anew or len(self.data) <= LOOKED_AT_ANEW:
            self._scanned = self._skipped
            self._candidates = []
            self._grades = {at: known for at, known in self._grades.items() if known.api_key >= 0 or known.end < 0}
        identities = np.fromiter(asked, np.int64, len(asked))
        found, self._scanned = response_candidates(self.data, self._scanned, identities)
        chains = [self._chain(at, asked) for at in self._candidates[-MOST_CANDIDATES:] + found]
        kept = [chain for chain in chains if _may_be_true(chain)]
        self._candidates = [chain.at for chain in kept]
        return kept

    def _chain(self, at: int, asked: Asked | None) -> Chain:
        frames: list[Graded] = []
        place = at
        while len(frames) < LONGEST_CHAIN:
            graded = self._grade(place, asked)
            if graded.grade is Grade.BAD:
                return Chain(at, tuple(frames), True, place)
            if graded.grade is Grade.MORE:
                break
            frames.append(graded)
            place = graded.end
        return Chain(at, tuple(frames), False, place)

    def _grade(self, at: int, asked: Asked | None) -> Graded:
        known = self._grades.get(at)
        if known is None or (known.grade is Grade.MORE and known.end <= len(self.data)):
            known = grade_request(self.data, at) if asked is None else grade_response(self.data, at, asked)
            self._grades[at] = known
        return known

    def first_before(self, chain: Chain, *, response: bool) -> int:
        """The start of the run, where frames lead from there to the true one: a recorder loses whole packets, and
        frames begin where packets do. They need not decode, but lengths alone prove nothing: strings and records have
        some as well. Otherwise where the chain begins."""
        identity = chain.frames[0].correlation_id
        place = 0
        for _ in range(MOST_STEPS):
            if place >= chain.at:
                break
            graded = grade_response(self.data, place, {}) if response else self._grade(place, None)
            if graded.end < 0 or abs(graded.correlation_id - identity) > MOST_STEPS:
                return chain.at
            if not response and graded.grade is Grade.BAD:
                return chain.at
            place = graded.end
        return 0 if place == chain.at else chain.at


def _may_be_true(chain: Chain) -> bool:
    if not chain.frames:
        return not chain.broken
    first = chain.frames[0]
    if first.grade is not Grade.STRONG:
        return False
    # A lone frame with nonsense behind it is chance; but raw SASL tokens follow on a handshake of version 0.
    lone = chain.broken and len(chain.frames) == 1
    return not lone or (first.api_key, first.version) == (SASL_HANDSHAKE, 0)
