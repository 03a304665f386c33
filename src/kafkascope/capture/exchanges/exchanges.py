"""Turns the frames of a recording into exchanges, requests with their responses, in batches of columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.checked import differing_bytes, place
from kafkascope.capture.base.flow import Connection, FrameKind, Frames
from kafkascope.capture.base.memory_view import NO_BYTES, Content
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.exchanges.bodies import decode_request
from kafkascope.capture.exchanges.facts import Facts, read_facts
from kafkascope.capture.exchanges.identity import address_text, connection_hash
from kafkascope.capture.exchanges.pairing import Pairs, PairStatus, pair
from kafkascope.capture.frames.frame_table import NO_FRAMES
from kafkascope.capture.frames.headers import (
    API_VERSIONS,
    NEVER,
    NO_ROWS,
    Frame,
    FrameRows,
    flexible_from,
    read_headers,
)
from kafkascope.capture.frames.scan_program import ScanPrograms
from kafkascope.columnar.compiling.jit import jit
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_WAITING_BYTES

# ApiVersions names the client's software since v3 (KIP-511).
FIRST_WITH_SOFTWARE = 3
# Longer requests are not cached.
MOST_COMMON_BYTES = 1_024
# Insertion sort pays as long as exchanges are at most this far from their places on average.
_MOST_MOVES = 32
# Requests that name a client's software are compared with this many before them.
MOST_COMPARED = 8
# Correlation id 0 with a null client id; and where a null client id ends in a frame.
_NOBODY, _NULL_CLIENT_END = bytes.fromhex("00000000ffff"), 10


@dataclass(slots=True)
class Ends:
    """The columns of a connection. `software` applies to requests from offset `software_from` of the stream on."""

    number: int
    client_address: str
    broker_address: str
    software: str | None = None
    software_from: int = 0


@dataclass(slots=True)
class Recordings:
    """The files read so far, in order. A packet's number over all files gives its file and its number there."""

    uris: list[str] = field(default_factory=list)
    first_packets: list[int] = field(default_factory=list)

    def place(self, packets: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(file, packet in it)"""
        firsts = np.array(self.first_packets, dtype=np.int64)
        files = np.searchsorted(firsts, packets, side="right") - 1
        return files, packets - firsts[files]


@dataclass(frozen=True, slots=True)
class ExchangeBatch:
    """Exchanges in the order of their requests. `request` and `response` are rows, -1 for none; the places in rows
    refer to `content`."""

    rows: FrameRows
    request: npt.NDArray[np.int64]
    response: npt.NDArray[np.int64]
    status: npt.NDArray[np.uint8]
    facts: Facts
    ends: list[Ends]
    recordings: Recordings
    sized: bool  # if the recording has the sizes of frames
    content: Content
    record_sizes: Sequence[Sequence[int | None]] = ()  # by row, if the recording has them instead of record data

    def __len__(self) -> int:
        return len(self.request)

    def row(self) -> npt.NDArray[np.int64]:
        """The row of the request, or of the response if there is no request."""
        return np.where(self.request >= 0, self.request, self.response)

    def request_frame(self, index: int, longest: int | None = None) -> bytes | None:
        """Header and body, without the length; None if it has more than `longest` bytes."""
        return self._frame(int(self.request[index]), longest)

    def response_frame(self, index: int, longest: int | None = None) -> bytes | None:
        return self._frame(int(self.response[index]), longest)

    def _frame(self, at: int, longest: int | None) -> bytes | None:
        size = int(self.rows[at, Frame.SIZE])
        if at < 0 or (longest is not None and size > longest):
            return None
        return self.content.bytes(int(self.rows[at, Frame.FRAME_AT]), size)


def make_batch(
    rows: FrameRows,
    request: npt.NDArray[np.int64],
    response: npt.NDArray[np.int64],
    status: npt.NDArray[np.uint8],
    ends: list[Ends],
    recordings: Recordings,
    programs: ScanPrograms,
    *,
    names: bool,
    sized: bool,
    content: Content,
    record_sizes: Sequence[Sequence[int | None]] = (),
) -> ExchangeBatch:
    """Sorts pairs by their requests, and reads their bodies."""
    if len(request):
        order = _order_of(rows, request, response)
        request, response, status = request[order], response[order], status[order]
    facts = read_facts(content, rows, request, response, programs, flexible_from_responses(), names=names)
    status[facts.undecoded] = PairStatus.UNDECODED
    return ExchangeBatch(rows, request, response, status, facts, ends, recordings, sized, content, record_sizes)


def _order_of(
    rows: FrameRows, request: npt.NDArray[np.int64], response: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """By the time of the request, then by its place in the stream."""
    order = np.empty(len(request), dtype=np.int64)
    if not _sort(rows, request, response, np.empty(len(rows), dtype=np.int64), order):
        row = np.where(request >= 0, request, response)
        order = np.lexsort((rows[row, Frame.OFFSET], rows[row, Frame.LAST_NS]))
    return order


@jit
def _sort(rows: Any, request: Any, response: Any, exchange: Any, order: Any) -> bool:
    """Insertion sort, because frames are nearly in the order of time: exchanges are taken in the order of their rows,
    and each moves up to its place. Returns False if that takes too many moves. `exchange` has room for one per row."""
    exchange[:] = -1
    for index in range(len(request)):
        exchange[request[index] if request[index] >= 0 else response[index]] = index
    placed = 0
    moves = _MOST_MOVES * len(request)
    for at in range(len(rows)):
        index = exchange[at]
        if index < 0:
            continue
        place = placed
        while place > 0:
            before = order[place - 1]
            row = rows[request[before] if request[before] >= 0 else response[before]]
            if row[Frame.LAST_NS] != rows[at, Frame.LAST_NS]:
                in_place = row[Frame.LAST_NS] < rows[at, Frame.LAST_NS]
            elif row[Frame.OFFSET] != rows[at, Frame.OFFSET]:
                in_place = row[Frame.OFFSET] < rows[at, Frame.OFFSET]
            else:
                in_place = before < index
            if in_place:
                break
            order[place] = before
            place -= 1
        order[place] = index
        moves -= placed - place
        if moves < 0:
            return False
        placed += 1
    return placed == len(request)


@cache
def flexible_from_responses() -> npt.NDArray[np.int64]:
    """API key to the first version with response header v1: that of the flexible requests, except that ApiVersions has
    none."""
    first = flexible_from().copy()
    first[API_VERSIONS] = NEVER
    return first


class Pairer:
    """`feed` takes the frames of the framer; `finish` returns what still waits. With `names`, batches have the group,
    member and topic names of each exchange."""

    def __init__(self, connections: list[Connection], recordings: Recordings, *, names: bool = False) -> None:
        self._connections = connections
        self._recordings = recordings
        self._names = names
        self._programs = ScanPrograms()
        self._waiting = NO_ROWS
        self._waiting_bytes = NO_BYTES
        self.ends: list[Ends] = []
        self.lost_answers = 0

    def feed(self, frames: Frames) -> ExchangeBatch:
        return self._pair(frames, finish=False)

    def skip(self, frames: Frames) -> None:
        """Like `feed`, for exchanges that another run makes: their bodies aren't read."""
        self._paired(frames, finish=False)

    def finish(self, frames: Frames | None = None) -> ExchangeBatch:
        """Takes the last frames, if they weren't fed."""
        return self._pair(frames, finish=True)

    def forget(self, connections: Sequence[Connection]) -> list[Ends]:
        """Forgets connections whose numbers others take from here on; returns what was known of them."""
        # Batches that were handed out keep their own list.
        known, self.ends = self.ends, list(self.ends)
        for connection in connections:
            self.ends[connection.number] = _UNKNOWN
        return [known[connection.number] for connection in connections]

    def waiting(self) -> npt.NDArray[np.int64]:
        """Connections with a frame that waits for its partner."""
        return self._waiting[:, Frame.CONNECTION]

    def _pair(self, frames: Frames | None, *, finish: bool) -> ExchangeBatch:
        rows, content, pairs = self._paired(frames, finish=finish)
        return make_batch(
            rows, pairs.request, pairs.response, pairs.status, self.ends, self._recordings, self._programs,
            names=self._names, sized=True, content=content,
        )  # fmt: skip

    def _paired(self, frames: Frames | None, *, finish: bool) -> tuple[FrameRows, Content, Pairs]:
        waiting = len(self._waiting)
        rows, content = read_headers(frames or NO_FRAMES, self._waiting, self._waiting_bytes)
        self._learn_ends(content, rows, waiting)
        pairs = pair(rows, waiting, len(self._connections), most_bytes=MAX_WAITING_BYTES, finish=finish)
        self.lost_answers += pairs.lost_answers
        self._wait(content, rows[pairs.left])
        return rows, content, pairs

    def _wait(self, content: Content, rows: FrameRows) -> None:
        """Copies the frames that wait, because the batch owns its frames."""
        if not len(rows):
            self._waiting, self._waiting_bytes = NO_ROWS, NO_BYTES
            return
        sizes = rows[:, Frame.SIZE].copy()
        self._waiting_bytes = content.gathered(rows[:, Frame.FRAME_AT].copy(), sizes)
        rows[:, Frame.FRAME_AT] = np.cumsum(sizes) - sizes
        self._waiting = rows

    def _learn_ends(self, content: Content, rows: FrameRows, first: int) -> None:
        """Learns from the rows from `first` on."""
        self.ends += [_UNKNOWN] * (len(self._connections) - len(self.ends))
        met = np.zeros(len(self._connections), dtype=np.uint8)
        numbers = np.empty(len(rows) - first, dtype=np.int64)
        telling = np.empty((len(rows) - first, 2 + len(_TELLING)), dtype=np.int64)
        met_count, telling_count = _find_telling(*content, rows, first, met, numbers, telling, _TELLING)
        for number in numbers[:met_count].tolist():
            if not self.ends[number].client_address:
                self.ends[number] = _ends_of(self._connections[number])
        software: list[str | None] = []
        for _, same, number, offset, at, size, client_at, client_size in telling[:telling_count].tolist():
            if same < len(software):
                name = software[same]
            else:
                name = software_of(content.bytes(at, size), client_at + client_size if client_at >= 0 else -1)
            software.append(name)
            known = self.ends[number]
            if known.software is None and name:
                known.software, known.software_from = name, offset


# The ends of a connection without a Kafka frame so far.
_UNKNOWN = Ends(0, "", "")
_TELLING = np.array([Frame.CONNECTION, Frame.OFFSET, Frame.FRAME_AT, Frame.SIZE, Frame.CLIENT_AT, Frame.CLIENT_SIZE])


def _ends_of(connection: Connection) -> Ends:
    address_a, port_a, address_b, port_b = connection.ends
    first, other = address_text(address_a, port_a), address_text(address_b, port_b)
    number = connection_hash(connection)
    return Ends(number, other, first) if connection.client else Ends(number, first, other)


@jit
def _is_alike(waited: Any, body: Any, first: Any, second: Any) -> bool:
    """Whether two requests are equal after the client id, which differs between clients."""
    if first[Frame.VERSION] != second[Frame.VERSION] or max(first[Frame.SIZE], second[Frame.SIZE]) > MOST_COMMON_BYTES:
        return False
    start = first[Frame.CLIENT_AT] + first[Frame.CLIENT_SIZE] if first[Frame.CLIENT_AT] >= 0 else _NULL_CLIENT_END
    begin = second[Frame.CLIENT_AT] + second[Frame.CLIENT_SIZE] if second[Frame.CLIENT_AT] >= 0 else _NULL_CLIENT_END
    size = first[Frame.SIZE] - start
    if second[Frame.SIZE] - begin != size:
        return False
    data, at = place(waited, body, first[Frame.FRAME_AT])
    other_data, other_at = place(waited, body, second[Frame.FRAME_AT])
    return bool(differing_bytes(data, at + start, other_data, other_at + begin, size) == 0)


@jit
def _find_telling(
    waited: Any, body: Any, rows: Any, first: Number, met: Any, numbers: Any, telling: Any, columns: Any
) -> Numbers:
    """From the rows from `first` on: each connection once, and the requests that may name the client's software, with
    the row, the earliest of these requests that is known to be equal, and `columns` of the row."""
    met_count = 0
    telling_count = 0
    for index in range(first, len(rows)):
        row = rows[index]
        if not met[row[Frame.CONNECTION]]:
            met[row[Frame.CONNECTION]] = 1
            numbers[met_count] = row[Frame.CONNECTION]
            met_count += 1
        is_request = row[Frame.KIND] == FrameKind.FRAME and not row[Frame.RESPONSE] and row[Frame.BODY_AT] > 0
        if is_request and row[Frame.API_KEY] == API_VERSIONS and row[Frame.VERSION] >= FIRST_WITH_SOFTWARE:
            telling[telling_count, 0] = index
            telling[telling_count, 1] = telling_count
            for before in range(max(0, telling_count - MOST_COMPARED), telling_count):
                if _is_alike(waited, body, rows[telling[before, 0]], row):
                    telling[telling_count, 1] = telling[before, 1]
                    break
            for place in range(len(columns)):
                telling[telling_count, 2 + place] = row[columns[place]]
            telling_count += 1
    return met_count, telling_count


def software_of(frame: bytes, client_end: int) -> str | None:
    """`apache-kafka-java 4.3.1`, from an ApiVersions request; `client_end` is -1 if the client id is null."""
    if len(frame) > MOST_COMMON_BYTES:
        return _software_of(frame)
    # Without what differs between clients, all clients of one kind send the same bytes.
    return _common_software_of(frame[:4] + _NOBODY + frame[client_end if client_end >= 0 else _NULL_CLIENT_END :])


def _software_of(frame: bytes) -> str | None:
    try:
        read = decode_request(frame)
    except DecodeError:
        return None
    if read is None:
        return None
    words = (read.value.get("clientSoftwareName"), read.value.get("clientSoftwareVersion"))
    return " ".join(word for word in words if word) or None


_common_software_of = lru_cache(maxsize=1_024)(_software_of)


def times(batch: ExchangeBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(when the request's last byte was seen, when the response's first was), in ns; meaningless for row -1."""
    return batch.rows[batch.request, Frame.LAST_NS], batch.rows[batch.response, Frame.FIRST_NS]
