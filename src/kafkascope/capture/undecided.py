"""A connection of which nobody knows yet what it speaks: its pieces in, a verdict out. Kafka is only what several
frames, or a request and its answer, agree on; its pieces are kept until then, to be read again as Kafka."""

from typing import NamedTuple

from kafkascope.capture.credit import Credit
from kafkascope.capture.flow import BYTES, CLOSE, GAP, RESET
from kafkascope.capture.recognise import Grade, grade_response, other_protocol
from kafkascope.capture.search import LONGEST_CHAIN, Asked, Chain, Run, cost
from kafkascope.limits import MAX_UNDECIDED_BYTES, MAX_UNDECIDED_PIECES

# Frames without a client id that must agree where no answer is to be seen: a name is better proof than numbers. Their
# correlation ids differ; twenty zero bytes decode as a Produce request.
NAMELESS_FRAMES = 4
# A load balancer puts the client's address in front, as a line or in binary (PROXY protocol, versions 1 and 2).
PROXY_HEADERS = (b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n")
# Bytes that another protocol is named by.
NAMED_BY = 16
# Fewer bytes say nothing.
TOO_LITTLE = 4
# Bytes and pieces of both directions up to which every piece is a reason to look again; then each growth by a quarter.
# What waits is read the same way whenever it is recognised.
LOOKED_AT_OFTEN = 65_536
LOOKED_AT_PIECES = 32


class Verdict(NamedTuple):
    """`client` is the direction that requests come from, where the protocol is Kafka."""

    protocol: str
    client: int | None = None


class Entry(NamedTuple):
    """A piece as it came; its bytes lie in a run."""

    kind: int
    direction: int
    offset: int
    run: Run | None
    start: int
    length: int
    time: int
    packet: int


class Undecided:
    """`client` is the direction that requests can come from, None where it may be either; `hinted` that one frame is
    enough; `opened` says of each direction that its start is there."""

    __slots__ = (
        "_looked", "_looked_pieces", "_named", "client", "ended", "entries", "hinted", "opened", "runs", "size",
    )  # fmt: skip

    def __init__(self, client: int | None, opened: tuple[bool, bool], *, hinted: bool = False) -> None:
        self.client = client
        self.hinted = hinted
        self.opened = opened
        self.ended = [False, False]
        self.runs: list[Run | None] = [None, None]
        self.entries: list[Entry] = []
        self.size = 0
        self._looked = 0
        self._looked_pieces = 0
        self._named = [0, 0]

    def add(self, kind: int, direction: int, offset: int, data: bytes, length: int, time: int, packet: int) -> None:
        run = self.runs[direction]
        start = 0
        if kind == BYTES:
            if run is None:
                if data.startswith(PROXY_HEADERS):
                    self.opened = (self.opened[0] and direction == 1, self.opened[1] and direction == 0)
                run = Run(offset, aligned=self.opened[direction] and offset == 0)
                self.runs[direction] = run
            start = len(run.data)
            run.add(data, time, packet)
            self.size += length
        elif kind == GAP:
            self.runs[direction] = run = Run(offset + length, aligned=False)
        elif kind in (CLOSE, RESET):
            self.ended[direction] = True
        self.entries.append(Entry(kind, direction, offset, run, start, length, time, packet))

    def verdict(self, credit: Credit, *, final: bool) -> Verdict | None:
        """None: more is needed. `final` says that no more comes."""
        pieces = len(self.entries)
        is_full = self.size > 2 * MAX_UNDECIDED_BYTES or pieces > MAX_UNDECIDED_PIECES
        if not is_full and (self.size < TOO_LITTLE or not (final or self._is_due(pieces))):
            return None
        if not credit.may_look(final=final or is_full):
            return Verdict("other") if is_full else None
        self._looked, self._looked_pieces = self.size, pieces
        for direction, run in enumerate(self.runs):
            if run is not None and run.data and self._named[direction] < 2:
                # The first pieces say it or none does.
                self._named[direction] += len(run.data) >= NAMED_BY
                name = other_protocol(run.data, run.aligned)
                if name is not None:
                    return Verdict(name)
        hopeless = 0
        for direction in (0, 1):
            run = self.runs[direction]
            if self.client not in (None, direction):
                hopeless += 1
            elif run is not None and run.data:
                chains = run.requests(credit)
                if any(self._is_kafka(chain, direction, credit) for chain in chains):
                    return Verdict("kafka", direction)
                if run.aligned and len(run.data) >= NAMED_BY and (not chains or _is_over(chains[0])):
                    hopeless += 1
        return Verdict("other") if hopeless == 2 or is_full else None

    def _is_due(self, pieces: int) -> bool:
        if pieces <= LOOKED_AT_PIECES:
            return True
        if 4 * self.size >= 5 * self._looked:
            return True
        return self.size <= LOOKED_AT_OFTEN and 4 * pieces >= 5 * self._looked_pieces

    def _is_kafka(self, chain: Chain, direction: int, credit: Credit) -> bool:
        strong = chain.strong
        if not strong:
            return False
        asked = {frame.correlation_id: (frame.api_key, frame.version) for frame in strong}
        if self.hinted or len(asked) >= NAMELESS_FRAMES or sum(bool(frame.client_id) for frame in strong) >= 2:
            return True
        answers = self.runs[1 - direction]
        return answers is not None and not credit.is_spent and _has_answer(answers, asked, credit)


def _is_over(chain: Chain) -> bool:
    """No frame of it is strong, and none will be."""
    return chain.broken and not chain.strong


def _has_answer(run: Run, asked: Asked, credit: Credit) -> bool:
    if not run.aligned:
        return any(chain.strong for chain in run.responses(asked, credit, anew=True))
    at = 0
    for _ in range(LONGEST_CHAIN):
        if run.data[at : at + 4] == bytes(4):
            # An empty frame answers a SASL token.
            at += 4
            continue
        graded = grade_response(run.data, at, asked)
        credit.spend(cost(graded, at))
        if graded.grade is Grade.STRONG:
            return True
        if not at < graded.end <= len(run.data):
            return False
        at = graded.end
    return False
