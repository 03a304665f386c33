"""Bytes beside their meaning: a frame's annotations in, lines of offset, hex and field out, coloured for a terminal."""

from collections.abc import Iterable

from kafkascope.cli.terminal import paint, printable, prose, remark, width
from kafkascope.codec.annotations.annotate import Annotation
from kafkascope.limits import MAX_SHOWN_BYTES

# Neighbouring fields differ in colour; framing is dim.
_COLOURS = ("cyan", "green", "yellow", "magenta", "blue")


def print_hex(data: bytes, annotations: Iterable[Annotation], *, full: bool = False) -> None:
    a_row = 16 if width() >= 100 else 8
    if width() < 64:
        a_row = 4
    colour = -1
    entered: list[str] = []
    for item in annotations:
        inside = _containers(item.path)
        for depth, container in enumerate(inside):
            if container not in entered:
                name = container.rpartition(".")[2]
                margin = 8 + a_row * 3 + 1 + 2 * depth
                remark(name, " " * (margin if margin + len(name) <= width() else 2 * depth + 2))
        entered = inside
        if not item.framing:
            colour += 1
        style = ("dim",) if item.framing else (_COLOURS[colour % len(_COLOURS)],)
        raw = data[item.start : item.end]
        shown = raw if full or len(raw) <= MAX_SHOWN_BYTES else raw[:MAX_SHOWN_BYTES]
        for at in range(0, max(len(shown), 1), a_row):
            hexes = shown[at : at + a_row].hex(" ")
            front = f"{item.start + at:06x}  "
            gap = " " * (a_row * 3 + 1 - len(hexes))
            if at == 0 and len(front) + a_row * 3 + 1 + len(_plain(item)) > width():
                # Too narrow for both: the words come first, on lines of their own.
                prose(_plain(item).strip(), "  " * (item.depth + 1))
                print(front + paint(hexes, *style))
            else:
                print(f"{front}{paint(hexes, *style)}{gap}{_text(item) if at == 0 else ''}".rstrip())
        if len(shown) < len(raw):
            print(f"{'':8}… {len(raw) - len(shown)} more bytes (--full shows all)")


def _containers(path: str) -> list[str]:
    """The structs and array elements that a piece lies in, outermost first: `topics[0]`, `topics[0].partitions[2]`."""
    field, mark, kind = path.partition("#")
    parts = field.split(".")
    own = mark and kind in ("tags", "tag") and field
    return [".".join(parts[: number + 1]) for number in range(len(parts) if own else len(parts) - 1)]


def _plain(item: Annotation) -> str:
    meaning = f" ({item.remark})" if item.remark else ""
    return "  " * item.depth + printable(f"{item.label}{' ' if item.framing else ' = '}{item.value}{meaning}")


def _text(item: Annotation) -> str:
    if item.framing:
        return paint(_plain(item), "dim")
    meaning = f" ({item.remark})" if item.remark else ""
    return "  " * item.depth + f"{paint(item.label, 'bold')} = {printable(item.value)}{paint(meaning, 'dim')}"
