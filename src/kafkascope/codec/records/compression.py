"""Compresses and decompresses record data. No output is ever larger than what the budget has left.

Decompression writes into a buffer of known size, so a bomb stops at the buffer's end instead of filling the memory.
zstd also keeps a window, which its library limits to 128 MiB.
"""

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import cramjam

from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.lz4_frame import with_right_checksum, write_frame
from kafkascope.errors import DecodeError

# snappy-java puts this and two int32 versions before blocks of raw snappy; librdkafka writes a single raw block.
XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = XERIAL_MAGIC + (1).to_bytes(4, "big") * 2
_XERIAL_BLOCK_BYTES = 32_768
# A snappy copy of three bytes makes at most 64: no honest length is above this ratio.
_SNAPPY_RATIO = 22

# Batches mostly decompress to less than eight times their size; beyond that a buffer that is too small grows eightfold.
_FIRST_BYTES = 4_096
_GROWTH = 8
# The error of a Rust writer at the end of its buffer; there is no other sign of it.
_BUFFER_FULL = "failed to write whole buffer"

# Kafka's own default levels (KIP-390).
_ZSTD_LEVEL = 3

_INTO: dict[str, Callable[[Any, Any], int]] = {
    "gzip": cramjam.gzip.decompress_into,
    "lz4": cramjam.lz4.decompress_into,
    "zstd": cramjam.zstd.decompress_into,
}


def unpack(compression: str, data: bytes, magic: int, budget: Budget, where: str) -> bytes:
    """`where` names the batch in the `DecodeError` for data that isn't of this compression, or too much of it."""
    if compression == "snappy":
        return _unpack_snappy(data, budget, where)
    if compression == "lz4" and magic == 0:
        data = with_right_checksum(data)
    return _unpack_growing(compression, data, budget, where)


def pack(compression: str, data: bytes, magic: int) -> bytes:
    """In the framing of Kafka's Java client; the compressed bytes are this library's own."""
    if compression == "gzip":
        return bytes(cramjam.gzip.compress(data))
    if compression == "zstd":
        return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
    if compression == "lz4":
        return write_frame(data, broken_checksum=magic == 0)
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        out += len(block).to_bytes(4, "big") + block
    return bytes(out)


def _unpack_growing(compression: str, data: bytes, budget: Budget, where: str) -> bytes:
    size = max(_FIRST_BYTES, len(data) * _GROWTH)
    while True:
        size = min(size, budget.bytes_left)
        # A buffer that becomes the bytes without a copy: at the limit a second one would be twice the limit.
        buffer = BytesIO(bytes(size))
        try:
            with buffer.getbuffer() as view:
                count = _INTO[compression](data, view)
        except cramjam.DecompressionError as error:
            if _BUFFER_FULL not in str(error):
                raise DecodeError(f"{where}: {len(data)} bytes aren't {compression}: {error}") from None
            if size == budget.bytes_left:
                raise budget.too_large(where) from None
            size *= _GROWTH
            continue
        budget.take_bytes(count, where)
        buffer.truncate(count)
        return buffer.getvalue()


def _unpack_snappy(data: bytes, budget: Budget, where: str) -> bytes:
    total = sum(_snappy_size(block, where) for block in _snappy_blocks(data, where))
    budget.take_bytes(total, where)
    buffer = BytesIO(bytes(total))
    position = 0
    with buffer.getbuffer() as view:
        for block in _snappy_blocks(data, where):
            end = position + _snappy_size(block, where)
            try:
                cramjam.snappy.decompress_raw_into(block, view[position:end])
            except cramjam.DecompressionError as error:
                raise DecodeError(f"{where}: {len(block)} bytes aren't snappy: {error}") from None
            position = end
    return buffer.getvalue()


def _snappy_blocks(data: bytes, where: str) -> Iterator[bytes]:
    if not data.startswith(XERIAL_MAGIC):
        yield data
        return
    position = 0
    while position < len(data):
        # Streams may follow one another, each with its header.
        if data.startswith(XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            continue
        start = position + 4
        length = int.from_bytes(data[position:start], "big", signed=True)
        if not 0 < length <= len(data) - start:
            left = max(0, len(data) - start)
            raise DecodeError(
                f"{where}: snappy block of {length} bytes, {left} left (offset {position} of the compressed data)"
            )
        position = start + length
        yield data[start:position]


def _snappy_size(block: bytes, where: str) -> int:
    try:
        size: int = cramjam.snappy.decompress_raw_len(block)
    except cramjam.DecompressionError as error:
        raise DecodeError(f"{where}: {len(block)} bytes aren't snappy: {error}") from None
    if size > len(block) * _SNAPPY_RATIO:
        raise DecodeError(f"{where}: snappy block of {len(block)} bytes can't contain the {size} that it announces")
    return size
