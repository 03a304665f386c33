"""Reads and writes LZ4 frames as Kafka uses them: independent blocks of 64 KiB and, for magic 0, a wrong header
checksum (KIP-57).

`write_frame` makes a frame from bytes; `with_right_checksum` gives a frame of magic 0 the checksum that LZ4 requires.
"""

import cramjam

_MAGIC = b"\x04\x22\x4d\x18"
# Version 1, independent blocks, nothing optional; blocks of at most 64 KiB. Kafka's reader rejects dependent blocks.
_DESCRIPTOR = b"\x60\x40"
_BLOCK_BYTES = 65_536
_STORED = 0x8000_0000
_CONTENT_SIZE_BIT = 0x08
_DICTIONARY_BIT = 0x01

_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_UINT32 = 0xFFFF_FFFF


def write_frame(data: bytes, *, broken_checksum: bool) -> bytes:
    """`broken_checksum` hashes the frame's magic too, as every writer of magic 0 did."""
    out = bytearray(_MAGIC + _DESCRIPTOR)
    out.append(_checksum(_MAGIC + _DESCRIPTOR if broken_checksum else _DESCRIPTOR))
    for start in range(0, len(data), _BLOCK_BYTES):
        block = data[start : start + _BLOCK_BYTES]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            out += len(packed).to_bytes(4, "little") + packed
        else:
            out += (len(block) | _STORED).to_bytes(4, "little") + block
    return bytes(out + bytes(4))


def with_right_checksum(frame: bytes) -> bytes:
    """Ignores the header checksum, as Kafka does for magic 0."""
    if len(frame) < 7:
        return frame
    optional = (8 if frame[4] & _CONTENT_SIZE_BIT else 0) + (4 if frame[4] & _DICTIONARY_BIT else 0)
    at = 6 + optional
    return frame[:at] + bytes([_checksum(frame[4:at])]) + frame[at + 1 :]


def _checksum(descriptor: bytes) -> int:
    """The second byte of the xxHash-32 of less than 16 bytes."""
    first, second, third, fourth, fifth = _PRIMES
    value = fifth + len(descriptor)
    whole = len(descriptor) & ~3
    for start in range(0, whole, 4):
        value = value + int.from_bytes(descriptor[start : start + 4], "little") * third & _UINT32
        value = _rotate(value, 17) * fourth & _UINT32
    for byte in descriptor[whole:]:
        value = value + byte * fifth & _UINT32
        value = _rotate(value, 11) * first & _UINT32
    value = (value ^ value >> 15) * second & _UINT32
    value = (value ^ value >> 13) * third & _UINT32
    return (value ^ value >> 16) >> 8 & 0xFF


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _UINT32
