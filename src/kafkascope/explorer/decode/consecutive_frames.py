"""Splits bytes into consecutive frames by their lengths alone."""

from dataclasses import dataclass

from kafkascope.limits import MAX_FRAME_BYTES

# A correlation id and a byte of the body.
_LEAST = 5


@dataclass(frozen=True, slots=True)
class FrameSpan:
    """`size` includes the length field. `missing` is how many of its bytes are absent, None for a rest that isn't a
    frame."""

    at: int
    size: int
    missing: int | None


def frames_in(raw: bytes) -> list[FrameSpan]:
    """Splits all bytes. Only the last piece can be cut off, or not a frame."""
    pieces: list[FrameSpan] = []
    at = 0
    while at < len(raw):
        left = len(raw) - at
        announced = int.from_bytes(raw[at : at + 4], "big", signed=True)
        if left < 4 or not _LEAST <= announced <= MAX_FRAME_BYTES:
            return [*pieces, FrameSpan(at, left, None)]
        size = min(announced + 4, left)
        pieces.append(FrameSpan(at, size, announced + 4 - size))
        at += size
    return pieces
