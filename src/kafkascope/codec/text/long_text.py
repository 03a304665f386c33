"""Parses text of any length piece by piece: hex, a hex dump or base64. It holds only the bytes that it writes, and
stops if they are more than one frame can have.

The first pieces decide the form; a later one that doesn't fit is an `InputError`.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterable, Iterator
from itertools import chain

from kafkascope.codec.text.byte_text import meant_as_hex, undressed
from kafkascope.codec.text.hex_dump import Dump, looks_like_dump
from kafkascope.errors import InputError
from kafkascope.limits import MAX_INPUT_BYTES

# This much of the text decides its form.
_FIRST_CHARACTERS = 65_536
# Hex with marks comes in words of a few bytes.
_LONGEST_WORD = 32
_WRONG = re.compile(r"[^0-9a-fA-F]")


def parse_long(pieces: Iterable[bytes], form: str = "auto") -> bytes:
    """The pieces of one text, the first of them not empty."""
    texts = _decoded(iter(pieces))
    first = next(texts, "")
    start = first[:_FIRST_CHARACTERS]
    # The last line may be cut.
    lines = start[: start.rfind("\n") + 1] or start
    texts = chain([first], texts)
    if form == "dump" or (form == "auto" and looks_like_dump(lines)):
        return _dump(texts)
    if form == "hex" or (form == "auto" and _is_hex(lines)):
        return _hex(texts)
    return _base64(texts, form)


def _is_hex(text: str) -> bool:
    """Also for text that is meant as hex. A line of base64 may begin like hex with marks, but has none itself, and no
    short words."""
    if not _WRONG.search(undressed(text)):
        return True
    first = text.split(maxsplit=1)[0]
    return meant_as_hex(text) and not (len(first) > _LONGEST_WORD and not set(text) & set(":,\\"))


def _decoded(pieces: Iterator[bytes]) -> Iterator[str]:
    first = next(pieces, b"")
    wide = first.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    decoder = getincrementaldecoder("utf-16" if wide else "ascii")()
    try:
        for piece in chain([first if wide else first.removeprefix(BOM_UTF8)], pieces):
            text = decoder.decode(piece)
            # UTF-16 has other letters too.
            yield text.encode("ascii").decode()
        decoder.decode(b"", final=True)
    except UnicodeError:
        raise InputError(
            "the input starts as text but contains other bytes; use --input raw to read it as is"
        ) from None


def _checked(out: bytearray) -> None:
    if len(out) > MAX_INPUT_BYTES:
        raise InputError(f"more than {MAX_INPUT_BYTES} bytes, the most that a broker allows for one frame")


def _hex(texts: Iterator[str]) -> bytes:
    out = bytearray()
    held, before = "", 0
    for text in chain(texts, [None]):
        held += text or ""
        # A prefix may continue in the next piece.
        cut = len(held) - (text is not None and held.endswith(("0", "\\")))
        digits = undressed(held[:cut])
        if wrong := _WRONG.search(digits):
            raise InputError(f"'{wrong[0]}' isn't a hex digit (digit {before + wrong.start() + 1})")
        if text is None and len(digits) % 2:
            raise InputError(f"hex has an odd number of digits ({before + len(digits)}); a byte is two")
        whole = len(digits) // 2 * 2
        out += bytes.fromhex(digits[:whole])
        before += whole
        held = digits[whole:] + held[cut:]
        _checked(out)
    return bytes(out)


def _base64(texts: Iterator[str], form: str) -> bytes:
    out = bytearray()
    held, ended = "", False
    for text in chain(texts, [None]):
        held += "".join((text or "").split()).replace("-", "+").replace("_", "/")
        if text is None:
            held += "=" * (-len(held) % 4)
        whole = len(held) // 4 * 4
        try:
            if ended and held:
                raise ValueError
            ended = "=" in held
            out += b64decode(held[:whole], validate=True)
        except (Base64Error, ValueError):
            form_name = "base64" if form == "base64" else "hex, a hex dump or base64"
            raise InputError(f"this isn't {form_name}, as its first characters suggest") from None
        held = held[whole:]
        _checked(out)
    return bytes(out)


def _dump(texts: Iterator[str]) -> bytes:
    dump = Dump()
    held = ""
    for text in chain(texts, [None]):
        held += text or "\n"
        cut = held.rfind("\n") + 1
        dump.add(held[:cut])
        held = held[cut:]
        _checked(dump.packets[-1])
    return dump.payload()
