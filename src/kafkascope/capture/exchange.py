"""One request with its response, for people: the columns of `exchanges`, and both bodies decoded when asked for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from kafkascope.capture.bodies import read_frame
from kafkascope.capture.exchange_columns import to_arrow
from kafkascope.capture.exchanges import ExchangeBatch
from kafkascope.capture.facts import ENVELOPE
from kafkascope.codec.frame import DecodedFrame
from kafkascope.codec.result import Decoded
from kafkascope.errors import DecodeError


@dataclass(frozen=True, slots=True)
class Exchange:
    """`request_at` is when the last byte of the request was seen, `response_at` when the first of the response was, and
    `latency_us` lies between. What is not known is None. The frames are without their 4-byte length."""

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
    request_frame: bytes | None = field(repr=False)
    response_frame: bytes | None = field(repr=False)

    @property
    def request(self) -> Decoded | None:
        """None where there is none, or where the catalog does not know it; `DecodeError` where it cannot be read."""
        frame = self.decode_request()
        return frame.body if frame else None

    @property
    def response(self) -> Decoded | None:
        frame = self.decode_response()
        return frame.body if frame else None

    def decode_request(self, *, spans: bool = False) -> DecodedFrame | None:
        """With its header; None for a SASL token, which has none."""
        if self.request_frame is None or self.api_key is None:
            return None
        return read_frame(self.request_frame, None, spans=spans)

    def decode_response(self, *, spans: bool = False) -> DecodedFrame | None:
        if self.response_frame is None or self.api_key is None or self.api_version is None:
            return None
        return read_frame(self.response_frame, (self.api_key, self.api_version), spans=spans)

    def inner(self) -> tuple[DecodedFrame | None, DecodedFrame | None]:
        """The request that an Envelope carries, and its answer (KIP-590)."""
        if self.api_key != ENVELOPE or self.request is None:
            return None, None
        content: bytes = self.request.value["requestData"]
        asked = read_frame(content, None)
        answer = self.response.value["responseData"] if self.response else None
        if not answer:
            return asked, None
        return asked, read_frame(answer, (asked.api_key, asked.version))

    def readable(self) -> tuple[Decoded | None, Decoded | None]:
        """Both bodies, None for what cannot be read."""
        found: list[Decoded | None] = []
        for side in ("request", "response"):
            try:
                found.append(getattr(self, side))
            except DecodeError:
                found.append(None)
        return found[0], found[1]


def to_exchanges(batch: ExchangeBatch) -> Iterator[Exchange]:
    columns = [column.to_pylist() for column in to_arrow(batch).columns]
    for index, values in enumerate(zip(*columns, strict=True)):
        yield Exchange(*values, batch.request_frame(index), batch.response_frame(index))
