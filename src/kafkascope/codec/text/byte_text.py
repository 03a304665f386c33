"""Parses text to bytes: hex in any notation, a hex dump (xxd, hexdump -C, tcpdump -X, Wireshark), or base64.

Other text raises an `InputError` that names the place.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE

from kafkascope.codec.text.hex_dump import looks_like_dump, parse_dump
from kafkascope.errors import InputError

FORMS = ("auto", "hex", "dump", "base64", "raw")

# The first bytes that decide between text and raw bytes.
HEAD_BYTES = 4096
# One in two hundred base64 texts of this length consists of letters only.
_SHORTEST_LETTERS = 24
_NEITHER = "this isn't {}; use @file to read a file, - for standard input"
_PREFIXES = ("0x", "0X", "\\x")
_BETWEEN = str.maketrans(dict.fromkeys("\t\n\v\f\r\x1c\x1d\x1e\x1f :,-_"))


def as_text(content: bytes) -> str | None:
    """None if these are bytes rather than text: a frame starts with zero bytes, text has none."""
    content = _unmarked(content)
    if any(byte < 9 or 13 < byte < 32 or byte > 126 for byte in content[:HEAD_BYTES]):
        return None
    try:
        return content.decode("ascii")
    except UnicodeDecodeError:
        return None


def _unmarked(content: bytes) -> bytes:
    """Without the byte order mark that editors and shells of Windows write; UTF-16 becomes ASCII."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        try:
            return content.decode("utf-16").encode("ascii")
        except UnicodeError:
            return content
    return content.removeprefix(BOM_UTF8)


def parse_text(text: str, form: str = "auto") -> bytes:
    if form == "auto" and text.lstrip().startswith(("{", "[{")):
        raise InputError("this is JSON, not bytes; kafkascope encode turns JSON into bytes")
    read_as = form_of(text) if form == "auto" else form
    if read_as == "dump":
        return parse_dump(text)
    if read_as == "hex":
        return _hex(text)
    if form == "auto" and _is_word(text):
        raise InputError(_NEITHER.format("hex, a hex dump or base64"))
    return _base64(text, form)


def form_of(text: str) -> str:
    """The form of a text if the user doesn't name one: `dump`, `hex` or `base64`."""
    if looks_like_dump(text):
        return "dump"
    return "hex" if _looks_like_hex(text) or meant_as_hex(text) else "base64"


def _is_word(text: str) -> bool:
    """A few letters are a name or a typo. Base64 of a frame starts with AA, that of other bytes has digits or signs."""
    return len(text.strip()) < _SHORTEST_LETTERS and text.strip().isalpha() and not text.strip().startswith("AA")


def meant_as_hex(text: str) -> bool:
    """Base64 has no such marks: a typo in hex is reported as one rather than read as something else."""
    digits = sum(character in "0123456789abcdefABCDEF" for character in text)
    return re.search(r"(?:^|[\s,])0[xX]|\\x|:|\S +\S", text.strip()) is not None or 10 * digits >= 9 * len(text.strip())


def undressed(text: str) -> str:
    """Hex without the marks before and between its digits."""
    for prefix in _PREFIXES:
        text = text.replace(prefix, "")
    return text.translate(_BETWEEN)


def _looks_like_hex(text: str) -> bool:
    return re.fullmatch(r"[0-9a-fA-F]+", undressed(text)) is not None


def _hex(text: str) -> bytes:
    digits = undressed(text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        raise InputError(f"'{wrong[0]}' isn't a hex digit (digit {wrong.start() + 1})")
    if len(digits) % 2:
        raise InputError(f"hex has an odd number of digits ({len(digits)}); a byte is two")
    return bytes.fromhex(digits)


def _base64(text: str, form: str) -> bytes:
    joined = "".join(text.split()).replace("-", "+").replace("_", "/")
    try:
        return b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except (Base64Error, ValueError):
        form_name = "base64" if form == "base64" else "hex, a hex dump or base64"
        raise InputError(_NEITHER.format(form_name)) from None
