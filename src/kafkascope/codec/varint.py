"""Reads and writes zig-zag varints, as record fields have them (KIP-98). Reads whatever Java reads.

`fast_int` and `fast_long` raise `NotCanonical` for anything other than the shortest form; `read_zigzag` reports it.
"""

from kafkascope.codec.not_canonical import NotCanonical
from kafkascope.limits import MAX_VARINT_BYTES, MAX_VARLONG_BYTES

_UINT32 = 0xFFFF_FFFF
_INT64 = 1 << 63
_UINT64 = (1 << 64) - 1


def write_zigzag(out: bytearray, value: int) -> None:
    """Appends a signed value in the shortest form."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_zigzag(data: bytes, position: int, end: int, *, long: bool = False) -> tuple[int, int, bool] | None:
    """The value, where it ends and whether it was the shortest form; None if it is cut off or has too many bytes."""
    most = MAX_VARLONG_BYTES if long else MAX_VARINT_BYTES
    value = 0
    for index in range(min(most, end - position)):
        byte = data[position + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            # Java silently drops bits beyond the width.
            kept = value & (_UINT64 if long else _UINT32)
            return (kept >> 1) ^ -(kept & 1), position + index + 1, kept == value and not (index and byte == 0)
    return None


def fast_int(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned 32 bit varint from its first byte on, still zig-zagged, and where it ends."""
    value, position = _fast(data, position, MAX_VARINT_BYTES)
    if value > _UINT32:
        raise NotCanonical
    return value, position


def fast_long(data: bytes, position: int) -> tuple[int, int]:
    """The same for at most nine bytes: their value, added to half an int64, can't leave int64."""
    return _fast(data, position, MAX_VARLONG_BYTES - 1)


def _fast(data: bytes, position: int, most: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(most):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and shift:
                raise NotCanonical
            return value, position
        shift += 7
    raise NotCanonical


def wrap_int64(value: int) -> int:
    """The sum of two Java longs, which overflows silently."""
    return (value + _INT64 & _UINT64) - _INT64
