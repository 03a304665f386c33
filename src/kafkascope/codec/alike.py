"""The bytes of an array of structs in, the first elements of it out: those that take the same bytes as one another.

Kafka's long arrays repeat: each partition of a topic has three replicas, each committed offset has an empty string
beside it. Elements whose lengths are all the same have a fixed size, so one Struct unpacks them in a row. A function
is written for such a shape, compiled when it is first met, and kept, eight shapes an array at the most. The bytes
that must be as the shape says (lengths, counts, no tags, bools of 0 or 1) are compared column by column, a slice with
a stride each; where a column ends being right, so do the elements.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any

from kafkascope.codec.parts import CODES, NUMBERS, SHORT, UUIDS, default_source, dict_source
from kafkascope.schema.layout import FIXED_SIZES, LayoutField

# Fewer elements than this are read one by one: the columns would cost more than they save.
FEW = 6
# Elements compared at a time, so that arrays of ever changing shapes are not compared to their end again and again.
_WINDOW = 256
_MOST_SHAPES = 8
# The longest string whose compact length is one byte; longer ones are hardly ever alike.
_LONGEST = 126

# (data, position, how many at the most, list to extend) to how many there were.
Read = Callable[[bytes, int, int, list[Any]], int]
Shape = tuple[int, Read]


def is_flat(fields: tuple[LayoutField, ...]) -> bool:
    """Whether lengths alone decide an element's size. Arrays of structs may be in it, but will be empty or null."""
    return any(field.tag is None for field in fields) and all(
        field.tag is not None
        or field.type in NUMBERS
        or (field.type == "struct" if field.array else field.type in ("bool", "uuid", "string", "bytes"))
        for field in fields
    )


class Alike:
    """One array of one layout; remembers the shapes that its elements had."""

    __slots__ = ("failures", "fields", "flexible", "latest", "pieces", "rest", "shapes")

    def __init__(self, fields: tuple[LayoutField, ...], flexible: bool) -> None:
        self.fields = fields
        self.flexible = flexible
        self.pieces = [_piece(field) for field in fields if field.tag is None]
        self.shapes: dict[tuple[int, ...], Shape] = {}
        self.latest: Shape = (0, _none)
        self.failures = 0
        self.rest = 0

    def extend(self, b: bytes, p: int, count: int, empty: int, out: list[Any]) -> tuple[int, int]:
        """Extends `out`; returns the position behind what was read, and what is left of `count`, which is `empty`
        for none."""
        asked = count - empty
        if asked <= _WINDOW:
            size, read = self.latest
            taken = read(b, p, asked, out)
            if taken == asked:
                return p + asked * size, empty
            p += taken * size
            asked -= taken
        p, left = self._search(b, p, asked, out)
        return p, left + empty

    def _search(self, b: bytes, p: int, left: int, out: list[Any]) -> tuple[int, int]:
        """Shape by shape, as long as they are worth it. An array whose elements differ is left alone the next times,
        twice as many after each failure."""
        if self.rest > 0:
            self.rest -= 1
            return p, left
        shape = self._shape_at(b, p, True)
        before = left
        misses = 0
        while shape and left >= FEW and misses < 3:
            size, read = shape
            asked = min(left, _WINDOW)
            taken = read(b, p, asked, out)
            p += taken * size
            left -= taken
            if taken >= FEW:
                self.latest = shape
                misses = 0
            else:
                misses += 1
            if taken < asked:
                shape = self._shape_at(b, p, misses > 0)
        self.failures = 0 if before - left >= FEW else min(self.failures + 1, 6)
        self.rest = 2**self.failures - 1
        return p, left

    def _shape_at(self, b: bytes, p: int, doubtful: bool) -> Shape | None:
        """The shape of the element at `p`; a doubtful one is compiled only if the next element has it too."""
        lengths, end = self._lengths(b, p)
        if lengths is None:
            return None
        if lengths not in self.shapes:
            if len(self.shapes) >= _MOST_SHAPES or (doubtful and self._lengths(b, end)[0] != lengths):
                return None
            self.shapes[lengths] = _compile(self.fields, self.flexible, lengths)
        return self.shapes[lengths]

    def _lengths(self, b: bytes, p: int) -> tuple[tuple[int, ...] | None, int]:
        """The lengths and counts of the element at `p`, and where it ends; None if one is too long or not allowed.
        What lies behind the end reads as 0 and is found out by `read`."""
        lengths = []
        for width, compact, unit, least, most in self.pieces:
            if width:
                length = int.from_bytes(b[p : p + width], signed=width > 1) - compact
                if not least <= length <= most:
                    return None, p
                lengths.append(length)
                p += width + unit * length if length > 0 else width
            else:
                p += unit
        return tuple(lengths), p + self.flexible


def _none(_b: bytes, _p: int, _n: int, _out: list[Any]) -> int:
    return 0


def _piece(field: LayoutField) -> tuple[int, bool, int, int, int]:
    """Bytes of the length, whether it is compact, bytes of what it counts, and its least and greatest value."""
    if field.fixed_size:
        return 0, False, field.fixed_size, 0, 0
    unit = FIXED_SIZES.get(field.type, 1) if field.array else 1
    most = _LONGEST if not field.array else SHORT if field.type in NUMBERS else 0
    return _width(field), field.compact, unit, -1 if field.nullable else 0, most


def _width(field: LayoutField) -> int:
    """Bytes of a length; a longer varint is never alike."""
    return 1 if field.compact else 2 if field.type == "string" and not field.array else 4


def _compile(fields: tuple[LayoutField, ...], flexible: bool, lengths: tuple[int, ...]) -> Shape:
    shape = _Shape()
    rest = iter(lengths)
    items = {
        field.name: default_source(field)
        if field.tag is not None
        else shape.fixed(field)
        if field.fixed_size
        else shape.sized(field, next(rest))
        for field in fields
    }
    if flexible:
        shape.exactly(b"\0")
    reader = Struct(">" + "".join(shape.codes))
    size = reader.size
    text = [
        "def read(b, p, n, out):",
        f"    c = b[p:p + n * {size}]",
        f"    if len(c) < n * {size}: n = len(c) // {size}; c = c[:n * {size}]",
        "    most = n",
    ]
    for at, allowed in shape.columns:
        text.append(f"    wrong = len(c[{at}::{size}].lstrip({allowed!r}))")
        text.append("    if wrong > most - n: n = most - wrong")
    text += [
        f"    if n < most: c = c[:n * {size}]",
        f"    out += [{dict_source(items)} for {''.join(f'{name}, ' for name in shape.names) or '_ '}in unpack(c)]",
        "    return n",
    ]
    namespace: dict[str, Any] = {"UUIDS": UUIDS, "unpack": reader.iter_unpack}
    exec(compile("\n".join(text), "<elements of one shape>", "exec"), namespace)
    return size, namespace["read"]


class _Shape:
    """Collects the codes of one Struct, the variables that it fills, and the columns of bytes that must be so."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.names: list[str] = []
        self.columns: list[tuple[int, bytes]] = []
        self.size = 0

    def read(self, code: str) -> str:
        self.codes.append(code)
        self.size += Struct(f">{code}").size
        self.names.append(f"v{len(self.names)}")
        return self.names[-1]

    def exactly(self, raw: bytes) -> None:
        self.columns += [(self.size + index, raw[index : index + 1]) for index in range(len(raw))]
        self.codes.append(f"{len(raw)}x")
        self.size += len(raw)

    def fixed(self, field: LayoutField) -> str:
        if field.type == "bool":
            self.columns.append((self.size, b"\0\1"))
            return self.read("?")
        name = self.read(CODES[field.type])
        return f"UUIDS[{name}]" if field.type == "uuid" else name

    def sized(self, field: LayoutField, length: int) -> str:
        width = _width(field)
        self.exactly((length + field.compact).to_bytes(width, signed=width > 1))
        if length < 0:
            return "None"
        if field.array:
            return f"[{', '.join(self.read(CODES[field.type]) for _ in range(length))}]"
        if field.type == "string":
            return f"{self.read(f'{length}s')}.decode()" if length else "''"
        return self.read(f"{length}s") if length else "b''"
