"""A recorded capture's name in, every Kafka frame of it out, requests, responses and what Envelopes hold."""

from collections.abc import Iterator
from dataclasses import dataclass

from kafkascope.capture.exchanges.exchange import Exchange
from kafkascope.capture.reader import read
from kafkascope.codec.frame import DecodedFrame, decode_frame
from tests.captures import HERE

ENVELOPE = 58


@dataclass(frozen=True, slots=True)
class Recorded:
    """`data` is header and body behind their length; `response_to` is (API key, version), None for a request."""

    exchange_id: str
    data: bytes
    response_to: tuple[int, int] | None

    def decode(self, release: str | None = None, *, spans: bool = False) -> DecodedFrame:
        return decode_frame(self.data, response_to=self.response_to, release=release, spans=spans)


def exchanges(name: str) -> list[Exchange]:
    return list(read(HERE / name / "capture.pcap.xz"))


def recorded_frames(name: str) -> list[Recorded]:
    """All but SASL tokens, which have no header. What an Envelope holds follows it."""
    return [frame for exchange in exchanges(name) for frame in frames_of(exchange)]


def frames_of(exchange: Exchange) -> Iterator[Recorded]:
    if exchange.api_key is None or exchange.api_version is None:
        return
    sides = ((exchange.request_frame, None), (exchange.response_frame, (exchange.api_key, exchange.api_version)))
    inner_request: tuple[int, int] | None = None
    for content, response_to in sides:
        if content is None:
            continue
        frame = Recorded(exchange.exchange_id, prefixed(content), response_to)
        yield frame
        if exchange.api_key == ENVELOPE:
            # KIP-590: a request with its own header, and the answer to it.
            held = _held(frame)
            if held is not None:
                inner = Recorded(exchange.exchange_id, prefixed(held), None if response_to is None else inner_request)
                yield inner
                if response_to is None:
                    decoded = inner.decode()
                    inner_request = (decoded.api_key, decoded.version)


def _held(envelope: Recorded) -> bytes | None:
    body = envelope.decode().body
    assert body is not None
    held: bytes | None = body.value["requestData" if envelope.response_to is None else "responseData"]
    return held


def prefixed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content
