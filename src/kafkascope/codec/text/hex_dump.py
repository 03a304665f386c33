"""Parses hex dumps (xxd, hexdump -C, od -tx1, tcpdump -X, Wireshark). `InputError` names the line that is wrong."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kafkascope.codec.text.packet import READ_TAKES_CAPTURES, one_payload
from kafkascope.errors import InputError
from kafkascope.limits import MAX_DUMPED_PACKETS

# `00000010  68 65 …  |he…|` (hexdump -C), `00000010: 6865 6c6c …  he` (xxd), `0x0010:  4500 …  E.` (tcpdump -X).
_ROW = re.compile(r"^\s*(?:0x)?([0-9a-fA-F]{4,8})(:?)\s+(\S.*)$")
# hexdump -C and od end with a line that has only an offset.
_END = re.compile(r"^\s*([0-9a-fA-F]{4,8}):?\s*$")
_TCPDUMP = re.compile(r"^[ \t]*0x[0-9a-fA-F]{4}:\s", re.MULTILINE)
# Before its rows tcpdump prints who sent what to whom.
_SUMMARY = re.compile(r"^(?![ \t]*0x).*(?: > .*:|\b(?:IP6?|ARP)\b)", re.MULTILINE)
_TWO_SPACES, _FENCE = re.compile(r"\s{2,}"), re.compile(r"\||\s{3,}")
_WORD = re.compile(r"^(?:[0-9a-fA-F]{2})+$")


@dataclass(frozen=True, slots=True)
class _DumpRow:
    offset: int
    colon: bool
    rest: str

    @property
    def _area(self) -> str:
        """The part before the column of characters, which is set off by `|` or by two spaces."""
        # Without a colon hexdump separates its two halves by two spaces, and Wireshark its characters by three.
        return (_TWO_SPACES if self.colon else _FENCE).split(self.rest, maxsplit=1)[0]

    @property
    def words(self) -> list[str]:
        """The hex words."""
        words: list[str] = []
        for word in self._area.split():
            if not _WORD.match(word):
                break
            words.append(word)
        return words

    @property
    def data(self) -> bytes:
        try:
            return bytes.fromhex(self._area)
        except ValueError:
            return bytes.fromhex("".join(self.words))

    @property
    def has_characters(self) -> bool:
        """If three spaces are followed by something that isn't more hex, or by the bytes as characters."""
        column = re.split(r"\s{3,}", self.rest, maxsplit=1)[1:]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in self.data)
        return bool(column) and (column[0] == shown.strip() or not all(map(_WORD.match, column[0].split())))


def looks_like_dump(text: str) -> bool:
    """Only a dump has a colon after the offset or a `|` before the characters, right or wrong. Hex may also be in
    groups after eight zeros: without those marks the offsets must fit."""
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
    dump = Dump()
    dump.add(text)
    return dump.payload()


class Dump:
    """Takes whole lines, any number at a time. The first ones show if it is tcpdump's."""

    def __init__(self) -> None:
        self.packets = [bytearray()]
        self._tcpdump: bool | None = None
        self._summary = False
        self._lines = 0

    def add(self, text: str) -> None:
        if self._tcpdump is None:
            self._tcpdump = _TCPDUMP.search(text) is not None
        if self._tcpdump and not self._summary:
            self._summary = _SUMMARY.search(text) is not None
        for number, row in _rows(text, self._tcpdump, self._lines + 1):
            if self._tcpdump and row.offset == 0 and self.packets[-1]:
                self.packets.append(bytearray())
                if len(self.packets) > MAX_DUMPED_PACKETS:
                    raise InputError(
                        f"more than {MAX_DUMPED_PACKETS} packets; decode reads one, and {READ_TAKES_CAPTURES}"
                    )
            out = self.packets[-1]
            if row.offset != len(out):
                raise InputError(
                    f"line {number} of the dump is at {row.offset:#x}, expected {len(out):#x}: a row is missing"
                )
            out += row.data
        self._lines += text.count("\n")

    def payload(self) -> bytes:
        packets = [bytes(packet) for packet in self.packets]
        self.packets.clear()
        return one_payload(packets, sure=bool(self._tcpdump) and self._summary)


def _rows(text: str, tcpdump: bool, first: int) -> Iterator[tuple[int, _DumpRow]]:
    for number, line in enumerate(text.splitlines(), first):
        row = _row(line)
        if row is not None:
            yield number, row
        elif line.strip() == "*":
            raise InputError(f"line {number} of the dump omits repeated rows (*); make it with hexdump -v")
        # tcpdump describes each packet before its rows.
        elif line.strip() and not _END.match(line) and not (tcpdump and not line.lstrip().startswith("0x")):
            raise InputError(f"line {number} of the dump doesn't begin with an offset")


def _row(line: str) -> _DumpRow | None:
    match = _ROW.match(line)
    return _DumpRow(_offset(match[1], colon=bool(match[2])), bool(match[2]), match[3].rstrip()) if match else None


def _offset(digits: str, *, colon: bool) -> int:
    # od counts in octal by default, and only it has seven digits.
    octal = len(digits) == 7 and not colon and re.fullmatch("[0-7]+", digits)
    return int(digits, 8 if octal else 16)
