"""Reads bytes as hex in any notation, a hex dump, base64 or raw: typed, from a file or piped.

Never reads more than the limits allow, and never holds long text as a whole.
"""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from kafkascope.codec.text.byte_text import HEAD_BYTES, as_text, parse_text
from kafkascope.errors import InputError, UsageError
from kafkascope.limits import MAX_INPUT_BYTES, MAX_INPUT_CHARACTERS

# Longer text is parsed while it's read, in pieces of this size.
_SHORT_BYTES = 1 << 20


def read_argument(text: str) -> str | bytes:
    """`-` is standard input, `@file` a file, anything else is the text itself."""
    with _opened(text) as source:
        if source is None:
            return text
        file, where = source
        head = _head(file, where)
        return _whole(file, where, head, MAX_INPUT_BYTES if as_text(head) is None else MAX_INPUT_CHARACTERS)


@contextmanager
def _opened(text: str) -> Iterator[tuple[BinaryIO, str] | None]:
    """(file, its name), or None if the argument is the text itself."""
    if text == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed")
        yield sys.stdin.buffer, "standard input"
    elif text == "@":
        raise UsageError("@ needs the name of a file after it, as in @frame.bin")
    elif text.startswith("@"):
        try:
            with open(text[1:], "rb") as file:
                yield file, text[1:]
        except OSError as error:
            raise InputError(f"{text[1:]}: {(error.strerror or str(error)).lower()}") from None
    else:
        yield None


@contextmanager
def hint_at_file(text: str) -> Iterator[None]:
    """If an argument can't be read but is the name of a file, the error shows how to read the file."""
    try:
        yield
    except InputError:
        if os.path.isfile(text):
            raise InputError(f"{text} is a file; write @{text} to read it") from None
        raise


def _head(file: BinaryIO, where: str) -> bytes:
    head = file.read(HEAD_BYTES)
    if not head:
        raise InputError(f"{where} is empty")
    return head


def _whole(file: BinaryIO, where: str, head: bytes, most: int) -> bytes:
    """At most as much as one frame can be; raw bytes are shorter than text."""
    _refuse_large(file, where, most)
    content = head + file.read(most + 1 - len(head))
    if len(content) > most:
        raise _too_large(where, most)
    return content


def _refuse_large(file: BinaryIO, where: str, most: int) -> None:
    """The size of a file on disk is known before reading, that of a pipe isn't."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return
    if stat.S_ISREG(status.st_mode) and status.st_size > most:
        raise _too_large(where, most)


def _too_large(where: str, most: int) -> InputError:
    return InputError(f"{where} is larger than {most} bytes, the limit for one frame")


def read_bytes(text: str, form: str = "auto") -> bytes:
    """The bytes that an argument means. `auto` reads anything that isn't text as raw, then recognizes dump, hex and
    base64 by their form, in this order."""
    with _opened(text) as source:
        if source is None:
            if form == "raw":
                raise UsageError("raw bytes can't be typed; use @FILE, or - for standard input")
            with hint_at_file(text):
                return _parsed(text, form)
        file, where = source
        head = _head(file, where)
        if form == "raw" or as_text(head) is None:
            if form not in ("auto", "raw"):
                raise _no_text(form)
            return _whole(file, where, head, MAX_INPUT_BYTES)
        _refuse_large(file, where, MAX_INPUT_CHARACTERS)
        content = head + file.read(_SHORT_BYTES - len(head))
        if len(content) == _SHORT_BYTES:
            return _long_text(file, where, content, form)
    decoded = as_text(content)
    if decoded is not None:
        return _parsed(decoded, form)
    if form != "auto":
        raise _no_text(form)
    return content


def _no_text(form: str) -> InputError:
    return InputError(f"this isn't {form}: it has bytes that aren't text; --input raw reads them unchanged")


def _parsed(text: str, form: str) -> bytes:
    if not text.strip():
        raise InputError("nothing to decode: the input is empty")
    raw = parse_text(text, form)
    if len(raw) > MAX_INPUT_BYTES:
        raise InputError(f"the input has {len(raw)} bytes; a frame has at most {MAX_INPUT_BYTES}, the limit of brokers")
    return raw


def _long_text(file: BinaryIO, where: str, first: bytes, form: str) -> bytes:
    from kafkascope.codec.text.long_text import parse_long

    def pieces() -> Iterator[bytes]:
        count, piece = 0, first
        while piece:
            count += len(piece)
            if count > MAX_INPUT_CHARACTERS:
                raise _too_large(where, MAX_INPUT_CHARACTERS)
            yield piece
            piece = file.read(_SHORT_BYTES)

    return parse_long(pieces(), form)
