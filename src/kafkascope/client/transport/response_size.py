"""Bounds the memory that a response takes once it's decoded, by stepping over its bytes. Nothing is built, and stepping
ends at the limit, so that a hostile frame costs no more than an ordinary one. Of a list that may be cut (brokers), the
first rows are kept and the others are counted."""

import sys
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kafkascope.limits import MAX_BROKERS
from kafkascope.schema.layouts.layout import FIXED_SIZES, Layout, LayoutField, layout

# Lists of nodes: a client needs some of them, and no cluster has more than MAX_BROKERS.
_CUT = {"MetadataResponse": "brokers", "DescribeClusterResponse": "brokers"}
# Rows between two pauses for other tasks of the loop: some ten milliseconds.
_SLICE = 16_384
# Indent of the statements of the first level.
_TOP = 2
# CPython's objects with the collector's header. A UUID is an object and an int of 128 bits; a text is its bytes and a
# header; an int above 256 is its own object, smaller ones are shared.
_LIST, _POINTER, _TEXT, _INT, _UUID, _COLLECTED = 72, 8, 56, 32, 124, 16
# The most memory per byte of a tag: a struct of two bytes is a dict with a text.
_TAGGED = 120


@dataclass(frozen=True, slots=True)
class ResponseWeight:
    """`memory` is in bytes, and above the limit if stepping ended there; `end` is None then, and if the bytes aren't
    this message. `rows` is the number of rows of the list that may be cut; if there are too many, `cut` has the offsets
    of its count, its first row, the first row to leave out, and the first byte after the list."""

    memory: int
    end: int | None = None
    rows: int = 0
    cut: tuple[int, int, int, int] | None = None


class _HeavyError(Exception):
    pass


_Stepper = Generator[None, None, ResponseWeight]


def weigh(name: str, version: int, data: bytes, position: int, most: int) -> _Stepper:
    """Steps over the body at `position` and yields now and then; returns the `ResponseWeight`. Bytes that aren't this
    message weigh what was read of them: decoding reports the problem."""
    totals = [0, 0, 0, 0, 0, 0]
    try:
        end = yield from _stepper(name, version)(data, position, most, totals)
    except (IndexError, _HeavyError):
        return ResponseWeight(totals[0])
    memory, rows, count_at, first_at, cut_at, end_at = totals
    return ResponseWeight(memory, end, rows, (count_at, first_at, cut_at, end_at) if rows > MAX_BROKERS else None)


def header_end(frame: bytes, version: int, most: int) -> tuple[int, int]:
    """The end of a response's header, and the weight of its tags, which no broker writes but the format allows."""
    return _tags(frame, 5, frame[4], most) if version and frame[4] else (4 + version, 0)


def without_rows(data: bytes, weight: ResponseWeight, compact: bool) -> bytes:
    """The frame with only the first MAX_BROKERS rows of its list."""
    assert weight.cut is not None
    count_at, first_at, cut_at, end_at = weight.cut
    count = _varint_bytes(MAX_BROKERS + 1) if compact else MAX_BROKERS.to_bytes(4, "big")
    return b"".join((data[:count_at], count, data[first_at:cut_at], data[end_at:]))


def _varint_bytes(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes((*encoded, value))


@lru_cache(maxsize=1024)
def _stepper(name: str, version: int) -> Any:
    message_layout = layout(name, version)
    namespace: dict[str, Any] = {"varint": _varint, "tags": _tags, "Heavy": _HeavyError}
    exec(compile(_stepper_source(message_layout), f"<weight of {message_layout.title}>", "exec"), namespace)
    return namespace["step"]


def _varint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte has its high bit set."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise IndexError


def _tags(data: bytes, position: int, count: int, most: int) -> tuple[int, int]:
    """Steps over a tag section after its first byte: returns its end, and the most that it weighs."""
    memory = 0
    with suppress(IndexError):
        if count > 127:
            count, position = _varint(data, position, count)
        for _ in range(count):
            for part in (0, 1):
                size = data[position]
                position += 1
                if size > 127:
                    size, position = _varint(data, position, size)
                if part:
                    position += size
                    memory += _TAGGED * (size + 4)
            if memory > most:
                break
        return position, memory
    return len(data), memory


def _stepper_source(message_layout: Layout) -> str:
    source = _StepperSource(message_layout)
    source.struct(message_layout.fields)
    head = ("def step(b, p, most, totals):", "    w, end = 0, len(b)", "    try:", "        if not end: yield")
    return "\n".join((*head, *source.lines, "        return p", "    finally:", "        totals[0] = w"))


class _StepperSource:
    """Statements that move `p` over the fields of `b` and add to `w`. Weights known in advance are added once per
    struct, or for all elements of a list before its loop, which therefore ends at the limit."""

    def __init__(self, message_layout: Layout) -> None:
        self.flexible = message_layout.flexible
        self.cut = _CUT.get(message_layout.message.name)
        self.lines: list[str] = []
        self.depth = _TOP
        self.names = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def struct(self, fields: tuple[LayoutField, ...]) -> None:
        run = 0
        for field in (field for field in fields if field.tag is None):
            size = field.fixed_size
            if size is not None:
                run += size
                continue
            if run:
                self.line(f"p += {run}")
                run = 0
            self.field(field)
        if run:
            self.line(f"p += {run}")
        if self.flexible:
            tagged = self.name()
            self.line(f"{tagged} = b[p]; p += 1")
            self.line(f"if {tagged}:")
            self.line(f"    p, {tagged} = tags(b, p, {tagged}, most); w += {tagged}")
            self.line("    if w > most: raise Heavy")

    def field(self, field: LayoutField) -> None:
        if field.array:
            self.array(field)
        elif field.type == "struct":
            self.nullable_struct(field)
        else:
            self.text(field)

    def length(self, field: LayoutField, width: int) -> str:
        """A variable with the length or count, negative for null."""
        variable = self.name()
        if field.compact:
            self.line(f"{variable} = b[p]; p += 1")
            self.line(f"if {variable} > 127: {variable}, p = varint(b, p, {variable})")
            self.line(f"{variable} -= 1")
        else:
            self.line(f"{variable} = int.from_bytes(b[p : p + {width}], 'big', signed=True); p += {width}")
        return variable

    def text(self, field: LayoutField) -> None:
        size = self.length(field, 2 if field.type == "string" else 4)
        # texts of zero or one character are shared
        self.line(f"if {size} > 0: p += {size}; w += {size} + {_TEXT}")

    def nullable_struct(self, field: LayoutField) -> None:
        if field.nullable:
            present = self.name()
            self.line(f"{present} = b[p]; p += 1")
            self.line(f"if {present} < 128:")
            self.depth += 1
        self.line(f"w += {_own(field)}")
        self.struct(field.fields)
        if field.nullable:
            self.depth -= 1

    def array(self, field: LayoutField) -> None:
        cut = self.depth == _TOP and field.name == self.cut
        if cut:
            self.line("totals[2] = p")
        count = self.length(field, 4)
        if cut:
            self.line(f"totals[1] = max({count}, 0); totals[3] = p")
        self.line(f"if {count} > 0:")
        self.depth += 1
        self.line(f"if {count} * {max(field.element_minimum, 1)} > end - p: raise IndexError")
        fixed = FIXED_SIZES.get(field.type)
        if fixed is not None:
            small = f"{_POINTER} if b.count(0, p, p + {count} * {fixed}) >= {count} * {fixed - 1} else "
            if field.type in ("uuid", "float64"):
                small = ""
            self.line(f"w += {count} * ({small}{_POINTER + _own(field)})")
            self.line(f"p += {count} * {fixed}")
            self.line("if w > most: raise Heavy")
        else:
            charged = f"min({count}, {MAX_BROKERS})" if cut else count
            self.line(f"w += {charged} * {_POINTER + _own(field)}")
            self.line("if w > most: raise Heavy")
            row = self.name()
            self.line(f"for {row} in range({count}):")
            self.depth += 1
            if cut:
                self.line(f"if not {row} & {_SLICE - 1}:")
                self.line("    yield")
                self.line(f"if {row} == {MAX_BROKERS}: totals[4], kept = p, w")
            self.element(field)
            if not cut:
                self.line("if w > most: raise Heavy")
            self.depth -= 1
            if cut:
                self.line(f"if {count} > {MAX_BROKERS}: w = kept")
                self.line("if w > most: raise Heavy")
        self.depth -= 1
        if cut:
            self.line("totals[5] = p")

    def element(self, field: LayoutField) -> None:
        if field.type == "struct":
            self.struct(field.fields)
        else:
            self.text(field)


def _own(field: LayoutField) -> int:
    """The memory of one value, without the parts of variable length."""
    if field.type == "struct":
        names = dict.fromkeys(child.name for child in field.fields)
        return sys.getsizeof(names.copy()) + _COLLECTED + sum(map(_inside, field.fields))
    if field.type == "uuid":
        return _UUID
    return _INT if field.type in FIXED_SIZES and field.type not in ("bool", "int8") else 0


def _inside(field: LayoutField) -> int:
    """The same for a field of a struct; a nested struct is weighed where it's read, its default here."""
    if field.array:
        return _LIST
    return 0 if field.type == "struct" and field.tag is None else _own(field)
