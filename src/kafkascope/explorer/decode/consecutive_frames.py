"""Splits bytes into consecutive frames by their lengths alone."""

from dataclasses import dataclass

from kafkascope.limits import MAX_FRAME_BYTES

# A correlation id and a byte of the body.
_LEAST = 5


@dataclass(frozen=True, slots=True)
class FrameSpan:
    """`size` is with the length. `missing` is how many bytes of it are not here, None of a rest that is no frame."""

    at: int
    size: int
    missing: int | None


def frames_in(raw: bytes) -> list[FrameSpan]:
    """All of the bytes; what is cut off, or no frame, can only be the last."""
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
