"""Arranges the annotated bytes of a message as rows of sixteen, each with its offset and its ASCII characters."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

_IN_A_ROW = 16
# Looks of bytes: text, an identifier, raw bytes. Everything else is a number.
_LOOKS = {"string": "s", "uuid": "u", "bytes": "r", "records": "r", "bool": "f"}


@dataclass(frozen=True, slots=True)
class Cell:
    """The part of a piece in one row. `continues` means that the piece began in a row above."""

    hex: str
    path: str
    framing: str
    look: str
    continues: bool


@dataclass(slots=True)
class Row:
    at: str
    ascii: str = ""
    cells: list[Cell] = field(default_factory=list)


def hex_rows(pieces: Iterable[dict[str, Any]]) -> Iterator[Row]:
    """A piece that is hidden or cut ends its row."""
    row: Row | None = None
    for piece in pieces:
        octets = bytes.fromhex(piece["hex"])
        look = "" if piece["framing"] else _LOOKS.get(piece["type"], "")
        done = 0
        while done < len(octets):
            if row is None or len(row.ascii) == _IN_A_ROW:
                if row:
                    yield row
                row = Row(f"{piece['start'] + done:04x}")
            part = octets[done : done + _IN_A_ROW - len(row.ascii)]
            row.cells.append(Cell(part.hex(" "), piece["path"], piece["framing"], look, done > 0))
            row.ascii += "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
            done += len(part)
        row = row or Row(f"{piece['start']:04x}")
        rest = _rest(piece)
        if octets and rest:
            row.cells[-1] = replace(row.cells[-1], hex=f"{row.cells[-1].hex} {rest}")
        elif not octets:
            row.cells.append(Cell(rest, piece["path"], piece["framing"], look, False))
        if rest:
            yield row
            row = None
    if row:
        yield row


def _rest(piece: dict[str, Any]) -> str:
    """The words in place of bytes."""
    if not piece["hex"] and piece["value"].endswith(", hidden"):
        return "hidden"
    return f"… {piece['cut']} more" if piece.get("cut") else ""
