"""Generates a Python function `decode(data, position, end)` that decodes well-formed messages of a layout.

The function is written as source text, one straight line of statements a struct, and compiled when first used.
It raises `Surprise` (or whatever struct, indexing or UTF-8 raise) at anything that is not the one way Kafka writes
the value: the careful `walk` then reads the message again and says what is wrong. So nothing here explains.

In that text `b` is the data and `p` a position; the next byte to read lies `skip` behind `p`, a number known while
writing the text. Calls are what costs, so a run of fixed-size pieces is one unpack, with the length behind it.
Slices may run past the end unchecked: positions only grow, and the caller compares the last one with the end.
"""

from collections.abc import Callable
from struct import Struct, unpack_from
from typing import Any

from kafkascope.codec.fast.parts import CODES, NUMBERS, SHORT, UUIDS, Surprise, default_source, dict_source
from kafkascope.schema.layouts.layout import FIXED_SIZES, Layout, LayoutField

__all__ = ["Decoder", "Surprise", "compile_decoder"]

Decoder = Callable[[bytes, int, int], tuple[dict[str, Any], int]]


def long_varint(data: bytes, position: int, first: int, skip: int, most: int = 0x7FFFFFFF) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte, already read, has its high bit set. It goes on `skip` behind
    `position`, and the position that comes back has what follows `skip` behind it, as with shorter ones."""
    byte = data[position + skip]
    if 0 < byte < 128:
        # Two bytes: most of those that are not one.
        return first & 0x7F | byte << 7, position + 1
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position + skip]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 or value > most:
                break
            return value, position
    raise Surprise


def numbers(data: bytes, position: int, count: int, code: str, size: int) -> tuple[list[int], int]:
    """A long array of numbers; unpack_from checks that they are there before it makes any."""
    if count < 0:
        raise Surprise
    return list(unpack_from(f">{count}{code}", data, position)), position + count * size


def compact_numbers(data: bytes, position: int, first: int, code: str, size: int) -> tuple[list[int], int]:
    """The same behind the first byte of its compact count."""
    if first > 127:
        first, position = long_varint(data, position, first, 0)
    return numbers(data, position, first - 1, code, size)


# What the written text refers to; `BOOLS[2]` is an IndexError, and so bool 2 a surprise.
_GLOBALS = {
    "BOOLS": (False, True),
    "SIGNED": (*range(128), *range(-128, 0)),
    "Surprise": Surprise,
    "UUIDS": UUIDS,
    "compact_numbers": compact_numbers,
    "long_varint": long_varint,
    "numbers": numbers,
}


def compile_decoder(layout: Layout) -> Decoder:
    namespace: dict[str, Any] = {}
    exec(compile(decoder_source(layout, namespace), f"<decoder of {layout.title}>", "exec"), namespace)
    decode: Decoder = namespace["decode"]
    return decode


def decoder_source(layout: Layout, namespace: dict[str, Any]) -> str:
    """The text; what it refers to goes into `namespace`."""
    source = _DecoderSource(layout.flexible)
    value = source.struct(layout.fields)
    source.settle()
    source.line(f"return {value}, p")
    namespace.update(source.names, **_GLOBALS)
    return "\n".join([*source.functions, "def decode(b, p, end):", *source.lines])


class _DecoderSource:
    """Collects statements; what reads a field returns the expression of its value."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.names: dict[str, Any] = {}
        self.depth = 1
        self.counter = 0
        self.skip = 0
        self.run: list[tuple[str, str]] = []  # (struct code, variable) not read yet
        self.checks: list[str] = []  # conditions on them that make a Surprise

    def line(self, text: str) -> None:
        self.flush()
        self.lines.append("    " * self.depth + text)

    def new(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def constant(self, value: Any) -> str:
        name = f"C{len(self.names)}"
        self.names[name] = value
        return name

    def fixed(self, code: str) -> str:
        name = self.new()
        self.run.append((code, name))
        return name

    def flush(self) -> None:
        """Reads the run; `p` stays where it was."""
        run, self.run = self.run, []
        checks, self.checks = self.checks, []
        codes = "".join(code for code, _ in run)
        if len(run) < 3 and codes.strip("bB") == "":
            # Two single bytes cost less one by one than an unpack of them.
            for code, name in run:
                byte = f"b[{self.at()}]" if code == "B" else f"SIGNED[b[{self.at()}]]"
                self.skip += 1
                self.line(f"if {byte}: raise Surprise" if name in checks else f"{name} = {byte}")
            checks = []
        else:
            reader = Struct(f">{self.skip}x{codes}")
            targets = "".join(f"{name}, " for _, name in run)
            self.line(f"{targets}= {self.constant(reader.unpack_from)}(b, p)")
            self.skip = reader.size
        if checks:
            self.line(f"if {' or '.join(checks)}: raise Surprise")

    def at(self) -> str:
        return f"p + {self.skip}" if self.skip else "p"

    def settle(self) -> None:
        """Moves `p` to the next byte, which branches and loops must agree on."""
        self.flush()
        if self.skip:
            self.line(f"p += {self.skip}")
            self.skip = 0

    def struct(self, fields: tuple[LayoutField, ...]) -> str:
        items: dict[str, str] = {}
        tagged = [field for field in fields if field.tag is not None]
        for field in fields:
            items[field.name] = self.field(field) if field.tag is None else ""
        if tagged:
            self.tags(tagged, items)
        elif self.flexible:
            self.checks.append(self.fixed("B"))
        self.flush()
        return dict_source(items)

    def tags(self, tagged: list[LayoutField], items: dict[str, str]) -> None:
        count = self.fixed("B")
        self.settle()
        names = []
        for field in tagged:
            items[field.name] = name = self.new()
            names.append(name)
            self.line(f"{name} = {default_source(field)}")
        function = f"tags_{self.constant(None)}"  # a name of its own, also inside another tag
        self.functions.append(self.tag_function(function, tagged))
        joined = ", ".join(names)
        self.line(f"if {count}: {joined}, p = {function}(b, p, {count}, {joined})")

    def tag_function(self, name: str, tagged: list[LayoutField]) -> str:
        """Known tags in ascending order with true sizes; any other tag is a Surprise."""
        inner = _DecoderSource(self.flexible)
        inner.names = self.names
        inner.functions = self.functions
        slots = [f"t{index}" for index in range(len(tagged))]
        inner.line("if count > 127: raise Surprise")
        inner.line("last = -1")
        inner.line("for _ in range(count):")
        inner.depth = 2
        inner.line("tag = b[p]; size = b[p + 1]; p += 2")
        inner.line("if tag > 127 or tag <= last: raise Surprise")
        inner.line("last = tag")
        inner.line("if size > 127: size, p = long_varint(b, p, size, 0)")
        inner.line("stop = p + size")
        for slot, field in zip(slots, tagged, strict=True):
            inner.line(f"{'if' if slot == 't0' else 'elif'} tag == {field.tag}:")
            inner.depth = 3
            value = inner.field(field)
            inner.settle()
            inner.line(f"{slot} = {value}")
            inner.line(f"if {slot} == {default_source(field)}: raise Surprise")
            inner.depth = 2
        inner.line("else: raise Surprise")
        inner.line("if p != stop: raise Surprise")
        inner.depth = 1
        inner.line(f"return {', '.join(slots)}, p")
        return "\n".join([f"def {name}(b, p, count, {', '.join(slots)}):", *inner.lines])

    def field(self, field: LayoutField) -> str:
        if not field.array:
            return self.element(field, field.nullable)
        if field.type in NUMBERS:
            return self.number_array(field)
        return self.array(field)

    def element(self, field: LayoutField, nullable: bool) -> str:
        type_ = field.type
        if type_ == "struct":
            return self.maybe_struct(field, nullable)
        if type_ in ("string", "bytes", "records"):
            return self.sized(field, nullable)
        if type_ == "bool":
            return f"BOOLS[{self.fixed('B')}]"
        if type_ == "uuid":
            return f"UUIDS[{self.fixed('16s')}]"
        if type_ == "float64":
            name = self.fixed("d")
            self.checks.append(f"{name} != {name}")
            return name
        return self.fixed(CODES[type_])

    def maybe_struct(self, field: LayoutField, nullable: bool) -> str:
        if not nullable:
            return self.struct(field.fields)
        present = self.fixed("b")
        self.settle()
        result = self.new()
        self.line(f"if {present} == {-1 if field.tag is None else 0}: {result} = None")
        self.line(f"elif {present} == 1:")
        self.depth += 1
        value = self.struct(field.fields)
        self.settle()
        self.line(f"{result} = {value}")
        self.depth -= 1
        self.line("else: raise Surprise")
        return result

    def sized(self, field: LayoutField, nullable: bool) -> str:
        """A compact length is one more than it means, and 0 is null; a classic null is -1."""
        string = field.type == "string"
        length = self.fixed("B" if field.compact else "h" if string else "i")
        self.flush()
        result = self.new()
        if field.compact:
            # A string takes 32,767 bytes at the most, written as one more.
            most = ", 32768" if string else ""
            self.line(f"if {length} > 127: {length}, p = long_varint(b, p, {length}, {self.skip}{most})")
            if not nullable:
                self.line(f"elif {length} == 0: raise Surprise")
        else:
            self.line(f"if {length} < {-1 if nullable else 0}: raise Surprise")
        if nullable:
            self.line(f"if {length} == {0 if field.compact else -1}: {result} = None; p += {self.skip}")
            self.line("else:")
            self.depth += 1
        behind = self.skip - 1 if field.compact else self.skip
        # The left end of the slice is worked out before `p` moves.
        moved = f"p := p + {length}{f' + {behind}' if behind else ''}"
        self.line(f"{result} = b[{self.at()}:({moved})]{'.decode()' if string else ''}")
        self.skip = 0
        if nullable:
            self.depth -= 1
        return result

    def number_array(self, field: LayoutField) -> str:
        """Empty, short and long ones each in the way that is fastest for them."""
        empty = 1 if field.compact else 0
        count = self.fixed("B" if field.compact else "i")
        self.flush()
        result = self.new()
        code, size, skip = CODES[field.type], FIXED_SIZES[field.type], self.skip
        readers = self.constant([Struct(f">{skip}x{max(n - empty, 0)}{code}").unpack_from for n in range(SHORT)])
        function = "compact_numbers" if field.compact else "numbers"
        self.line(f"if {count} == {empty}: {result} = []; p += {skip}")
        if field.nullable:
            self.line(f"elif {count} == {empty - 1}: {result} = None; p += {skip}")
        self.line(f"elif {empty} < {count} < {SHORT}:")
        self.line(f"    {result} = [*{readers}[{count}](b, p)]; p += {count} * {size} + {skip - empty * size}")
        self.line(f"else: {result}, p = {function}(b, {self.at()}, {count}, {code!r}, {size})")
        self.skip = 0
        return result

    def array(self, field: LayoutField) -> str:
        """Element by element; no count needs a check, since an element too many finds no byte to read."""
        empty = 1 if field.compact else 0
        count = self.fixed("B" if field.compact else "i")
        self.flush()
        result = self.new()
        if field.compact:
            self.line(f"if {count} > 127: {count}, p = long_varint(b, p, {count}, {self.skip})")
        if not field.nullable:
            self.line(f"{'el' if field.compact else ''}if {count} < {empty}: raise Surprise")
        elif not field.compact:
            self.line(f"if {count} < -1: raise Surprise")
        self.settle()
        if field.nullable:
            self.line(f"if {count} == {empty - 1}: {result} = None")
            self.line("else:")
            self.depth += 1
        self.line(f"{result} = []")
        self.line(f"while {count} > {empty}:")
        self.depth += 1
        self.line(f"{count} -= 1")
        value = self.element(field, False)
        self.settle()
        self.line(f"{result}.append({value})")
        self.depth -= 1
        if field.nullable:
            self.depth -= 1
        return result
