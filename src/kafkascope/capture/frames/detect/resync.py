"""Finds chains of frames in a run of bytes without a gap, to resynchronize a stream with its frame boundaries.

A single header that fits may be chance; frames that follow each other and decode are not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from kafkascope.capture.base.flow import Int64s, SinglePiece, Uint8s
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
from kafkascope.limits import MAX_FRAME_BYTES

# Frames of a chain that are graded: more would prove no more.
LONGEST_CHAIN = 6
# Grades that are remembered of one run: many times the places that are graded again.
MOST_GRADES = 4_096
# A run up to this size is scanned again for responses each time: their requests may have come since.
SCANNED_ANEW = 16_384
# Unscanned bytes up to this many are scanned again with each piece.
MOST_BARREN = 4_096
# Frames between the start of a run and a true one, and how far apart their correlation ids are.
MOST_STEPS = 64
SASL_HANDSHAKE = 17
# Raw tokens after a handshake that a chain may pass over: Kerberos sends three.
MOST_TOKENS, MOST_TOKEN_BYTES = 4, 65_536

_NO_FRAME = (Grade.BAD, Grade.MORE)
# Correlation id to (API key, version) of requests.
RequestsById = Mapping[int, tuple[int, int]]


class Chain(NamedTuple):
    """Frames from `at` on. `broken`: the bytes after them aren't a frame; otherwise these bytes are still to come."""

    at: int
    frames: tuple[Graded, ...]
    broken: bool
    end: int

    @property
    def strong(self) -> list[Graded]:
        return [frame for frame in self.frames if frame.grade is Grade.STRONG]


class _Scan:
    """How far a run was scanned for requests or for responses, which places may be frames, and grades. Candidates are
    graded again when the run is at least `due` bytes long."""

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


class PieceGroup(NamedTuple):
    """Neighbouring pieces of a stream that are processed together. Arrays: there are very many."""

    kinds: Uint8s
    lengths: Int64s
    times: Int64s
    packets: Int64s

    def marks(self, place: int) -> Iterator[Mark]:
        places = accumulate(self.lengths.tolist(), initial=place)
        return zip(places, self.times.tolist(), self.packets.tolist(), strict=False)


class Run:
    """Bytes of a stream without a gap, in `count` pieces. `aligned`: a frame begins with the first byte, if this is
    Kafka at all. No frame begins in the first `skipped` bytes."""

    __slots__ = ("_groups", "_marks", "_requests", "_responses", "aligned", "count", "data", "offset", "skipped")

    def __init__(self, offset: int, *, aligned: bool, skipped: int = 0) -> None:
        self.data = bytearray()
        self.offset = offset
        self.aligned = aligned
        self.skipped = skipped
        self.count = 0
        self._marks: list[Mark] = []
        self._groups: list[tuple[int, int, PieceGroup]] = []  # not in `_marks` yet: (index there, place, group)
        # Created by the first scan: of very many runs most are never scanned.
        self._requests: _Scan | None = None
        self._responses: _Scan | None = None

    def add(self, data: bytes, time: int, packet: int, group: PieceGroup | None = None) -> None:
        if group is None:
            self.count += 1
            self._marks.append((len(self.data), time, packet))
        else:
            self.count += len(group.lengths)
            self._groups.append((len(self._marks), len(self.data), group))
        self.data += data

    @property
    def marks(self) -> list[Mark]:
        """(place in data, time, packet) of each piece"""
        if self._groups:
            marks, done = [], 0
            for index, place, group in self._groups:
                marks += self._marks[done:index]
                marks += group.marks(place)
                done = index
            self._marks, self._groups = marks + self._marks[done:], []
        return self._marks

    def is_barren(self, more: bytes) -> bool:
        """Whether no request begins in the bytes that weren't scanned yet, with `more` after them, and none waits
        for its end."""
        scan = self._requests
        if self.aligned:
            length = int.from_bytes(self.data[:4], "big")
            return len(self.data) >= 4 and not SMALLEST_REQUEST <= length <= MAX_FRAME_BYTES
        if scan is not None and scan.candidates:
            return False
        start = self.skipped if scan is None else max(scan.scanned, self.skipped)
        return len(self.data) - start <= MOST_BARREN and not request_candidates(self.data[start:] + more, 0)[0]

    def drop(self, count: int) -> None:
        """Drops the first `count` bytes."""
        del self.data[:count]
        before = [mark for mark in self.marks if mark[0] <= count]
        kept = [(place - count, time, packet) for place, time, packet in self.marks if place > count]
        self._marks = ([(0, before[-1][1], before[-1][2])] if before and self.data else []) + kept
        self.count = len(self._marks)
        self.offset += count
        self.aligned = False
        self.skipped = max(0, self.skipped - count)
        for scan in (self._requests, self._responses):
            if scan is not None:
                scan.drop(count)

    @property
    def response_scan(self) -> _Scan:
        if self._responses is None:
            self._responses = _Scan()
        return self._responses

    def requests(self, credit: Credit) -> list[Chain]:
        """Chains of requests that may be true, the earliest first, as far as there is credit."""
        scan = self._requests = self._requests or _Scan()
        if self.aligned:
            credit.spend(LOOK)
            chain = self._chain(0, scan, None, credit)
            return [] if chain.broken and not chain.frames else [chain]
        return self._chains(scan, None, credit)

    def responses(self, requests: RequestsById, credit: Credit, *, anew: bool = False) -> list[Chain]:
        """The same for responses to these requests."""
        scan = self.response_scan
        if anew or len(self.data) <= SCANNED_ANEW:
            scan.scanned = scan.due = 0
            scan.candidates = []
            scan.grades = {at: known for at, known in scan.grades.items() if known.api_key >= 0}
        return self._chains(scan, requests, credit)

    def _chains(self, scan: _Scan, requests: RequestsById | None, credit: Credit) -> list[Chain]:
        """Grades the candidates that were kept, then scans the bytes that weren't scanned yet."""
        credit.spend(LOOK + (0 if requests is None else len(requests)))
        kept = scan.candidates[-MOST_CANDIDATES:]
        chains: list[Chain] = []
        if len(self.data) >= scan.due:
            scan.due = MAX_FRAME_BYTES + len(self.data) + 4
            kept, chains = self._grade_candidates(scan, kept, requests, credit)
        identities = None if requests is None else np.array(sorted(requests), np.int64)
        more = MOST_CANDIDATES
        while more == MOST_CANDIDATES and not credit.is_spent:
            start = max(scan.scanned, self.skipped)
            if identities is None:
                candidates, scan.scanned = request_candidates(self.data, start)
            else:
                candidates, scan.scanned = response_candidates(self.data, start, identities)
            credit.spend((scan.scanned - start) // SCAN_BYTES)
            more_kept, more_chains = self._grade_candidates(scan, candidates, requests, credit)
            kept += more_kept
            chains += more_chains
            more = len(candidates)
        scan.candidates = kept
        if len(scan.grades) > MOST_GRADES:
            scan.grades.clear()
        return chains

    def _grade_candidates(
        self, scan: _Scan, places: list[int], requests: RequestsById | None, credit: Credit
    ) -> tuple[list[int], list[Chain]]:
        """(places to keep, chains that begin at them). A place is kept without a chain if its frame isn't complete yet,
        or if there is no credit for it."""
        kept: list[int] = []
        chains: list[Chain] = []
        size = len(self.data)
        for done, at in enumerate(places):
            if credit.is_spent:
                kept += places[done:]
                scan.due = 0
                break
            credit.spend(CANDIDATE)
            end = at + 4 + int.from_bytes(self.data[at : at + 4], "big")
            if end > size:
                kept.append(at)
                scan.due = min(scan.due, end)
                continue
            if self._grade(at, scan, requests, credit).grade in _NO_FRAME:
                continue
            credit.spend(CHAIN)
            chain = self._chain(at, scan, requests, credit)
            if _may_be_true(chain):
                kept.append(at)
                scan.due = 0
                chains.append(chain)
        return kept, chains

    def _chain(self, at: int, scan: _Scan, requests: RequestsById | None, credit: Credit) -> Chain:
        frames: list[Graded] = []
        place = at
        tokens = 0
        while len(frames) < LONGEST_CHAIN:
            graded = self._grade(place, scan, requests, credit)
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

    def _grade(self, at: int, scan: _Scan, requests: RequestsById | None, credit: Credit) -> Graded:
        if len(self.data) - at < 4:
            return MORE
        graded = scan.grades.get(at)
        if graded is None or (graded.grade is Grade.MORE and graded.end <= len(self.data)):
            graded = grade_request(self.data, at) if requests is None else grade_response(self.data, at, requests)
            credit.spend(cost(graded, at))
            scan.grades[at] = graded
        return graded

    def _token_end(self, at: int) -> int:
        """Where a raw SASL token after its handshake ends, -1 if this isn't one."""
        length = int.from_bytes(self.data[at : at + 4], "big", signed=True)
        return at + 4 + length if 0 <= length <= MOST_TOKEN_BYTES else -1

    def first_before(self, chain: Chain, *, response: bool) -> int:
        """The start of the run, if frames lead from there to the chain: a recorder loses whole packets, and frames
        begin where packets do. They need not decode, but lengths alone prove nothing: strings and records have some as
        well. Otherwise the start of the chain."""
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
    """A stream of a Kafka connection whose next frame isn't found yet. All bytes from `offset` on are lost so far.
    `end` is the piece that ended responses whose requests may still come; there were `asked` requests then."""

    row: int  # of the kernel's state
    offset: int
    first_ns: int
    packet: int
    run: Run
    time: int
    end: SinglePiece | None = None
    asked: int = 0


def cost(graded: Graded, at: int) -> int:
    """The cost of grading the bytes at `at`, in steps of `Credit`."""
    if graded.grade is Grade.MORE or graded.api_key < 0:
        return CANDIDATE
    length = graded.end - at
    steps = QUICK + length // QUICK_BYTES
    return steps + CAREFUL + length // CAREFUL_BYTES if graded.careful else steps


def _may_be_true(chain: Chain) -> bool:
    if not chain.frames or chain.frames[0].grade is not Grade.STRONG:
        return False
    # A lone frame before invalid bytes is chance; but raw SASL tokens follow a handshake of version 0.
    return not (chain.broken and len(chain.frames) == 1) or _is_handshake(chain.frames)


def _is_handshake(frames: Sequence[Graded]) -> bool:
    return bool(frames) and (frames[-1].api_key, frames[-1].version) == (SASL_HANDSHAKE, 0)
