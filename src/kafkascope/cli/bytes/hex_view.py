"""Prints bytes beside their meaning: offset, hex and field per line, coloured on a terminal."""

from collections.abc import Iterable

from kafkascope.cli.terminal import cells, paint, prose, remark, width, wrap
from kafkascope.codec.annotations.annotate import Annotation
from kafkascope.formatting import printable
from kafkascope.limits import MAX_SHOWN_BYTES

# Fewest columns for text beside the bytes; in a narrower window it's above them.
_LEAST_ROOM = 30
# Neighbouring fields have different colours; framing is dim.
_COLOURS = ("cyan", "green", "yellow", "magenta", "blue")


def print_hex(data: bytes, annotations: Iterable[Annotation], *, full: bool = False) -> None:
    a_row = 16 if width() >= 100 else 8
    if width() < 64:
        a_row = 4
    column = 8 + a_row * 3 + 1
    colour = -1
    entered: list[str] = []
    for item in annotations:
        inside = _containers(item.path)
        for depth, container in enumerate(inside):
            if container not in entered:
                name = container.rpartition(".")[2]
                margin = column + 2 * depth
                remark(name, " " * (margin if margin + len(name) <= width() else 2 * depth + 2))
        entered = inside
        if not item.framing:
            colour += 1
        style = ("dim",) if item.framing else (_COLOURS[colour % len(_COLOURS)],)
        raw = data[item.start : item.end]
        shown = raw if full or len(raw) <= MAX_SHOWN_BYTES else raw[:MAX_SHOWN_BYTES]
        beside = _beside(item, width() - column)
        if not beside:
            prose(_plain(item).strip(), "  " * (item.depth + 1))
        rows = max(-(-len(shown) // a_row), len(beside), 1)
        for row in range(rows):
            at = row * a_row
            hexes = shown[at : at + a_row].hex(" ")
            front = f"{item.start + at:06x}  " if at < len(shown) or row == 0 else " " * 8
            gap = " " * (column - 8 - len(hexes))
            print(f"{front}{paint(hexes, *style)}{gap}{beside[row] if row < len(beside) else ''}".rstrip())
        if len(shown) < len(raw):
            print(f"{'':8}… {len(raw) - len(shown)} more bytes (--full shows all)")


def _containers(path: str) -> list[str]:
    """The structs and array elements that contain a piece, outermost first: `topics[0]`, `topics[0].partitions[2]`."""
    field, mark, kind = path.partition("#")
    parts = field.split(".")
    own = mark and kind in ("tags", "tag") and field
    return [".".join(parts[: number + 1]) for number in range(len(parts) if own else len(parts) - 1)]


def _beside(item: Annotation, room: int) -> list[str]:
    """The lines of text next to the bytes; none if the window is too narrow for both."""
    plain = _plain(item)
    if cells(plain) <= room:
        return [_text(item)]
    if room < _LEAST_ROOM:
        return []
    # Deep fields lose some of their indent, so that the text stays beside the bytes.
    indent = " " * min(2 * item.depth, room - _LEAST_ROOM)
    first, *more = wrap(plain.strip(), room - len(indent) - 2)
    if item.framing:
        return [paint(indent + first, "dim"), *(paint(f"{indent}  {line}", "dim") for line in more)]
    if first.startswith(item.label):
        first = paint(item.label, "bold") + first.removeprefix(item.label)
    return [indent + first, *(f"{indent}  {line}" for line in more)]


def _plain(item: Annotation) -> str:
    meaning = f" ({item.remark})" if item.remark else ""
    return "  " * item.depth + printable(f"{item.label}{' ' if item.framing else ' = '}{item.value}{meaning}")


def _text(item: Annotation) -> str:
    if item.framing:
        return paint(_plain(item), "dim")
    meaning = f" ({item.remark})" if item.remark else ""
    return "  " * item.depth + f"{paint(item.label, 'bold')} = {printable(item.value)}{paint(meaning, 'dim')}"
