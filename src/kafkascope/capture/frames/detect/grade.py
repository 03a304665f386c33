"""Grades the bytes at a place of a stream as a Kafka frame, and names other protocols by their first bytes.

A frame is strong if its header is known and its body decodes to the last byte; ports prove nothing."""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from struct import Struct
from typing import NamedTuple

from kafkascope.codec.fast.engine import FastDecoder, fast_decoder
from kafkascope.codec.frame import DecodedFrame, decode_frame, header_version
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_FRAME_BYTES
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import FIXED_SIZES, layout

Buffer = bytes | bytearray | memoryview

# A request header without client id; a response header.
SMALLEST_REQUEST = 8
SMALLEST_RESPONSE = 4
# API keys and versions that a Kafka to come may have.
MOST_KEYS, MOST_VERSIONS = 256, 64
# Kafka has no cap of its own on client ids; they are names.
MOST_CLIENT_ID = 1_024
CONTROLLED_SHUTDOWN = 7
API_VERSIONS = 18
_UNSUPPORTED_VERSION = (35).to_bytes(2, "big")
# librdkafka 0.9 to 1.3 sends one after the empty body of ApiVersions v0.
EMPTY_ARRAY = bytes(4)
# Length, key, version, correlation id and the client id's length; length and correlation id.
_REQUEST_HEAD, _RESPONSE_HEAD = Struct(">ihhih"), Struct(">ii")


class Grade(Enum):
    BAD = 0  # not a frame
    MORE = 1  # not complete yet
    WEAK = 2  # a header that is possible, and a body that the catalog doesn't have
    STRONG = 3


class Graded(NamedTuple):
    """A frame that begins somewhere in a buffer; `end` is where the next one begins, -1 if the header isn't complete
    yet. `careful`: the quick decoder couldn't decide."""

    grade: Grade
    end: int = -1
    api_key: int = -1
    version: int = -1
    correlation_id: int = -1
    client_id: str | None = None
    careful: bool = False


BAD = Graded(Grade.BAD)
MORE = Graded(Grade.MORE)


def grade_request(buffer: Buffer, at: int) -> Graded:
    left = len(buffer) - at
    if left < 4:
        return MORE
    length, api_key, version, correlation_id, size = _REQUEST_HEAD.unpack(bytes(buffer[at : at + 14]).ljust(14, b"\0"))
    if not SMALLEST_REQUEST <= length <= MAX_FRAME_BYTES:
        return BAD
    end = at + 4 + length
    if left < 8:
        return MORE
    if api_key < 0 or not 0 <= version < MOST_VERSIONS:
        return BAD
    client_id = None
    body_at = 12
    if (api_key, version) != (CONTROLLED_SHUTDOWN, 0):
        if length < SMALLEST_REQUEST + 2:
            return BAD
        if left < 14:
            return MORE
        if not -1 <= size <= min(length - 10, MOST_CLIENT_ID):
            return BAD
        if left < 14 + size:
            return MORE
        client_id = _text(buffer[at + 14 : at + 14 + size]) if size >= 0 else ""
        if client_id is None:
            return BAD
        body_at = 14 + max(size, 0)
    if end > len(buffer):
        return Graded(Grade.MORE, end)
    grade = Grade.WEAK
    careful = False
    if is_known(api_key, version):
        quick = _quick(api_key, version, False)
        if end - at - body_at < quick.least:
            grade = Grade.BAD
        elif (api_key, version) == (API_VERSIONS, 0) and buffer[at + body_at : end] == EMPTY_ARRAY:
            grade = Grade.STRONG
        else:
            raw = bytes(buffer[at:end])
            careful = not _is_plain(raw, body_at, quick)
            grade = _judge(raw, None, quick.name, version) if careful else Grade.STRONG
    return Graded(grade, end, api_key, version, correlation_id, client_id, careful)


def grade_response(buffer: Buffer, at: int, requests: Mapping[int, tuple[int, int]]) -> Graded:
    """`requests` maps correlation id to (API key, version)."""
    left = len(buffer) - at
    if left < 4:
        return MORE
    length, correlation_id = _RESPONSE_HEAD.unpack(bytes(buffer[at : at + 8]).ljust(8, b"\0"))
    if not SMALLEST_RESPONSE <= length <= MAX_FRAME_BYTES:
        return BAD
    end = at + 4 + length
    if left < 8:
        return MORE
    request = requests.get(correlation_id)
    if request is None:
        return Graded(Grade.BAD, end, correlation_id=correlation_id)
    if end > len(buffer):
        return Graded(Grade.MORE, end)
    grade = Grade.WEAK
    careful = False
    api_key, version = request
    raw = bytes(buffer[at:end])
    if api_key == API_VERSIONS and not is_known(api_key, version) and raw[8:10] == _UNSUPPORTED_VERSION:
        # A client of a later Kafka: the broker responds in version 0.
        version = 0
    if is_known(api_key, version):
        quick = _quick(api_key, version, True)
        # A broker that doesn't know the version responds in another one.
        if (api_key != API_VERSIONS or raw[8:10] != _UNSUPPORTED_VERSION) and _is_plain(raw, 8, quick):
            grade = Grade.STRONG
        else:
            careful = True
            grade = _judge(raw, (apis()[api_key], version), quick.name, version)
    return Graded(grade, end, *request, correlation_id, careful=careful)


def fits(api_key: int, version: int, size: int, *, response: bool) -> bool:
    """Whether a message of the catalog can have so few bytes after correlation id and client id."""
    return is_known(api_key, version) and size >= _quick(api_key, version, response).least


def is_tagged(api_key: int, version: int) -> bool:
    """Whether the header of a known request ends in a tag section: it's empty in all that Kafka writes today."""
    return _quick(api_key, version, False).tagged


@cache
def is_measured(api_key: int, version: int, *, response: bool = False) -> bool:
    """Whether a message has a length or a count in it. Without one any bytes of the right number decode."""
    fields = layout(f"{apis()[api_key]}{'Response' if response else 'Request'}", version).fields
    return any(field.array or field.type not in FIXED_SIZES for field in fields)


@cache
def is_known(api_key: int, version: int) -> bool:
    api = apis().get(api_key)
    return api is not None and bool(message(f"{api}Request").releases_of(version))


@cache
def other_layouts(name: str, version: int) -> tuple[str, ...]:
    """A release of each layout that the version had before its present one (unstable versions)."""
    return tuple(
        block.releases.first
        for block in message(name).blocks
        if block.releases is not None and version in block.versions
    )


class _Quick(NamedTuple):
    """A message, its quick decoder, whether its header has tags, and the fewest bytes after the rest of its header in
    any of its layouts: frames by chance are often shorter."""

    name: str
    decode: FastDecoder
    tagged: bool
    least: int


@cache
def _quick(api_key: int, version: int, response: bool) -> _Quick:
    name = f"{apis()[api_key]}{'Response' if response else 'Request'}"
    # Headers have tags from version 1 on, those of requests from version 2 on.
    tagged = header_version(name, version) == (1 if response else 2)
    layouts = [layout(name, version, release) for release in (None, *other_layouts(name, version))]
    least = min(sum(field.minimum for field in fields.fields) + fields.flexible for fields in layouts)
    return _Quick(name, fast_decoder(layouts[0]), tagged, tagged + least)


def _is_plain(raw: bytes, at: int, quick: _Quick) -> bool:
    """Whether the quick decoder reads the frame to its last byte, as it does nearly all true frames: the header ends at
    `at`, but for the tag section, which is empty. The careful decoder, many times as slow, decides the others."""
    if quick.tagged:
        if raw[at : at + 1] != b"\0":
            return False
        at += 1
    return at <= len(raw) and quick.decode(raw, at) is not None


def _judge(raw: bytes, response_to: tuple[str, int] | None, name: str, version: int) -> Grade:
    best = Grade.BAD
    for release in (None, *other_layouts(name, version)):
        try:
            frame = decode_frame(raw, response_to=response_to, release=release)
        except DecodeError:
            continue
        if frame.length is None:
            continue  # decoded as a frame without a length in front
        if frame.exact:
            return Grade.STRONG
        if not _has_trailing_bytes(frame):
            best = Grade.WEAK
    return best


def _has_trailing_bytes(frame: DecodedFrame) -> bool:
    return any("after the message" in reason for reason in frame.reasons)


def _text(raw: Buffer) -> str | None:
    """Empty if it doesn't print: a client may have such a name, but it proves nothing."""
    try:
        text = bytes(raw).decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else ""


_HTTP = (
    b"GET ", b"PUT ", b"POST ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE ", b"HTTP/1.",
    b"PRI * HTTP/2",
)  # fmt: skip
TLS_HANDSHAKE, CLIENT_HELLO, SERVER_HELLO = 22, 1, 2
TLS_MAJOR, TLS_MINOR = 3, 4
_TLS_TYPES = range(20, 25)
# A TLS record and what encryption adds to it (RFC 5246; RFC 8446 allows less).
MOST_TLS_RECORD = 16_384 + 2_048


def other_protocol(buffer: Buffer, at_start: bool) -> str | None:
    """`tls` or `http` if the bytes show it; `at_start` if they are the first of their stream. None of these can be the
    length of a Kafka frame, so no Kafka is lost; but a frame can contain any bytes, so away from the start more has to
    agree."""
    head = bytes(buffer[:16])
    if at_start:
        if (
            len(head) >= 6
            and _tls_record(buffer, 0)
            and head[0] == TLS_HANDSHAKE
            and head[5] in (CLIENT_HELLO, SERVER_HELLO)
        ):
            return "tls"
        return "http" if head.startswith(_HTTP) else None
    end = _tls_record(buffer, 0)
    if end and _tls_record(buffer, end):
        return "tls"
    if head.startswith(_HTTP):
        line = bytes(buffer[:4_096]).partition(b"\r\n")
        if line[1] and b"HTTP/1." in line[0]:
            return "http"
    return None


def may_be_named(head: bytes) -> bool:
    """Whether `other_protocol` can ever name a stream that begins like this."""
    return not head or head[0] in _TLS_TYPES or any(head.startswith(word[: len(head)]) for word in _HTTP)


def _tls_record(buffer: Buffer, at: int) -> int:
    """Where the record ends, 0 if there is none."""
    head = bytes(buffer[at : at + 5])
    if len(head) < 5 or head[0] not in _TLS_TYPES or head[1] != TLS_MAJOR or head[2] > TLS_MINOR:
        return 0
    length = int.from_bytes(head[3:5], "big")
    return at + 5 + length if 0 < length <= MOST_TLS_RECORD else 0
