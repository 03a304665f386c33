"""The text of a hex dump (xxd, hexdump -C, od -tx1, tcpdump -X, Wireshark) in, its bytes out; `InputError` names the
line that is wrong."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kafkascope.codec.packet import one_payload
from kafkascope.errors import InputError

# `00000010  68 65 …  |he…|` (hexdump -C), `00000010: 6865 6c6c …  he` (xxd), `0x0010:  4500 …  E.` (tcpdump -X).
_ROW = re.compile(r"^\s*(?:0x)?([0-9a-fA-F]{4,8})(:?)\s+(\S.*)$")
# hexdump -C and od end with an offset alone.
_END = re.compile(r"^\s*([0-9a-fA-F]{4,8}):?\s*$")
_TCPDUMP = re.compile(r"^[ \t]*0x[0-9a-fA-F]{4}:\s", re.MULTILINE)
# In front of its rows tcpdump says who sent what to whom.
_SUMMARY = re.compile(r"^(?![ \t]*0x).*(?: > .*:|\b(?:IP6?|ARP)\b)", re.MULTILINE)
_WORD = re.compile(r"^(?:[0-9a-fA-F]{2})+$")


@dataclass(frozen=True, slots=True)
class _Row:
    offset: int
    colon: bool
    rest: str

    @property
    def words(self) -> list[str]:
        """The hex words, up to the column of characters: that is fenced by `|` or by two spaces."""
        # Without a colon hexdump parts its two halves by two spaces, and Wireshark its characters by three.
        area = re.split(r"\s{2,}" if self.colon else r"\||\s{3,}", self.rest, maxsplit=1)[0]
        words: list[str] = []
        for word in area.split():
            if not _WORD.match(word):
                break
            words.append(word)
        return words

    @property
    def data(self) -> bytes:
        return bytes.fromhex("".join(self.words))

    @property
    def has_characters(self) -> bool:
        """Behind three spaces something that is not more hex, or is what the bytes are as characters."""
        column = re.split(r"\s{3,}", self.rest, maxsplit=1)[1:]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in self.data)
        return bool(column) and (column[0] == shown.strip() or not all(map(_WORD.match, column[0].split())))


def looks_like_dump(text: str) -> bool:
    """A colon behind the offset or a `|` before the characters is a dump's alone, right or wrong. Hex may as well
    stand in groups behind eight zeros: without those marks the offsets must fit."""
    rows = [row for line in text.splitlines() if (row := _row(line))]
    if not rows:
        return False
    if all(row.colon or "|" in row.rest for row in rows):
        return True
    first = rows[0]
    if first.offset != 0 or any(len(word) != 2 for word in first.words):
        return False
    if len(rows) > 1:
        return rows[1].offset == len(first.data) or re.search(r"^\*[ \t]*$", text, re.MULTILINE) is not None
    end = _END.match(text.rstrip().splitlines()[-1])
    return first.has_characters or (end is not None and _offset(end[1], colon=False) == len(first.data))


def parse_dump(text: str) -> bytes:
    tcpdump = _TCPDUMP.search(text) is not None
    packets = [bytearray()]
    for number, row in _rows(text, tcpdump):
        if tcpdump and row.offset == 0 and packets[-1]:
            packets.append(bytearray())
        out = packets[-1]
        if row.offset != len(out):
            raise InputError(
                f"line {number} of the dump is at {row.offset:#x}, {len(out):#x} expected: a row is missing"
            )
        out += row.data
    return one_payload([bytes(packet) for packet in packets], sure=tcpdump and _SUMMARY.search(text) is not None)


def _rows(text: str, tcpdump: bool) -> Iterator[tuple[int, _Row]]:
    for number, line in enumerate(text.splitlines(), 1):
        row = _row(line)
        if row is not None:
            yield number, row
        elif line.strip() == "*":
            raise InputError(f"line {number} of the dump stands for repeated rows (*); make it with hexdump -v")
        # tcpdump tells of each packet in front of its rows.
        elif line.strip() and not _END.match(line) and not (tcpdump and not line.lstrip().startswith("0x")):
            raise InputError(f"line {number} of the dump has no offset in front")


def _row(line: str) -> _Row | None:
    match = _ROW.match(line)
    return _Row(_offset(match[1], colon=bool(match[2])), bool(match[2]), match[3].rstrip()) if match else None


def _offset(digits: str, *, colon: bool) -> int:
    # od counts in octal unless told otherwise, and is the one with seven digits.
    octal = len(digits) == 7 and not colon and re.fullmatch("[0-7]+", digits)
    return int(digits, 8 if octal else 16)
