"""Writes uuids of 16 bytes as the text that Kafka shows: url-safe base64 without padding."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.columnar.compiling.jit import jit

UUID_DIGITS = 22
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)


def uuid_text(raw: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.uint8]:
    """The digits of the first `count` uuids, concatenated."""
    assert len(raw) >= 16 * count
    # Arrow's buffers are read-only or writable, and the kernel is compiled for one kind.
    raw = raw.view()
    raw.flags.writeable = False
    digits = np.empty(count * UUID_DIGITS, np.uint8)
    _write(raw, digits, _ALPHABET, count)
    return digits


@jit
def _write(raw: Any, digits: Any, alphabet: Any, count: int) -> None:
    for row in range(count):
        at, to = row * 16, row * 22
        for _ in range(5):
            word = (int(raw[at]) << 16) | (int(raw[at + 1]) << 8) | int(raw[at + 2])
            for place in range(4):
                digits[to + place] = alphabet[(word >> (18 - 6 * place)) & 63]
            at += 3
            to += 4
        last = int(raw[at])
        digits[to] = alphabet[last >> 2]
        digits[to + 1] = alphabet[(last & 3) << 4]
