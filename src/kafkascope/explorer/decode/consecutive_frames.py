"""Bytes in, the frames that lie in them one behind the other out, by their lengths alone."""

from dataclasses import dataclass

from kafkascope.limits import MAX_FRAME_BYTES

# A correlation id and a byte of the body.
_LEAST = 5


@dataclass(frozen=True, slots=True)
class Piece:
    """`size` is with the length. `missing` is how many bytes of it are not here, None of a rest that is no frame."""

    at: int
    size: int
    missing: int | None


def frames_in(raw: bytes) -> list[Piece]:
    """All of the bytes; what is cut off, or no frame, can only be the last."""
    found: list[Piece] = []
    at = 0
    while at < len(raw):
        there = len(raw) - at
        says = int.from_bytes(raw[at : at + 4], "big", signed=True)
        if there < 4 or not _LEAST <= says <= MAX_FRAME_BYTES:
            return [*found, Piece(at, there, None)]
        size = min(says + 4, there)
        found.append(Piece(at, size, says + 4 - size))
        at += size
    return found
