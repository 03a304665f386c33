"""Bytes and what the user says of them in, the decoded frame or body out.

Whether length prefix and header are there is found by which reading comes out exact.
"""

from dataclasses import dataclass

from kafkascope.codec.frame import DecodedFrame, decode_frame, split_length
from kafkascope.codec.message import decode
from kafkascope.codec.result import Decoded
from kafkascope.errors import DecodeError, InputError, KafkascopeError, UsageError
from kafkascope.limits import MAX_FRAME_BYTES
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layout import layout
from kafkascope.schema.targets import parse_message

# Enough candidates to help; more would be noise.
MOST_GUESSES = 4


@dataclass(frozen=True, slots=True)
class Identified:
    """Either a whole frame or a bare body."""

    frame: DecodedFrame | None
    body: Decoded | None
    release: str | None

    @property
    def exact(self) -> bool:
        return self.frame.exact if self.frame else bool(self.body and self.body.exact)

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.frame.reasons if self.frame else self.body.reasons if self.body else ()


def identify(raw: bytes, name: str | None, release: str | None) -> Identified:
    _name_others(raw)
    if name is None:
        return Identified(_request(raw, release), None, release)
    wanted, version = parse_message(name)
    layout(wanted, version, release)  # a version that does not exist is said before the bytes are looked at
    if message(wanted).api is None:
        return Identified(None, decode(wanted, version, raw, release, spans=True), release)
    return _named(raw, wanted, version, release)


def _name_others(raw: bytes) -> None:
    """What often lies where Kafka was expected."""
    if raw[:2] == b"\x16\x03":
        raise InputError("this is TLS, not Kafka: what is inside cannot be read without the keys")
    if raw[:5] in (b"HTTP/", b"GET /", b"POST ", b"HEAD ", b"PUT /"):
        raise InputError("this is HTTP, not Kafka")


def _check_length(raw: bytes) -> None:
    """A request whose length prefix says something else than what is here: cut off, or more than one."""
    says = int.from_bytes(raw[:4], "big")
    key, version = int.from_bytes(raw[4:6], "big"), int.from_bytes(raw[6:8], "big")
    known = len(raw) >= 12 and key in apis() and bool(message(f"{apis()[key]}Request").releases_of(version))
    if not known or says == len(raw) - 4 or not 14 <= says <= MAX_FRAME_BYTES or _has_no_length(raw):
        return
    if says > len(raw) - 4:
        raise InputError(f"the frame is cut off: its length says {says} bytes, {len(raw) - 4} are here")
    raise InputError(
        f"more than one frame: the first one's length says {says} bytes, {len(raw) - 4} are here; decode reads one"
    )


def _has_no_length(raw: bytes) -> bool:
    """Whether the first four bytes are an API key and a version that is, or soon may be, one of its own."""
    key, version = int.from_bytes(raw[:2], "big"), int.from_bytes(raw[2:4], "big")
    return key in apis() and (key > 0 or version <= message("ProduceRequest").all_versions()[-1] + 5)


def _request(raw: bytes, release: str | None) -> DecodedFrame:
    try:
        frame = decode_frame(raw, release=release, spans=True)
    except DecodeError as error:
        _check_length(raw)
        raise _cannot_tell(raw, str(error)) from None
    if frame.exact:
        return frame
    _check_length(raw)
    if not _plausible(frame) and (frame.body is None or guess_responses(raw)):
        raise _cannot_tell(raw, f"read as {frame.name or 'one'} v{frame.version} it is not exact: {frame.reasons[-1]}")
    return frame


def _plausible(frame: DecodedFrame) -> bool:
    """Newer than the catalog: known API or a frame whose length fits, and a small version. Otherwise: most of it was
    read. Four bytes of a correlation id can pass for an API key and a version, but what follows then makes no sense."""
    if frame.body is None:
        return (frame.api is not None or frame.length is not None) and 0 <= frame.version < 100
    left = sum(span.end - span.start for span in frame.body.spans if span.path == "#trailing")
    return left * 8 < frame.body.spans[-1].end


def _cannot_tell(raw: bytes, why: str) -> KafkascopeError:
    """Wrong use where a response would fit, bad input where nothing does."""
    guesses = guess_responses(raw)
    lead = f"no request of the catalog ({why}); a response or a bare body needs --as NAME:VERSION"
    if not guesses:
        return InputError(f"{lead}; it fits no response")
    more = " and more" if len(guesses) > MOST_GUESSES else ""
    return UsageError(f"{lead}; it fits {', '.join(guesses[:MOST_GUESSES])}{more}")


def guess_responses(raw: bytes) -> list[str]:
    """Responses, newest version first, that read these bytes exactly, header included, and say something."""
    found: list[str] = []
    start = split_length(raw)[1]
    if len(raw) - start < 6 or len(raw) > 1_000_000:
        return found
    for api in apis().values():
        for version in reversed(message(f"{api}Response").all_versions()):
            try:
                # With spans nothing is compiled, which would cost more than the guess.
                frame = decode_frame(raw, response_to=(api, version), spans=True)
            except DecodeError:
                continue
            if frame.exact and frame.body is not None:
                found.append(f"{api}Response:{version}")
                break
    return found


def _named(raw: bytes, wanted: str, version: int, release: str | None) -> Identified:
    """With a length prefix it is a frame. Without, a request's own header tells; a response's header is four bytes
    that could be anything, so the bare body is tried first."""
    known = message(wanted)
    length, _ = split_length(raw)
    if known.kind == "request":
        key_and_version = (known.key or 0).to_bytes(2, "big") + version.to_bytes(2, "big")
        start = 4 if length is not None else 0
        if raw[start : start + 4] == key_and_version:
            return Identified(decode_frame(raw, release=release, spans=True), None, release)
        return Identified(None, decode(wanted, version, raw, release, spans=True), release)
    body: Decoded | None = None
    problem: DecodeError | None = None
    try:
        body = decode(wanted, version, raw, release, spans=True)
        if body.exact and length is None:
            return Identified(None, body, release)
    except DecodeError as error:
        problem = error
    try:
        frame = decode_frame(raw, response_to=(known.api or "", version), release=release, spans=True)
        if frame.exact or body is None or length is not None:
            return Identified(frame, None, release)
    except DecodeError as error:
        problem = error if length is not None else problem or error
    if body is not None and length is None:
        return Identified(None, body, release)
    assert problem is not None
    raise problem
