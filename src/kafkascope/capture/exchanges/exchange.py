"""One request with its response as an object: the columns of `exchanges`, and both bodies, decoded on demand."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from kafkascope.capture.exchanges.bodies import read_frame
from kafkascope.capture.exchanges.exchange_columns import TIME, to_arrow
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.facts import ENVELOPE
from kafkascope.capture.exchanges.name_cache import Names
from kafkascope.codec.frame import DecodedFrame
from kafkascope.codec.result import Decoded
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_CAREFUL_FRAME_BYTES

# Rows that are converted to Python objects at once.
TOGETHER = 8_192
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Exchange:
    """`request_at` is when the last byte of the request was seen, `response_at` when the first byte of the response
    was, and `latency_us` is the time between. Unknown values are None. The frames are without their 4-byte length.
    `groups`, `members` and `topics` are the names in the two bodies, or in the fetch session."""

    exchange_id: str
    connection_id: str
    capture_uri: str
    packet: int
    request_at: datetime | None
    response_at: datetime | None
    latency_us: int | None
    long_poll: bool
    max_wait_ms: int | None
    api_key: int | None
    api: str | None
    api_version: int | None
    correlation_id: int | None
    client_id: str | None
    client_address: str
    broker_address: str
    client_software: str | None
    request_bytes: int | None
    response_bytes: int | None
    error_code: int | None
    error: str | None
    throttle_ms: int | None
    status: str
    group_id: str | None
    member_id: str | None
    groups: tuple[str, ...]
    members: tuple[str, ...]
    topics: tuple[str, ...]
    request_frame: bytes | None = field(repr=False)
    response_frame: bytes | None = field(repr=False)

    @property
    def request(self) -> Decoded | None:
        """None without a request, or if the catalog doesn't know it; raises `DecodeError` if it can't be decoded."""
        frame = self.decode_request()
        return frame.body if frame else None

    @property
    def response(self) -> Decoded | None:
        """Likewise."""
        frame = self.decode_response()
        return frame.body if frame else None

    def decode_request(self, *, spans: bool = False) -> DecodedFrame | None:
        """With its header and length prefix; None for a SASL token, which has no header."""
        if self.request_frame is None or self.api_key is None:
            return None
        return read_frame(self.request_frame, None, spans=spans)

    def decode_response(self, *, spans: bool = False) -> DecodedFrame | None:
        """Likewise."""
        if self.response_frame is None or self.api_key is None or self.api_version is None:
            return None
        return read_frame(self.response_frame, (self.api_key, self.api_version), spans=spans)

    def inner(self) -> list[DecodedFrame]:
        """The request inside an Envelope and its response, as far as they can be decoded (KIP-590)."""
        if self.api_key != ENVELOPE:
            return []
        return [frame for frame, _ in inner_frames(self.request_frame, self.response_frame)]

    @property
    def problem(self) -> str | None:
        """Why it is `undecoded`: message, field and offset. None if the catalog doesn't know the API or version."""
        longest = max(self.request_bytes or 0, self.response_bytes or 0) - 4
        if self.status == "undecoded" and longest > MAX_CAREFUL_FRAME_BYTES:
            return (
                f"a frame of {longest} bytes that Kafka would write differently; "
                f"{MAX_CAREFUL_FRAME_BYTES} is the limit for these"
            )
        for name, frame, size in (
            ("request", self.request_frame, self.request_bytes),
            ("response", self.response_frame, self.response_bytes),
        ):
            if frame is not None and size is not None and len(frame) + 4 < size:
                return f"{len(frame)} of {size - 4} bytes of the {name} were recorded"
        try:
            self.decode_request()
            self.decode_response()
            if self.api_key == ENVELOPE:
                list(_inside(self.request_frame, self.response_frame))
        except DecodeError as error:
            return str(error)
        return None


def inner_frames(request: bytes | None, response: bytes | None) -> Iterator[tuple[DecodedFrame, bytes]]:
    """(frame, the bytes that its offsets refer to) inside an Envelope's two frames, as far as they can be decoded."""
    with suppress(DecodeError):
        yield from _inside(request, response)


def _inside(request: bytes | None, response: bytes | None) -> Iterator[tuple[DecodedFrame, bytes]]:
    outer = read_frame(request or b"", None)
    if outer.body is None:
        return
    content: bytes = outer.body.value["requestData"]
    inner = read_frame(content, None)
    yield inner, len(content).to_bytes(4, "big") + content
    outer_response = read_frame(response, (ENVELOPE, outer.version)).body if response is not None else None
    inner_response = outer_response.value["responseData"] if outer_response else None
    if inner_response:
        yield (
            read_frame(inner_response, (inner.api_key, inner.version)),
            len(inner_response).to_bytes(4, "big") + inner_response,
        )


def to_exchanges(batch: ExchangeBatch, names: list[Names]) -> Iterator[Exchange]:
    """One per row."""
    yield from pick_exchanges(batch, names, to_arrow(batch), range(len(batch)))


def pick_exchanges(
    batch: ExchangeBatch,
    names: list[Names],
    columns: pa.RecordBatch,
    chosen: Sequence[int],
    *,
    longest: int | None = None,
) -> Iterator[Exchange]:
    """One per chosen row; frames of more than `longest` bytes are omitted, because each is a copy."""
    for some, taken in portions(columns, chosen):
        for index, *values in zip(some, *map(values_of, taken.columns), strict=True):
            named = names[index]
            frames = (batch.request_frame(index, longest), batch.response_frame(index, longest))
            yield Exchange(*(*values, named.groups, named.members, named.topics, *frames))


def portions(columns: pa.RecordBatch, chosen: Sequence[int]) -> Iterator[tuple[Sequence[int], pa.RecordBatch]]:
    """The chosen rows in portions small enough for Python objects, which take a kilobyte or two per row."""
    everything = len(chosen) == columns.num_rows
    for first in range(0, len(chosen), TOGETHER):
        some = chosen[first : first + TOGETHER]
        yield some, columns.slice(first, len(some)) if everything else columns.take(pa.array(some, pa.int64()))


def values_of(column: pa.Array) -> list[Any]:
    """The values as Python objects, times in UTC."""
    if column.type != TIME:
        return list(column.to_pylist())
    # For each value, pyarrow would look up the time zone.
    return [None if us is None else _EPOCH + timedelta(microseconds=us) for us in column.view(pa.int64()).to_pylist()]
