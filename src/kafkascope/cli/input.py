"""What people have in hand in, bytes out: hex in any dress, a hex dump, base64, raw bytes; typed, from a file or piped.

Nothing larger than the limits is read.
"""

import os
import stat
import sys
from typing import BinaryIO

from kafkascope.codec.byte_text import HEAD_BYTES, as_text, parse_text
from kafkascope.errors import InputError, UsageError
from kafkascope.limits import MAX_INPUT_BYTES, MAX_INPUT_CHARACTERS


def read_argument(text: str) -> str | bytes:
    """`-` is standard input, `@file` a file, anything else stands for itself."""
    if text == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed")
        return _read(sys.stdin.buffer, "standard input")
    if text == "@":
        raise UsageError("the name of a file belongs behind the @")
    if text.startswith("@"):
        try:
            with open(text[1:], "rb") as file:
                return _read(file, text[1:])
        except OSError as error:
            raise InputError(f"{text[1:]}: {(error.strerror or str(error)).lower()}") from None
    return text


def _read(file: BinaryIO, where: str) -> bytes:
    """No more than can be one frame: less of raw bytes than of text."""
    head = file.read(HEAD_BYTES)
    if not head:
        raise InputError(f"{where} is empty")
    most = MAX_INPUT_BYTES if as_text(head) is None else MAX_INPUT_CHARACTERS
    if _size(file) > most:
        raise _too_large(where, most)
    content = head + file.read(most + 1 - len(head))
    if len(content) > most:
        raise _too_large(where, most)
    return content


def _size(file: BinaryIO) -> int:
    """Of a file on disk; 0 of a pipe, which says nothing beforehand."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _too_large(where: str, most: int) -> InputError:
    return InputError(f"{where} is larger than {most} bytes, the most that one frame takes")


def read_bytes(text: str, form: str = "auto") -> bytes:
    """The bytes that an argument stands for. `auto` takes what is not text for raw, then tells dump, hex and base64
    apart by their looks, in this order."""
    content = read_argument(text)
    if form == "raw":
        if isinstance(content, str):
            raise UsageError("raw bytes come from @file or -, not from the command line")
        return _frame_sized(content)
    if isinstance(content, bytes):
        decoded = as_text(content)
        if decoded is None:
            if form != "auto":
                raise InputError(
                    f"this is no {form}: it holds bytes that are no text; --input raw reads them as they are"
                )
            return _frame_sized(content)
        content = decoded
    if not content.strip():
        raise InputError("nothing to decode: the input is empty")
    return _frame_sized(parse_text(content, form))


def _frame_sized(raw: bytes) -> bytes:
    if len(raw) > MAX_INPUT_BYTES:
        raise InputError(f"{len(raw)} bytes; one frame has {MAX_INPUT_BYTES} at the most, as a broker allows")
    return raw
