"""Decodes bytes as a frame or a body, guided by the message name if the user gave one.

A request names its own type; `identify_named` reads what the user has named.
"""

from kafkascope.codec.frame import DecodedFrame, decode_frame, split_length
from kafkascope.codec.identify.named import Identified, check_size, identify_named
from kafkascope.codec.message import decode
from kafkascope.errors import DecodeError, InputError, KafkascopeError, UsageError
from kafkascope.limits import MAX_FRAME_BYTES
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.targets import parse_message

__all__ = ["Identified", "guess_responses", "identify"]

# Enough candidates to help; more would be noise.
_MOST_GUESSES = 4
_TLS_RECORD = (1 << 14) + 2048


def identify(raw: bytes, name: str | None, release: str | None, *, spans: bool = True) -> Identified:
    """Without `spans`, whose number is limited, an exact reading has none; others are still chosen with their help."""
    if name is None:
        _name_others(raw)
        return Identified(_request(raw, release, spans), None, release)
    message_name, version = parse_message(name)
    layout(message_name, version, release)  # an unknown version is reported before the bytes are read
    try:
        if message(message_name).api is None:
            identified = Identified(None, decode(message_name, version, raw, release, spans=spans), release)
        else:
            identified = identify_named(raw, message_name, version, release, spans)
    except InputError:
        _name_others(raw)
        raise
    if not identified.exact:
        # Bytes that read as the named message are that message, whatever else they begin like.
        _name_others(raw)
    return identified


def _name_others(raw: bytes) -> None:
    """Recognizes other protocols that are often found where Kafka was expected."""
    # A TLS record: handshake, version 3.x, and a possible size (RFC 8446, 5.1).
    if raw[:2] == b"\x16\x03" and len(raw) > 5 and raw[2] <= 4 and 4 <= int.from_bytes(raw[3:5], "big") <= _TLS_RECORD:
        raise InputError("this is TLS, not Kafka: its content can't be read without the keys")
    if raw[:5] in (b"HTTP/", b"GET /", b"POST ", b"HEAD ", b"PUT /"):
        raise InputError("this is HTTP, not Kafka")


def _check_length(raw: bytes) -> None:
    """Reports a request whose length prefix doesn't match its bytes: cut off, or more than one."""
    announced = int.from_bytes(raw[:4], "big")
    key, version = int.from_bytes(raw[4:6], "big"), int.from_bytes(raw[6:8], "big")
    is_request = len(raw) >= 12 and key in apis() and bool(message(f"{apis()[key]}Request").releases_of(version))
    if is_request and 14 <= announced <= MAX_FRAME_BYTES and not _has_no_length(raw):
        check_size(raw)


def _has_no_length(raw: bytes) -> bool:
    """If the first four bytes are an API key and a version that exists, or soon may."""
    key, version = int.from_bytes(raw[:2], "big"), int.from_bytes(raw[2:4], "big")
    return key in apis() and (key > 0 or version <= message("ProduceRequest").all_versions()[-1] + 5)


def _request(raw: bytes, release: str | None, spans: bool) -> DecodedFrame:
    try:
        frame = decode_frame(raw, release=release, spans=spans)
    except DecodeError as error:
        _check_length(raw)
        raise _cannot_tell(raw, str(error)) from None
    if frame.exact:
        return frame
    if not spans:
        return _request(raw, release, spans=True)
    _check_length(raw)
    if not _plausible(frame) and (frame.body is None or guess_responses(raw)):
        raise _cannot_tell(raw, f"read as {frame.name or 'one'} v{frame.version} it isn't exact: {frame.reasons[-1]}")
    return frame


def _plausible(frame: DecodedFrame) -> bool:
    """For frames newer than the catalog: a known API, or a frame whose length fits, and a small version. For others:
    most of it was read. Four bytes of a correlation id can pass for an API key and a version, but the next bytes then
    make no sense."""
    if frame.body is None:
        return (frame.api is not None or frame.length is not None) and 0 <= frame.version < 100
    left = sum(span.end - span.start for span in frame.body.spans if span.path == "#trailing")
    return left * 8 < frame.body.spans[-1].end


def _cannot_tell(raw: bytes, why: str) -> KafkascopeError:
    """Wrong use if a response would fit, bad input if nothing does."""
    guesses = guess_responses(raw)
    lead = f"not a known request ({why}); a response or a bare body needs --as NAME:VERSION"
    if not guesses:
        return InputError(f"{lead}; no response fits either")
    more = " and more" if len(guesses) > _MOST_GUESSES else ""
    return UsageError(f"{lead}; responses that fit: {', '.join(guesses[:_MOST_GUESSES])}{more}")


def guess_responses(raw: bytes) -> list[str]:
    """Responses, newest version first, that read these bytes exactly, header included, and have content."""
    names: list[str] = []
    start = split_length(raw)[1]
    if len(raw) - start < 6 or len(raw) > 1_000_000:
        return names
    for api in apis().values():
        for version in reversed(message(f"{api}Response").all_versions()):
            try:
                # With spans nothing is compiled, which would cost more than the guess.
                frame = decode_frame(raw, response_to=(api, version), spans=True)
            except DecodeError:
                continue
            if frame.exact and frame.body is not None:
                names.append(f"{api}Response:{version}")
                break
    return names
