"""Decodes the body of one frame: with the newest layout, or with that of an older release if only that fits. The result
is None for a message that the catalog doesn't know; `DecodeError` means that the bytes don't fit one it knows."""

from functools import lru_cache
from struct import Struct

from kafkascope.codec.frame import (
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    DecodedFrame,
    decode_frame,
    decode_response_frame,
    header_version,
)
from kafkascope.codec.message import decode_plain
from kafkascope.codec.result import Decoded
from kafkascope.errors import DecodeError
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.releases import releases


def decode_request(frame: bytes) -> Decoded | None:
    """A frame without its length."""
    if len(frame) >= 10:
        key, version, client = _REQUEST.unpack_from(frame)
        api, flexible = _known(key, version, "Request")
        at = 10 + max(client, 0)
        if api is not None and (key, version) != (CONTROLLED_SHUTDOWN, 0) and _is_whole(frame, at, flexible):
            body = decode_plain(f"{api}Request", version, frame, at + flexible)
            if body is not None:
                return body
    return read_frame(frame, None).body


def decode_response(frame: bytes, api_key: int, version: int) -> Decoded | None:
    api, flexible = _known(api_key, version, "Response")
    if api is not None and api_key != API_VERSIONS and _is_whole(frame, 4, flexible):
        body = decode_plain(f"{api}Response", version, frame, 4 + flexible)
        if body is not None:
            return body
    return read_frame(frame, (api_key, version)).body


# Key, version, and the length of the client id, which follows the correlation id.
_REQUEST = Struct(">hh4xh")


@lru_cache(maxsize=2048)
def _known(key: int, version: int, kind: str) -> tuple[str | None, bool]:
    """(API, whether its header ends in tags); None for an API or version that the catalog doesn't know."""
    api = apis().get(key)
    if api is None or not message(f"{api}{kind}").releases_of(version):
        return None, False
    return api, header_version(f"{api}{kind}", version) == (2 if kind == "Request" else 1)


def _is_whole(frame: bytes, at: int, flexible: bool) -> bool:
    """If a body may start here: a header's tag section is empty in all that Kafka writes today."""
    return len(frame) > at and frame[at] == 0 if flexible else len(frame) >= at


def read_frame(frame: bytes, response_to: tuple[int, int] | None, *, spans: bool = False) -> DecodedFrame:
    if response_to is None:
        key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
    else:
        key, version = response_to
    # With its length prefix: without it, leading bytes that happen to equal one would be taken for a length.
    whole = len(frame).to_bytes(4, "big") + frame
    others = other_layouts(key, version, response_to is not None)
    if not others:
        return _decode(whole, response_to, None, spans)
    best: str | None = None
    readable = False
    # One at a time: two decoded copies of a large message would take twice the memory allowed for one.
    for release in (None, *others):
        try:
            decoded = _decode(whole, response_to, release, spans)
        except DecodeError:
            continue
        if decoded.exact:
            return decoded
        if not readable:
            best, readable = release, True
        del decoded
    return _decode(whole, response_to, best, spans)


def _decode(whole: bytes, response_to: tuple[int, int] | None, release: str | None, spans: bool) -> DecodedFrame:
    if response_to is None:
        return decode_frame(whole, release=release, spans=spans)
    return decode_response_frame(whole, response_to, release, has_length=True, spans=spans)


@lru_cache(maxsize=512)
def other_layouts(key: int, version: int, response: bool) -> tuple[str, ...]:
    """Releases whose layout of this version differs from the newest one (protocol note 27)."""
    api = apis().get(key)
    if api is None:
        return ()
    known = message(f"{api}{'Response' if response else 'Request'}")
    return tuple(
        next(r.name for r in releases() if r.name in block.releases)
        for block in known.blocks
        if block.releases is not None and version in block.versions
    )
