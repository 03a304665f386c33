"""Bytes beside their meaning: a frame's annotations in, lines of offset, hex and field out, coloured for a terminal."""

from collections.abc import Iterable

from kafkascope.cli.terminal import paint, width
from kafkascope.codec.annotate import Annotation
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
                print(" " * (8 + a_row * 3 + 1) + "  " * depth + paint(container.rpartition(".")[2], "dim"))
        entered = inside
        if not item.framing:
            colour += 1
        style = ("dim",) if item.framing else (_COLOURS[colour % len(_COLOURS)],)
        raw = data[item.start : item.end]
        shown = raw if full or len(raw) <= MAX_SHOWN_BYTES else raw[:MAX_SHOWN_BYTES]
        for at in range(0, max(len(shown), 1), a_row):
            piece = shown[at : at + a_row]
            text = _text(item) if at == 0 else ""
            hexes = piece.hex(" ")
            line = f"{item.start + at:06x}  {paint(hexes, *style)}{' ' * (a_row * 3 - 1 - len(hexes))}  {text}"
            print(line.rstrip())
        if len(shown) < len(raw):
            print(f"{'':8}… {len(raw) - len(shown)} more bytes (--full shows all)")


def _containers(path: str) -> list[str]:
    """The structs and array elements that a piece lies in, outermost first: `topics[0]`, `topics[0].partitions[2]`."""
    field, mark, kind = path.partition("#")
    parts = field.split(".")
    own = mark and kind in ("tags", "tag") and field
    return [".".join(parts[: number + 1]) for number in range(len(parts) if own else len(parts) - 1)]


def _text(item: Annotation) -> str:
    indent = "  " * item.depth
    remark = f" ({item.remark})" if item.remark else ""
    if item.framing:
        return paint(f"{indent}{item.label} {item.value}{remark}", "dim")
    return f"{indent}{paint(item.label, 'bold')} = {item.value}{paint(remark, 'dim')}"
