"""Decodes and encodes whole frames, with or without their 4-byte length. Unknown APIs and versions are data: the header
is read as far as possible and `body` is None with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kafkascope.codec.message import decode_part, decode_rest, encode
from kafkascope.codec.result import Decoded
from kafkascope.errors import DecodeError, EncodeError, UsageError
from kafkascope.limits import MAX_FRAME_BYTES
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import choose_block, layout
from kafkascope.schema.names import find, find_api, suggest

API_VERSIONS = 18
CONTROLLED_SHUTDOWN = 7
UNSUPPORTED_VERSION = 35
_FILLED_IN = ("requestApiKey", "requestApiVersion")
# A stream has few kinds of frames; other bytes can look like any.
_MOST_KINDS = 4_096


@dataclass(frozen=True, slots=True)
class DecodedFrame:
    """`name` and `body` are None if the catalog doesn't know the API or the version. All offsets, those of spans
    included, are in the input."""

    kind: str  # request or response
    name: str | None
    api_key: int
    version: int
    correlation_id: int
    length: int | None  # from the frame's prefix, None without one
    header: Decoded
    body: Decoded | None
    header_at: int
    body_at: int
    reasons: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return not self.reasons

    @property
    def api(self) -> str | None:
        return apis().get(self.api_key)


def header_version(name: str, version: int) -> int:
    """The version of the header of a request or response of this version."""
    definition = message(find(name))
    if definition.kind not in ("request", "response"):
        raise UsageError(f"{definition.name} has no header; only requests and responses have one")
    return _header_version(definition.kind, definition.key or 0, version, _is_flexible(definition.name, version))


def _header_version(kind: str, api_key: int, version: int, flexible: bool) -> int:
    if kind == "response":
        # A client that asks for a version that is too new must still be able to read the response (KIP-511).
        return 1 if flexible and api_key != API_VERSIONS else 0
    if api_key == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if flexible else 1


@lru_cache(_MOST_KINDS)
def _is_flexible(name: str, version: int) -> bool:
    """For a version newer than the catalog: like the newest one, since no message ever went back."""
    definition = message(name)
    versions = definition.all_versions()
    nearest = min(max(version, versions[0]), versions[-1])
    return nearest in choose_block(definition, nearest, None).flexible


@lru_cache(_MOST_KINDS)
def _is_known(name: str, version: int) -> bool:
    return bool(message(name).releases_of(version))


def split_length(data: bytes) -> tuple[int | None, int]:
    """(the value of the length prefix or None, where the header starts). A prefix counts if it equals the number of
    bytes."""
    if len(data) >= 4 and int.from_bytes(data[:4], "big") == len(data) - 4:
        return len(data) - 4, 4
    return None, 0


def decode_frame(
    data: bytes | bytearray | memoryview,
    *,
    response_to: tuple[str | int, int] | None = None,
    release: str | None = None,
    spans: bool = False,
) -> DecodedFrame:
    """Decodes a request or, with `response_to` (API name or key, version), a response: on the wire only its request
    shows what a response is."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise UsageError(f"expected bytes, got {type(data).__name__}")
    raw = bytes(data)
    if len(raw) > MAX_FRAME_BYTES + 4:
        raise DecodeError(f"frame of {len(raw)} bytes; the limit, as in a broker, is {MAX_FRAME_BYTES}")
    length, start = split_length(raw)
    if response_to is None:
        return _decode_request(raw, length, start, release, spans)
    frame: DecodedFrame | None = None
    problem: DecodeError | None = None
    try:
        frame = _decode_response(raw, length, start, response_to, release, spans)
    except DecodeError as error:
        problem = error
    try:
        if length is not None and (frame is None or not frame.exact):
            # A correlation id may equal the number of bytes after it.
            try:
                bare = _decode_response(raw, None, 0, response_to, release, spans)
            except DecodeError:
                bare = None
            if bare is not None and (bare.exact or (frame is None and _is_whole(bare))):
                return bare
        if frame is None:
            assert problem is not None
            raise problem
        return frame
    finally:
        # Kept here, it would keep this call and its callers alive, with their bytes, until the collector runs.
        problem = None


def decode_response_frame(
    raw: bytes, response_to: tuple[str | int, int], release: str | None = None, *, has_length: bool, spans: bool = False
) -> DecodedFrame:
    """Decodes a response of a stream that is split already: it has no length prefix, which a correlation id can look
    like."""
    if has_length:
        return _decode_response(raw, len(raw) - 4, 4, response_to, release, spans)
    return _decode_response(raw, None, 0, response_to, release, spans)


def _is_whole(frame: DecodedFrame) -> bool:
    """Read to its last byte, which bytes of another kind seldom are."""
    return frame.body is not None and not any("after the message" in reason for reason in frame.reasons)


def _decode_request(raw: bytes, length: int | None, start: int, release: str | None, spans: bool) -> DecodedFrame:
    if len(raw) - start < 8:
        raise DecodeError(f"request header needs at least 8 bytes, {len(raw) - start} left (offset {start})")
    api_key = int.from_bytes(raw[start : start + 2], "big", signed=True)
    version = int.from_bytes(raw[start + 2 : start + 4], "big", signed=True)
    api = apis().get(api_key)
    name = f"{api}Request" if api else None
    flexible = _is_flexible(name, version) if name else False
    header_number = _header_version("request", api_key, version, flexible)
    end = start + 8
    if header_number:
        # A client id, null or after its length, and no tags.
        size = int.from_bytes(raw[end : end + 2], "big", signed=True)
        end += 2 + max(size, 0) + (header_number == 2)
    header, body_at = decode_part("RequestHeader", header_number, raw, start, likely_end=end, spans=spans)
    body, reasons = _body(name, api_key, version, raw, body_at, release, spans)
    return DecodedFrame(
        "request", name, api_key, version, header.value["correlationId"], length, header, body, start, body_at,
        (*header.reasons, *reasons),
    )  # fmt: skip


def _decode_response(
    raw: bytes, length: int | None, start: int, response_to: tuple[str | int, int], release: str | None, spans: bool
) -> DecodedFrame:
    try:
        api_or_key, version = response_to
    except (TypeError, ValueError):
        raise UsageError("response_to must be an API and a version, such as ('Heartbeat', 4)") from None
    if not isinstance(version, int):
        raise UsageError(f"a version must be a number, not {type(version).__name__}")
    api = find_api(str(api_or_key))
    if api is None and not isinstance(api_or_key, int):
        raise UsageError(f"unknown API {api_or_key}{suggest(str(api_or_key))}")
    name = f"{api}Response" if api else None
    api_key = message(name).key or 0 if name else int(api_or_key)
    flexible = _is_flexible(name, version) if name else False
    header_number = _header_version("response", api_key, version, flexible)
    end = start + 4 + header_number
    header, body_at = decode_part("ResponseHeader", header_number, raw, start, likely_end=end, spans=spans)
    error = raw[body_at : body_at + 2]
    if api_key == API_VERSIONS and version > 0 and error == UNSUPPORTED_VERSION.to_bytes(2, "big"):
        version, body, reasons = _fallback(name, version, raw, body_at, release, spans)
    else:
        body, reasons = _body(name, api_key, version, raw, body_at, release, spans)
    return DecodedFrame(
        "response", name, api_key, version, header.value["correlationId"], length, header, body, start, body_at,
        (*header.reasons, *reasons),
    )  # fmt: skip


def _body(
    name: str | None, api_key: int, version: int, raw: bytes, at: int, release: str | None, spans: bool
) -> tuple[Decoded | None, tuple[str, ...]]:
    left = f"{len(raw) - at} bytes left unread (offset {at})"
    if name is None:
        return None, (f"API key {api_key} isn't in the catalog; {left}",)
    if not _is_known(name, version):
        return None, (f"{name} v{version} isn't in the catalog; {left}",)
    body = decode_rest(name, version, raw, at, release, spans=spans)
    return body, body.reasons


def _fallback(
    name: str | None, version: int, raw: bytes, at: int, release: str | None, spans: bool
) -> tuple[int, Decoded | None, tuple[str, ...]]:
    """A broker that doesn't know the requested version of ApiVersions returns error 35 in a version 0 body
    (KIP-511)."""
    try:
        body, reasons = _body(name, API_VERSIONS, 0, raw, at, release, spans)
        return 0, body, reasons
    except DecodeError:
        # Some brokers return 35 in the requested version all the same.
        body, reasons = _body(name, API_VERSIONS, version, raw, at, release, spans)
        return version, body, reasons


def encode_frame(
    name: str,
    version: int,
    value: dict[str, Any],
    header: Mapping[str, Any] | None = None,
    release: str | None = None,
    *,
    length: bool = True,
) -> bytes:
    """Header and body, after a 4-byte length unless disabled. `header` may set `correlationId`, `clientId` and unknown
    tags; API key and version are filled in, and different ones refused."""
    if not isinstance(header, Mapping | None):
        raise UsageError(f"a header must be a dict such as {{'correlationId': 7}}, not {type(header).__name__}")
    message_name = find(name)
    definition = message(message_name)
    version = layout(message_name, version, release).version
    number = header_version(message_name, version)
    fields: dict[str, Any] = {"correlationId": 0}
    if definition.kind == "request":
        fields |= {"requestApiKey": definition.key, "requestApiVersion": version}
        if number > 0:
            fields["clientId"] = None
    kind = "RequestHeader" if definition.kind == "request" else "ResponseHeader"
    for field, field_value in (header or {}).items():
        if field in _FILLED_IN and field in fields and field_value != fields[field]:
            raise EncodeError(f"{kind} v{number}, {field}: {message_name} v{version} has {fields[field]}")
    head = encode(kind, number, fields | dict(header or {}))
    content = head + encode(message_name, version, value, release)
    return (len(content).to_bytes(4, "big") if length else b"") + content
