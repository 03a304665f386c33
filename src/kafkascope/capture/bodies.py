"""One frame in, its body decoded: with the newest layout, or that of an older release where only that fits. None where
the catalog does not know the message; `DecodeError` where it does and the bytes are not that."""

from functools import lru_cache

from kafkascope.codec.frame import DecodedFrame, decode_frame
from kafkascope.codec.result import Decoded
from kafkascope.errors import DecodeError
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.releases import releases


def decode_request(frame: bytes) -> Decoded | None:
    """A frame without its length."""
    return read_frame(frame, None).body


def decode_response(frame: bytes, api_key: int, version: int) -> Decoded | None:
    return read_frame(frame, (api_key, version)).body


def read_frame(frame: bytes, response_to: tuple[int, int] | None, *, spans: bool = False) -> DecodedFrame:
    if response_to is None:
        key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
    else:
        key, version = response_to
    # In front of the frame its own length, or one that says what follows would be taken for it.
    whole = len(frame).to_bytes(4, "big") + frame
    try:
        first = decode_frame(whole, response_to=response_to, spans=spans)
        if first.exact:
            return first
        problem = None
    except DecodeError as error:
        first, problem = None, error
    for release in other_layouts(key, version, response_to is not None):
        try:
            other = decode_frame(whole, response_to=response_to, release=release, spans=spans)
        except DecodeError:
            continue
        if other.exact or first is None:
            return other
    if first is None:
        assert problem is not None
        raise problem
    return first


@lru_cache(maxsize=512)
def other_layouts(key: int, version: int, response: bool) -> tuple[str, ...]:
    """Releases that lay this version out in another way than the newest (GOTCHAS 28)."""
    api = apis().get(key)
    if api is None:
        return ()
    known = message(f"{api}{'Response' if response else 'Request'}")
    return tuple(
        next(r.name for r in releases() if r.name in block.releases)
        for block in known.blocks
        if block.releases is not None and version in block.versions
    )
