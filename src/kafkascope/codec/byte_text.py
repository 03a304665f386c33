"""Text in, the bytes that it writes out: hex in any dress, a hex dump (xxd, hexdump -C, tcpdump -X, Wireshark), base64.

What is neither is an `InputError` that says where.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error

from kafkascope.errors import InputError

FORMS = ("auto", "hex", "dump", "base64", "raw")

# `00000010  68 65 …  |he…|` (hexdump -C), `00000010: 6865 6c6c …  he` (xxd), `0x0010:  4500 …  E.` (tcpdump -X).
_DUMP_LINE = re.compile(r"^\s*(?:0x)?([0-9a-fA-F]{4,8})(:?)\s+(.*)$")
# So much is looked at to tell text from raw bytes.
HEAD_BYTES = 4096
_DUMP_WORD = re.compile(r"^(?:[0-9a-fA-F]{2})+$")
_DRESS = re.compile(r"(?:0x|\\x)|[\s:,\-_]")


def as_text(content: bytes) -> str | None:
    """None where these are bytes rather than text: a frame starts with zero bytes, text has none."""
    if any(byte < 9 or 13 < byte < 32 or byte > 126 for byte in content[:HEAD_BYTES]):
        return None
    try:
        return content.decode("ascii")
    except UnicodeDecodeError:
        return None


def parse_text(text: str, form: str = "auto") -> bytes:
    if form == "dump" or (form == "auto" and _looks_like_dump(text)):
        return _dump(text)
    if form == "hex" or (form == "auto" and _looks_like_hex(text)):
        return _hex(text)
    if form == "auto" and _meant_as_hex(text):
        return _hex(text)
    return _base64(text, form)


def _meant_as_hex(text: str) -> bool:
    """Base64 is not dressed so: a typo in hex is said to be one rather than read as something else."""
    digits = sum(character in "0123456789abcdefABCDEF" for character in text)
    return re.search(r"0x|\\x|:|\S +\S", text.strip()) is not None or 10 * digits >= 9 * len(text.strip())


def _looks_like_dump(text: str) -> bool:
    """Offsets in front that grow by what the line before held."""
    rows = [match for line in text.splitlines() if (match := _DUMP_LINE.match(line))]
    if not rows or int(rows[0][1], 16) != 0:
        return False
    if len(rows) == 1:
        return bool(rows[0][2]) or len(rows[0][1]) == 8
    return int(rows[1][1], 16) == len(_dump_row(rows[0][3], bool(rows[0][2])))


def _dump(text: str) -> bytes:
    out = bytearray()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = _DUMP_LINE.match(line)
        if match is None:
            # hexdump -C ends with an offset alone, and uses `*` for rows that repeat.
            if re.fullmatch(r"\s*[0-9a-fA-F]{4,8}:?\s*", line):
                continue
            if line.strip() == "*":
                raise InputError(f"line {number} of the dump stands for repeated rows (*); make it with hexdump -v")
            raise InputError(f"line {number} of the dump has no offset in front")
        offset = int(match[1], 16)
        if offset != len(out):
            raise InputError(f"line {number} of the dump is at {offset:#x}, {len(out):#x} expected: a row is missing")
        out += _dump_row(match[3], bool(match[2]))
    return bytes(out)


def _dump_row(rest: str, colon: bool) -> bytes:
    """The hex words of a row, up to the column of characters: that is fenced by `|` or by two spaces."""
    # Without a colon hexdump parts its two halves by two spaces, and Wireshark its characters by three.
    area = re.split(r"\s{2,}" if colon else r"\||\s{3,}", rest.strip(), maxsplit=1)[0]
    words: list[str] = []
    for word in area.split():
        if not _DUMP_WORD.match(word) or sum(map(len, words)) >= 32:
            break
        words.append(word)
    return bytes.fromhex("".join(words))


def _looks_like_hex(text: str) -> bool:
    return re.fullmatch(r"[0-9a-fA-F]+", _DRESS.sub("", text)) is not None


def _hex(text: str) -> bytes:
    digits = _DRESS.sub("", text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        raise InputError(f"'{wrong[0]}' is no hex digit (digit {wrong.start() + 1})")
    if len(digits) % 2:
        raise InputError(f"hex has an odd number of digits ({len(digits)}); a byte is two")
    return bytes.fromhex(digits)


def _base64(text: str, form: str) -> bytes:
    joined = "".join(text.split()).replace("-", "+").replace("_", "/")
    try:
        return b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except (Base64Error, ValueError):
        what = "base64" if form == "base64" else "hex, a hex dump or base64"
        raise InputError(f"this is no {what}; @file reads a file, - standard input") from None
