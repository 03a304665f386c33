"""Limits what decoding record data may create: decompressed bytes, records and headers. Raises `DecodeError` before
creating the first one beyond the limit."""

from kafkascope import limits
from kafkascope.errors import DecodeError


class Budget:
    """Shared by all batches: a hundred small bombs are one large one."""

    __slots__ = ("bytes_left", "items_left")

    def __init__(self) -> None:
        self.bytes_left = limits.MAX_UNPACKED_BYTES
        self.items_left = limits.MAX_RECORD_ITEMS

    def take_items(self, count: int, where: str) -> None:
        if count > self.items_left:
            most = limits.MAX_RECORD_ITEMS
            raise DecodeError(f"{where}: more than {most} batches, records and headers")
        self.items_left -= count

    def take_bytes(self, count: int, where: str) -> None:
        if count > self.bytes_left:
            raise self.too_large(where)
        self.bytes_left -= count

    def too_large(self, where: str) -> DecodeError:
        most = limits.MAX_UNPACKED_BYTES
        return DecodeError(
            f"{where}: decompresses to more than {most} bytes, all batches together; decode with unpack=False"
        )


def note(reasons: list[str], reason: str) -> None:
    """Appends a reason; a million of them would be no more useful than the first hundred."""
    if len(reasons) < limits.MAX_REASONS:
        reasons.append(reason)
    elif len(reasons) == limits.MAX_REASONS:
        reasons.append(f"more than {limits.MAX_REASONS} reasons, the rest isn't listed")
