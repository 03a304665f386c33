"""Decides whether a connection is Kafka or another protocol, from its pieces so far.

Kafka is what several frames, or a request and its response, agree on, or one request that nothing contradicts until the
connection ends. The pieces are kept until then, to be read again as Kafka."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from kafkascope.capture.base.flow import PieceKind
from kafkascope.capture.frames.detect.candidates import REQUEST_HEAD
from kafkascope.capture.frames.detect.credit import CANDIDATE, Credit
from kafkascope.capture.frames.detect.cut_packets import MOST_HEAD, is_cut_kafka, request_head, sound_head
from kafkascope.capture.frames.detect.grade import (
    Grade,
    grade_response,
    is_known,
    is_measured,
    is_tagged,
    may_be_named,
    other_protocol,
)
from kafkascope.capture.frames.detect.pieces import TOO_LITTLE, Broken, Entry, is_due, looked_at
from kafkascope.capture.frames.detect.resync import LONGEST_CHAIN, Chain, PieceGroup, RequestsById, Run, cost
from kafkascope.limits import MAX_FRAME_BYTES, MAX_UNDECIDED_BYTES, MAX_UNDECIDED_PIECES

# Frames without a client id that must agree if no response was recorded: a name is better proof than numbers. Their
# correlation ids differ; twenty zero bytes decode as a Produce request.
NAMELESS_FRAMES = 4
# The shortest name, and body, of a request that is believed without a second one and without a response; without a name
# its body needs this many letters. Names of two letters and bodies of zeros occur in many protocols.
LONE_NAME, LONE_BODY, LONE_LETTERS = 3, 4, 4
# A load balancer puts the client's address in front, as a line or in binary (PROXY protocol, versions 1 and 2).
PROXY_HEADERS = (b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n")
# Bytes that show another protocol.
NAMED_BY = 16
ASCII = 128


class Verdict(NamedTuple):
    """`client` is the direction that requests come from, where the protocol is Kafka."""

    protocol: str
    client: int | None = None


class Undecided:
    """`client` is the direction that requests can come from, None if it may be either; `hinted` that one header is
    enough; `opened` whether the start of each direction was recorded. `earlier` are the runs before missing bytes;
    `count` are the pieces."""

    __slots__ = (
        "_headed", "_looked", "_looked_pieces", "_named", "client", "count", "earlier", "ended", "entries", "hinted",
        "opened", "runs", "size",
    )  # fmt: skip

    def __init__(self, client: int | None, opened: tuple[bool, bool], *, hinted: bool = False) -> None:
        self.client = client
        self.hinted = hinted
        self.opened = opened
        self.ended = [False, False]
        self.runs: list[Run | None] = [None, None]
        self.earlier: tuple[list[Run | Broken], list[Run | Broken]] = ([], [])
        self.entries: list[Entry] = []
        self.count = 0
        self.size = 0
        self._headed = [False, False]
        self._looked = 0
        self._looked_pieces = 0
        self._named = [0, 0]

    def add(
        self,
        kind: int,
        direction: int,
        offset: int,
        data: bytes,
        length: int,
        time: int,
        packet: int,
        group: PieceGroup | None = None,
    ) -> None:
        run = self.runs[direction]
        start = 0
        self.count += 1 if group is None else len(group.lengths)
        if kind == PieceKind.BYTES:
            if run is None:
                if data.startswith(PROXY_HEADERS):
                    self.opened = (self.opened[0] and direction == 1, self.opened[1] and direction == 0)
                run = Run(offset, aligned=self.opened[direction] and offset == 0)
                self.runs[direction] = run
            start = len(run.data)
            run.add(data, time, packet, group)
            self.size += length
        elif kind == PieceKind.GAP:
            self._break(direction)
            self.runs[direction] = run = Run(offset + length, aligned=False)
        elif kind in (PieceKind.CLOSE, PieceKind.RESET):
            self.ended[direction] = True
        self.entries.append(Entry(kind, direction, offset, run, start, length, time, packet, group))

    def _break(self, direction: int) -> None:
        run = self.runs[direction]
        if run is not None:
            self.earlier[direction].append(run)
            self._headed[direction] |= _begins_with_head(run)

    def add_group(self, direction: int, offset: int, data: bytes, group: PieceGroup) -> None:
        """Adds bytes and gaps in turn that `may_join`."""
        self._looked, self._looked_pieces = looked_at(
            group.kinds, group.lengths, self.size, self.count, self._looked, self._looked_pieces
        )
        gaps = (group.kinds == PieceKind.GAP).nonzero()[0]
        first, last = (gaps.item(0), gaps.item(-1) + 1) if len(gaps) else (0, 0)
        for some in (slice(0, first), slice(first, last), slice(last, None)):
            part = PieceGroup(group.kinds[some], group.lengths[some], group.times[some], group.packets[some])
            if not len(part.kinds):
                continue
            length, size = int(part.lengths.sum()), int(part.lengths[part.kinds == PieceKind.BYTES].sum())
            time, packet = part.times.item(0), part.packets.item(0)
            if length == size:
                self.add(PieceKind.BYTES, direction, offset, data[:size], size, time, packet, part)
            else:
                self._break(direction)
                self.earlier[direction].append(Broken(offset, data[:size], part))
                held = Run(offset, aligned=False)
                held.data += data[:size]
                self.entries.append(Entry(PieceKind.GAP, direction, offset, held, 0, length, time, packet, part))
                self.runs[direction] = Run(offset + length, aligned=False)
                self.count += len(part.kinds)
                self.size += size
            data, offset = data[size:], offset + length

    def may_join(self, direction: int, data: bytes, *, broken: bool) -> bool:
        """Whether no verdict can be reached before these bytes come, nor with them: they hold no request, no
        response and no sign of another protocol. `broken` if there are gaps among them."""
        run, other = self.runs[direction], self.runs[1 - direction]
        if self.hinted or run is None or self.earlier[1 - direction] or (other is not None and other.data):
            return False
        if self._named[direction] < 2 and not (broken and not run.data):
            head = bytes(run.data[:NAMED_BY])
            if may_be_named(head + data[: NAMED_BY - len(head)]):
                return False
        return run.is_barren(data)

    def pieces(self) -> Iterator[Entry]:
        """One by one."""
        return chain.from_iterable(entry.pieces() for entry in self.entries)

    def verdict(self, credit: Credit, *, final: bool) -> Verdict | None:
        """None if more bytes are needed; `final` says that no more come."""
        pieces = self.count
        is_full = self.size > 2 * MAX_UNDECIDED_BYTES or pieces > MAX_UNDECIDED_PIECES
        if not is_full and (
            self.size < TOO_LITTLE or not (final or is_due(self.size, pieces, self._looked, self._looked_pieces))
        ):
            return None
        if not credit.may_look(final=final or is_full):
            return Verdict("other") if is_full else None
        self._looked, self._looked_pieces = self.size, pieces
        for direction, run in enumerate(self.runs):
            if run is not None and run.data and self._named[direction] < 2:
                # Only the first bytes show another protocol.
                self._named[direction] += len(run.data) >= NAMED_BY
                name = other_protocol(run.data, run.aligned)
                if name is not None:
                    return Verdict(name)
        ruled_out = 0
        for direction in (0, 1):
            run = self.runs[direction]
            if self.client not in (None, direction):
                ruled_out += 1
            elif self._has_head(direction) or self._is_cut(direction, credit):
                return Verdict("kafka", direction)
            elif run is not None and len(run.data) >= REQUEST_HEAD:
                chains = run.requests(credit)
                if any(self._is_kafka(chain, direction, credit, final=final) for chain in chains):
                    return Verdict("kafka", direction)
                if run.aligned and len(run.data) >= NAMED_BY and (not chains or _is_over(chains[0])):
                    is_kafka = self._by_response(run, direction, credit)
                    if is_kafka:
                        return Verdict("kafka", direction)
                    ruled_out += is_kafka is False
        return Verdict("other") if ruled_out == 2 or is_full else None

    def _is_kafka(self, chain: Chain, direction: int, credit: Credit, *, final: bool) -> bool:
        strong = chain.strong
        identities = {frame.correlation_id for frame in strong}
        if len(identities) >= NAMELESS_FRAMES or sum(bool(frame.client_id) for frame in strong) >= 2:
            return True
        if self.hinted and strong:
            return True
        responses = self.runs[1 - direction]
        if responses is not None and responses.data:
            requests = {frame.correlation_id: (frame.api_key, frame.version) for frame in chain.frames}
            return bool(requests) and not credit.is_spent and _has_response(responses, requests, credit)
        return final and bool(strong) and self._is_lone(chain, direction)

    def _is_lone(self, chain: Chain, direction: int) -> bool:
        """If all bytes of the connection are requests, and the first of them is long enough to be believed."""
        run, frame = self.runs[direction], chain.strong[0]
        if run is None or chain.at or chain.broken or chain.end != len(run.data) or any(self.earlier):
            return False
        head = request_head(run.data)
        if head is None or frame is not chain.frames[0]:
            return False
        body = run.data[14 + len(head.client_id or b"") : head.end]
        if not body.strip(b"\0") and len(body) == (2 if is_tagged(head.api_key, head.version) else 0):
            # A header and no field: the lengths of the frame and of the client id agree to the byte.
            return bool(frame.client_id)
        if not is_measured(head.api_key, head.version):
            return False
        if head.null:
            return sum(chr(byte).isalpha() for byte in body if byte < ASCII) >= LONE_LETTERS
        return len(frame.client_id or "") >= LONE_NAME and len(body) >= LONE_BODY

    def _has_head(self, direction: int) -> bool:
        """Whether the stream begins with a request header, or with frames of another kind and then one: on a Kafka port
        its numbers are enough, and it is read from there."""
        if not self.hinted or self.client is None:
            return False
        run = (*self.earlier[direction], self.runs[direction])[0]
        if not isinstance(run, Run):
            return False
        place = 0
        for _ in range(LONGEST_CHAIN):
            if sound_head(run.data[place : place + MOST_HEAD]) is not None:
                self.opened = (self.opened[0] or direction == 0, self.opened[1] or direction == 1)
                return True
            length = int.from_bytes(run.data[place : place + 4], "big")
            place += 4 + length
            if not run.aligned or not 0 < length <= MAX_FRAME_BYTES or place >= len(run.data):
                break
        return False

    def _is_cut(self, direction: int, credit: Credit) -> bool:
        """Whether the headers agree, if packets were recorded in part."""
        if not any(self.earlier) or credit.is_spent:
            return False
        run = self.runs[direction]
        if not self._headed[direction] and (run is None or not _begins_with_head(run)):
            return False
        requests, responses = (self._runs_of(way) for way in (direction, 1 - direction))
        credit.spend(CANDIDATE * (len(requests) + len(responses)) + self.count)
        bounds = {
            place
            for entry in self.pieces()
            if entry.direction != direction
            for place in (entry.offset, entry.offset + entry.length)
        }
        return is_cut_kafka(requests, responses, bounds, credit)

    def _runs_of(self, direction: int) -> list[Run]:
        run = self.runs[direction]
        runs: list[Run] = []
        for earlier in self.earlier[direction]:
            runs += [earlier] if isinstance(earlier, Run) else earlier.runs()
        return runs + ([run] if run is not None and run.data else [])

    def _by_response(self, run: Run, direction: int, credit: Credit) -> bool | None:
        """Whether the first request, whose body doesn't decode, has a response that does; None if that may still
        come."""
        head = sound_head(run.data[:MOST_HEAD])
        if head is None or not head.client_id or not is_known(head.api_key, head.version):
            return False
        if not is_measured(head.api_key, head.version, response=True):
            return False
        responses = self.runs[1 - direction]
        if responses is None or not responses.data:
            return None
        request = {head.correlation_id: (head.api_key, head.version)}
        if not credit.is_spent and _has_response(responses, request, credit):
            return True
        waiting = 4 + int.from_bytes(responses.data[:4], "big") > len(responses.data)
        return None if waiting and responses.data[0] <= MAX_FRAME_BYTES >> 24 else False


def _begins_with_head(run: Run) -> bool:
    return len(run.data) >= REQUEST_HEAD - 2 and sound_head(run.data[:MOST_HEAD]) is not None


def _is_over(chain: Chain) -> bool:
    """Whether no frame of the chain is strong, and none will be."""
    return chain.broken and not chain.strong


def _has_response(run: Run, requests: RequestsById, credit: Credit) -> bool:
    if not run.aligned:
        return any(chain.strong for chain in run.responses(requests, credit, anew=True))
    at = 0
    for _ in range(LONGEST_CHAIN):
        if run.data[at : at + 4] == bytes(4):
            # An empty frame is the response to a SASL token.
            at += 4
            continue
        graded = grade_response(run.data, at, requests)
        credit.spend(cost(graded, at))
        if graded.grade is Grade.STRONG:
            return True
        if not at < graded.end <= len(run.data):
            return False
        at = graded.end
    return False
