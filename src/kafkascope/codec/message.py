"""Decodes and encodes one message body: `decode` and `encode` of the public API.

The fast decoder of `engine` and the generated encoder of `fast_encode` go first; for other input the careful `walk` and
`write` take over, and report what is wrong.
"""

from functools import lru_cache
from struct import error as StructError
from typing import Any

from kafkascope.codec.fast.engine import FastDecoder, fast_decoder
from kafkascope.codec.fast.fast_encode import Encoder, compile_encoder
from kafkascope.codec.not_canonical import NotCanonical
from kafkascope.codec.result import Decoded
from kafkascope.codec.walk import Walk
from kafkascope.codec.write import Write
from kafkascope.errors import UsageError
from kafkascope.schema.layouts.layout import layout

# Raised by the generated encoder for a value that isn't complete with exact types; the careful one decides.
_LEFT_TO_CAREFUL = (
    NotCanonical,
    StructError,
    IndexError,
    UnicodeError,
    OverflowError,
    KeyError,
    TypeError,
    AttributeError,
)


@lru_cache(maxsize=2048)
def _decoder(name: str, version: int, release: str | None) -> FastDecoder:
    return fast_decoder(layout(name, version, release))


@lru_cache(maxsize=2048)
def _encoder(name: str, version: int, release: str | None) -> Encoder:
    return compile_encoder(layout(name, version, release))


def decode(
    name: str, version: int, data: bytes | bytearray | memoryview, release: str | None = None, *, spans: bool = False
) -> Decoded:
    """The body of a message, without frame length and header. Raises `DecodeError` if Kafka couldn't read it.

    >>> decode("ApiVersionsRequest", 3, bytes.fromhex("0461 6161 0231 00".replace(" ", ""))).value
    {'clientSoftwareName': 'aaa', 'clientSoftwareVersion': '1'}
    """
    raw = data if type(data) is bytes else as_bytes(data, "a body")
    if not spans:
        decoded = _decoder(name, version, release)(raw, 0)
        if decoded is not None:
            return decoded
    walk = Walk(layout(name, version, release), raw, spans=spans)
    return finish(walk, walk.message())


def decode_plain(name: str, version: int, data: bytes, position: int) -> Decoded | None:
    """The body from `position` to the end of `data` if it is in the form Kafka writes; None if only `decode` can judge
    it."""
    return _decoder(name, version, None)(data, position)


def as_bytes(data: Any, label: str) -> bytes:
    # From an int, `bytes` would make that many zeros.
    try:
        return memoryview(data).tobytes()
    except TypeError:
        raise UsageError(f"{label} must be bytes, not {type(data).__name__}") from None


def decode_rest(
    name: str, version: int, data: bytes, position: int, release: str | None = None, *, spans: bool = False
) -> Decoded:
    """The same from `position` to the end of `data`; offsets in spans, reasons and errors are those of `data`."""
    if not spans:
        decoded = _decoder(name, version, release)(data, position)
        if decoded is not None:
            return decoded
    walk = Walk(layout(name, version, release), data, position, spans=spans)
    return finish(walk, walk.message())


def decode_part(
    name: str, version: int, data: bytes, position: int, release: str | None = None, *,
    likely_end: int = -1, spans: bool = False,
) -> tuple[Decoded, int]:  # fmt: skip
    """Decodes from `position` to the end of the message, and returns the position of that end: headers precede a body.
    The end is known only after reading; if the bytes up to `likely_end` are one whole message, it is `likely_end`."""
    if not spans and position < likely_end <= len(data):
        decoded = _decoder(name, version, release)(data[position:likely_end], 0)
        if decoded is not None:
            return decoded, likely_end
    walk = Walk(layout(name, version, release), data, position, spans=spans)
    value = walk.message(whole=False)
    return finish(walk, value), walk.position


def finish(walk: Walk, value: dict[str, Any]) -> Decoded:
    return Decoded(
        walk.layout.message.name, walk.layout.version, value, not walk.reasons, walk.all_reasons(), tuple(walk.spans)
    )


def encode(name: str, version: int, value: dict[str, Any], release: str | None = None) -> bytes:
    """The body of a message. Missing fields take their defaults; `EncodeError` names the path of what is wrong.

    >>> encode("ApiVersionsRequest", 3, {"clientSoftwareName": "aaa", "clientSoftwareVersion": "1"}).hex()
    '04616161023100'
    """
    try:
        return _encoder(name, version, release)(value)
    except _LEFT_TO_CAREFUL:
        return Write(layout(name, version, release)).message(value)
