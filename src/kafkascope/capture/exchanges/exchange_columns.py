"""Builds the columns of the table `exchanges` from a batch. Times are UTC microseconds; unknown values are null."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.base.flow import FrameKind, Int64s
from kafkascope.capture.base.memory_view import NO_BYTES, Content
from kafkascope.capture.exchanges.exchanges import Ends, ExchangeBatch
from kafkascope.capture.exchanges.identity import connection_name, exchange_ids
from kafkascope.capture.exchanges.pairing import STATUSES
from kafkascope.capture.frames.body_scan import LISTED, THE_ONE
from kafkascope.capture.frames.headers import Frame
from kafkascope.capture.frames.scan_program import Fact
from kafkascope.errors import KernelError
from kafkascope.schema.catalog import apis
from kafkascope.schema.errors.error_codes import error_name

TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("exchange_id", pa.string()),
        ("connection_id", pa.string()),
        ("capture_uri", pa.string()),
        ("packet", pa.int64()),
        ("request_at", TIME),
        ("response_at", TIME),
        ("latency_us", pa.int64()),
        ("long_poll", pa.bool_()),
        ("max_wait_ms", pa.int32()),
        ("api_key", pa.int16()),
        ("api", pa.string()),
        ("api_version", pa.int16()),
        ("correlation_id", pa.int32()),
        ("client_id", pa.string()),
        ("client_address", pa.string()),
        ("broker_address", pa.string()),
        ("client_software", pa.string()),
        ("request_bytes", pa.int64()),
        ("response_bytes", pa.int64()),
        ("error_code", pa.int16()),
        ("error", pa.string()),
        ("throttle_ms", pa.int32()),
        ("status", pa.string()),
        ("group_id", pa.string()),
        ("member_id", pa.string()),
    ]
)
# The response may wait by design: for records, for members to join, for the leader's assignment.
LONG_POLLS = ("Fetch", "ShareFetch", "JoinGroup", "SyncGroup")
# A SASL token after SaslHandshake v0 has no header and no API (KIP-43).
TOKEN_API = "SaslToken"  # noqa: S105
# A line of a request log may have the duration of an exchange without its time. FIRST_NS of its rows is then before
# this, and counts from an unknown moment; their LAST_NS serves only for ordering.
KNOWN_FROM_NS = -9_000_000_000 * 1_000_000_000
PREFIX_BYTES = 4  # the frame's own length is sent too

Mask = npt.NDArray[np.bool_]


def to_arrow(batch: ExchangeBatch) -> pa.RecordBatch:
    """A row per exchange, in the batch's order."""
    try:
        columns = _columns(batch)
    except IndexError as error:
        raise KernelError.at(f"exchanges of {batch.recordings.uris[-1]}") from error
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _columns(batch: ExchangeBatch) -> dict[str, pa.Array]:
    rows, facts, own = batch.rows, batch.facts, batch.row()
    asked, answered = batch.request >= 0, batch.response >= 0
    kind, key = rows[own, Frame.KIND], rows[own, Frame.API_KEY]
    token = asked & (kind == FrameKind.TOKEN)
    framed = asked & ~token
    offset, packet = rows[own, Frame.OFFSET], rows[own, Frame.PACKET]
    ends = _Ends.of(batch.ends, rows[own, Frame.CONNECTION])
    file, packet = batch.recordings.place(packet)
    error, failed = facts.values[:, Fact.ERROR], answered & (facts.seen[:, Fact.ERROR] > 0)
    wait, waits = facts.values[:, Fact.MAX_WAIT], facts.seen[:, Fact.MAX_WAIT] > 0
    api = _api_numbers(key, framed, token)
    long_poll = asked & _long_polls()[api] & (~waits | (wait > 0))
    names = {
        "exchange_id": exchange_ids(ends.hashes(), offset, (~asked).astype(np.int64)),
        "connection_id": ends.texts(connection_name(end.number) for end in ends.known),
        "capture_uri": _Texts.of(batch.recordings.uris).at(file),
        "api": _api_texts().at(api),
        "client_id": _client_ids(batch, asked),
        "client_address": ends.texts(end.client_address for end in ends.known),
        "broker_address": ends.texts(end.broker_address for end in ends.known),
        "client_software": ends.software(offset),
        "error": _errors(error, failed),
        "status": _status_texts().at(batch.status),
        "group_id": _named(batch, Fact.GROUP_AT),
        "member_id": _named(batch, Fact.MEMBER_AT),
    }
    numbers = {
        "packet": (packet, None),
        **_times(batch, own, asked, answered),
        "max_wait_ms": (wait, long_poll & waits),
        "api_key": (key, framed),
        "api_version": (rows[own, Frame.VERSION], framed),
        "correlation_id": (rows[own, Frame.CORRELATION], kind != FrameKind.TOKEN),
        "request_bytes": (_sent_bytes(batch, own), asked & batch.sized),
        "response_bytes": (_sent_bytes(batch, batch.response), answered & batch.sized),
        "error_code": (error, failed),
        "throttle_ms": (facts.values[:, Fact.THROTTLE], facts.seen[:, Fact.THROTTLE] > 0),
    }
    made = {name: _numbers(values, SCHEMA.field(name).type, valid) for name, (values, valid) in numbers.items()}
    bits = pa.Array.from_buffers(pa.bool_(), len(batch), [None, _bits(long_poll)])
    return {**names, **made, "long_poll": bits}


def _times(batch: ExchangeBatch, own: Int64s, asked: Mask, answered: Mask) -> dict[str, tuple[Int64s, Mask]]:
    first_ns = batch.rows[own, Frame.FIRST_NS]
    timed = (first_ns >= KNOWN_FROM_NS) | batch.sized
    request_ns = np.where(timed, batch.rows[own, Frame.LAST_NS], first_ns)
    response_ns = batch.rows[batch.response, Frame.FIRST_NS]
    request_us, response_us = request_ns // 1000, response_ns // 1000
    # A response that was recorded before its request has no latency. In all other cases it is the difference of the
    # times as they are written, in whole microseconds.
    ordered = asked & answered & (response_ns >= request_ns)
    return {
        "request_at": (request_us, asked & timed),
        "response_at": (response_us, answered & timed),
        "latency_us": (response_us - request_us, ordered),
    }


def _sent_bytes(batch: ExchangeBatch, at: Int64s) -> Int64s:
    """Sizes of frames as they were sent, whether they were recorded whole or not."""
    sent: Int64s = batch.rows[at, Frame.SIZE] + batch.rows[at, Frame.MISSING] + PREFIX_BYTES
    return sent


class _Texts(NamedTuple):
    """Texts that rows refer to by number, concatenated; the size of null is -1."""

    content: Content
    places: Int64s
    sizes: Int64s

    @classmethod
    def of(cls, words: Sequence[str | None]) -> "_Texts":
        encoded = [None if word is None else word.encode() for word in words]
        held = np.frombuffer(bytearray().join([word for word in encoded if word is not None]), np.uint8)
        sizes = np.array([-1 if word is None else len(word) for word in encoded], np.int64)
        return cls(Content(NO_BYTES, held), _starts(np.maximum(sizes, 0)), sizes)

    def at(self, numbers: npt.NDArray[np.integer], valid: Mask | None = None) -> pa.StringArray:
        sizes = self.sizes[numbers]
        return _text(self.content, self.places[numbers], sizes if valid is None else np.where(valid, sizes, -1))


class _Ends(NamedTuple):
    """The connections of a batch, each once, and the one that each exchange belongs to."""

    known: list[Ends]
    which: Int64s

    @classmethod
    def of(cls, ends: list[Ends], connections: Int64s) -> "_Ends":
        used = np.zeros(len(ends), np.bool_)
        used[connections] = True
        numbered = np.cumsum(used) - 1
        return cls([ends[number] for number in np.flatnonzero(used).tolist()], numbered[connections])

    def hashes(self) -> npt.NDArray[np.uint64]:
        return np.array([end.number for end in self.known], np.uint64)[self.which]

    def texts(self, words: Iterable[str | None]) -> pa.StringArray:
        return _Texts.of(list(words)).at(self.which)

    def software(self, offset: Int64s) -> pa.StringArray:
        known_from = np.array([end.software_from for end in self.known], np.int64)
        return _Texts.of([end.software for end in self.known]).at(self.which, offset >= known_from[self.which])


def _api_numbers(key: Int64s, framed: Mask, token: Mask) -> Int64s:
    """Indexes into `_api_names`: unknown APIs, and responses without a request, are null."""
    null = len(_api_names()) - 1
    numbers = np.where(framed & (key >= 0) & (key < null - 1), key, null)
    return np.where(token, null - 1, numbers)


@cache
def _api_names() -> list[str | None]:
    """By key, then the name for raw tokens, then null."""
    known = apis()
    return [*(known.get(key) for key in range(max(known) + 1)), TOKEN_API, None]


@cache
def _api_texts() -> _Texts:
    return _Texts.of(_api_names())


@cache
def _long_polls() -> Mask:
    return np.array([name in LONG_POLLS for name in _api_names()])


@cache
def _status_texts() -> _Texts:
    return _Texts.of(STATUSES)


def _errors(error: Int64s, failed: Mask) -> pa.StringArray:
    """The names of errors; null without an error."""
    failed = failed & (error != 0)
    codes, numbers = np.unique(error[failed], return_inverse=True)
    every = np.zeros(len(error), np.int64)
    every[failed] = numbers + 1
    return _Texts.of([None, *(error_name(code) for code in codes.tolist())]).at(every)


def _client_ids(batch: ExchangeBatch, asked: Mask) -> pa.StringArray:
    rows, request = batch.rows, batch.request
    at, size = rows[request, Frame.CLIENT_AT], rows[request, Frame.CLIENT_SIZE]
    return _sent_text(batch.content, rows[request, Frame.FRAME_AT] + at, np.where(asked & (at >= 0), size, -1))


def _named(batch: ExchangeBatch, fact: Fact) -> pa.StringArray:
    """Groups or members: as they were sent, or as the careful codec read them."""
    values, seen = batch.facts.values, batch.facts.seen[:, fact]
    places = values[:, fact].copy()
    sizes = np.where((seen == LISTED) | (seen == THE_ONE), values[:, fact + 1], -1)
    careful = {row: name for (row, of), name in batch.facts.more_ids.items() if of == fact and sizes[row] >= 0}
    if not careful:
        return _sent_text(batch.content, places, sizes)
    numbers = list(careful)
    sent = np.maximum(sizes, 0)
    sent[numbers] = 0
    texts = _Texts.of(list(careful.values()))
    content = Content(batch.content.gathered(np.where(sent > 0, places, 0), sent), texts.content.second)
    places = _starts(sent)
    places[numbers], sizes[numbers] = len(content.first) + texts.places, texts.sizes
    return _sent_text(content, places, sizes)


def _sent_text(content: Content, places: Int64s, sizes: Int64s) -> pa.StringArray:
    """Clients may send any bytes: what isn't UTF-8 is shown with replacement characters."""
    column = _text(content, places, sizes)
    if np.frombuffer(column.buffers()[2], np.uint8).max(initial=0) < 0x80:
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        sent = column.view(pa.binary()).to_pylist()
        return pa.array([None if text is None else text.decode(errors="replace") for text in sent], pa.string())
    return column


def _text(content: Content, places: Int64s, sizes: Int64s) -> pa.StringArray:
    """The text at each of the places; null where its size is below 0."""
    kept = np.maximum(sizes, 0)
    ends = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(kept, out=ends[1:])
    # A null may have any place.
    text = content.gathered(np.where(kept > 0, places, 0), kept)
    buffers = [_valid(sizes >= 0), pa.py_buffer(ends), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), len(sizes), buffers)


def _starts(sizes: Int64s) -> Int64s:
    starts: Int64s = np.cumsum(sizes) - sizes
    return starts


def _numbers(values: Int64s, kind: pa.DataType, valid: Mask | None) -> pa.Array:
    """Nulls are 0 in memory."""
    narrow = (values if valid is None else np.where(valid, values, 0)).astype(f"i{kind.bit_width // 8}")
    return pa.Array.from_buffers(kind, len(values), [None if valid is None else _valid(valid), pa.py_buffer(narrow)])


def _valid(valid: Mask) -> pa.Buffer | None:
    """None if nothing is null."""
    return None if valid.all() else _bits(valid)


def _bits(bits: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))
