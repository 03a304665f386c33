"""Derives ids that don't depend on how a recording was cut: `connection_id` from a connection's ends and start,
`exchange_id` from that and a place in the stream. The same bytes get the same ids in any run, on any machine."""

from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv6Address
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.base.flow import Connection
from kafkascope.capture.base.numbers import Number
from kafkascope.columnar.compiling.jit import jit

# 64 bits for a connection, 96 for an exchange, as hex digits: no two of a billion exchanges collide.
EXCHANGE_DIGITS = 24
_ENDS, _OPENED = Struct(">16sH16sH"), Struct(">16sH16sHIcI")
# The prefix of an IPv4 address mapped into IPv6.
_IPV4 = bytes.fromhex("00000000000000000000ffff")


def connection_hash(connection: Connection) -> int:
    """Hashes both ends, and the initial sequence numbers or, if the start wasn't recorded, the first time seen."""
    address_a, port_a, address_b, port_b = connection.ends
    if len(address_a) != 16 or len(address_b) != 16:
        address_a, address_b = address_a.rjust(16, b"\0"), address_b.rjust(16, b"\0")
    first, second = connection.initial_sequence
    if first is not None and second is not None:
        opened = _OPENED.pack(address_a, port_a, address_b, port_b, first, b"/", second)
        return int.from_bytes(blake2b(opened, digest_size=8).digest(), "big")
    parts = [
        _ENDS.pack(address_a, port_a, address_b, port_b),
        b"" if first is None else first.to_bytes(4, "big"),
        b"/",
        b"" if second is None else second.to_bytes(4, "big"),
        connection.first_ns.to_bytes(8, "big", signed=True) if first is second is None else b"",
    ]
    return text_hash(b"".join(parts))


def text_hash(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "big")


def connection_name(number: int) -> str:
    return f"{number:016x}"


@lru_cache(maxsize=4_096)
def address_text(address: bytes, port: int) -> str:
    """`10.0.0.1:9092`, `[2001:db8::1]:9092`. The connections of a broker share the text of its address."""
    return f"{_host(address)}:{port}"


@lru_cache(maxsize=4_096)
def _host(address: bytes) -> str:
    return ".".join(map(str, address[len(_IPV4) :])) if address.startswith(_IPV4) else f"[{IPv6Address(address)}]"


def exchange_ids(
    hashes: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64], sides: npt.NDArray[np.int64]
) -> pa.StringArray:
    """One id per exchange: `offsets` are those of requests in their streams, or of responses where `sides` is 1."""
    count = len(hashes)
    digits = np.empty(count * EXCHANGE_DIGITS, dtype=np.uint8)
    _write_ids(hashes, offsets.astype(np.uint64), sides.astype(np.uint64), digits)
    ends = np.arange(count + 1, dtype=np.int32) * EXCHANGE_DIGITS
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(digits))


@jit
def _mix(value: Any) -> Any:
    """The finalizer of splitmix64: every bit of the result depends on every bit of the value."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@jit
def _write_ids(hashes: Any, offsets: Any, sides: Any, digits: Any) -> None:
    for index in range(len(hashes)):
        _write_id(hashes[index], offsets[index], sides[index], digits, index * EXCHANGE_DIGITS)


@jit
def _write_id(number: Number, offset: Number, side: Number, digits: Any, at: Number) -> None:
    golden = np.uint64(0x9E3779B97F4A7C15)
    first = _mix(_mix(number + golden) ^ (offset + side * golden))
    _write_digits(first, np.int64(16), digits, at)
    _write_digits(_mix(first + golden + number), np.int64(EXCHANGE_DIGITS - 16), digits, at + 16)


@jit
def _write_digits(value: Number, count: Number, digits: Any, start: Number) -> None:
    """Writes the first `count` hex digits of a value."""
    for at in range(count):
        nibble = np.int64(value >> np.uint64(60 - 4 * at)) & 15
        digits[start + at] = nibble + (48 if nibble < 10 else 87)
