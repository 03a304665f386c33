"""A layout in, a compiled Python function out that decodes well-formed messages: `decode(data, position, end)`.

The function is written as source text, one straight line of statements a struct, and compiled when first used.
It raises `Surprise` (or whatever struct, indexing or UTF-8 raise) at anything that is not the one way Kafka writes
the value: the careful `walk` then reads the message again and says what is wrong. So nothing here explains.

Slices may run past the end unchecked: positions only grow, and the caller compares the last one with the end.
"""

from collections.abc import Callable
from struct import Struct, unpack_from
from typing import Any
from uuid import UUID, SafeUUID

from kafkascope.schema.layout import Layout, LayoutField

Decoder = Callable[[bytes, int, int], tuple[dict[str, Any], int]]

_CODES = {
    "bool": "B",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
# Arrays this short have their unpackers made beforehand: partition lists nearly always are.
_SHORT = 16


class Surprise(Exception):
    """Not the canonical form; the careful decoder or encoder takes over."""


def long_varint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte, already read, has its high bit set."""
    value = first & 0x7F
    shift = 7
    while shift < 35:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 or value > 0x7FFFFFFF:
                break
            return value, position
        shift += 7
    raise Surprise


_new_uuid = UUID.__new__
_set_int = UUID.int.__set__  # type: ignore[attr-defined]
_set_safe = UUID.is_safe.__set__  # type: ignore[attr-defined]
_from_bytes = int.from_bytes
_UNKNOWN = SafeUUID.unknown


def make_uuid(raw: bytes) -> UUID:
    """UUID(bytes=raw) without its argument checks, which cost more than the rest of a topic."""
    made = _new_uuid(UUID)
    _set_int(made, _from_bytes(raw, "big"))
    _set_safe(made, _UNKNOWN)
    return made


def compile_decoder(layout: Layout) -> Decoder:
    source = _Source(layout.flexible)
    value = source.struct(layout.fields)
    source.line(f"return {value}, p")
    lines = ["def decode(b, p, end):", *source.lines]
    namespace: dict[str, Any] = {
        **source.names,
        "Surprise": Surprise,
        "long_varint": long_varint,
        "make_uuid": make_uuid,
        "unpack_from": unpack_from,
    }
    exec(compile("\n".join([*source.functions, *lines]), f"<decoder of {layout.title}>", "exec"), namespace)
    decode: Decoder = namespace["decode"]
    return decode


class _Source:
    """Collects statements. A run of fixed-size pieces becomes one unpack, lengths and tag counts among them."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.names: dict[str, Any] = {}
        self.depth = 1
        self.counter = 0
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

    def fixed(self, code: str, check: str | None = None) -> str:
        name = self.new()
        self.run.append((code, name))
        if check:
            self.checks.append(f"{name} {check}")
        return name

    def flush(self) -> None:
        run, self.run = self.run, []
        checks, self.checks = self.checks, []
        if not run:
            return
        indent = "    " * self.depth
        if len(run) == 1 and run[0][0] == "B":
            self.lines.append(f"{indent}{run[0][1]} = b[p]; p += 1")
        else:
            reader = Struct(">" + "".join(code for code, _ in run))
            targets = ", ".join(name for _, name in run) + ("," if len(run) == 1 else "")
            self.lines.append(f"{indent}{targets} = {self.constant(reader.unpack_from)}(b, p); p += {reader.size}")
        if checks:
            self.lines.append(f"{indent}if {' or '.join(checks)}: raise Surprise")

    def struct(self, fields: tuple[LayoutField, ...]) -> str:
        """Statements for the fields, and the dict display that holds them."""
        items: dict[str, str] = {}
        tagged = [field for field in fields if field.tag is not None]
        for field in fields:
            items[field.name] = self.field(field) if field.tag is None else ""
        if self.flexible:
            if tagged:
                self.tags(tagged, items)
            else:
                self.fixed("B", "> 0")
        self.flush()
        return "{" + ", ".join(f"{name!r}: {value}" for name, value in items.items()) + "}"

    def tags(self, tagged: list[LayoutField], items: dict[str, str]) -> None:
        count = self.fixed("B")
        self.flush()
        names = []
        for field in tagged:
            items[field.name] = name = self.new()
            names.append(name)
            self.line(f"{name} = {_default(field)}")
        function = f"tags{len(self.functions)}"
        self.functions.append(self.tag_function(function, tagged))
        joined = ", ".join(names)
        self.line(f"if {count}: {joined}, p = {function}(b, p, end, {count}, {joined})")

    def tag_function(self, name: str, tagged: list[LayoutField]) -> str:
        """Known tags in ascending order with true sizes; any other tag is a Surprise."""
        inner = _Source(self.flexible)
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
        inner.line("if size > 127: size, p = long_varint(b, p, size)")
        inner.line("stop = p + size")
        for slot, field in zip(slots, tagged, strict=True):
            inner.line(f"{'if' if slot == 't0' else 'elif'} tag == {field.tag}:")
            inner.depth = 3
            value = inner.field(field)
            inner.line(f"{slot} = {value}")
            inner.line(f"if {slot} == {_default(field)}: raise Surprise")
            inner.depth = 2
        inner.line("else: raise Surprise")
        inner.line("if p != stop: raise Surprise")
        inner.depth = 1
        inner.line(f"return {', '.join(slots)}, p")
        return "\n".join([f"def {name}(b, p, end, count, {', '.join(slots)}):", *inner.lines])

    def field(self, field: LayoutField) -> str:
        if field.array:
            return self.array(field)
        return self.one(field, field.nullable)

    def one(self, field: LayoutField, nullable: bool) -> str:
        type_ = field.type
        if type_ == "struct":
            return self.maybe_struct(field, nullable)
        if type_ in ("string", "bytes", "records"):
            return self.sized(field, nullable)
        if type_ == "bool":
            return f"({self.fixed('B', '> 1')} == 1)"
        if type_ == "uuid":
            return f"make_uuid({self.fixed('16s')})"
        if type_ == "float64":
            name = self.fixed("d")
            self.checks.append(f"{name} != {name}")
            return name
        return self.fixed(_CODES[type_])

    def maybe_struct(self, field: LayoutField, nullable: bool) -> str:
        if not nullable:
            return self.struct(field.fields)
        present = self.fixed("b")
        result = self.new()
        self.line(f"if {present} == {-1 if field.tag is None else 0}: {result} = None")
        self.line(f"elif {present} == 1:")
        self.depth += 1
        value = self.struct(field.fields)
        self.line(f"{result} = {value}")
        self.depth -= 1
        self.line("else: raise Surprise")
        return result

    def length(self, compact: bool, classic: str) -> tuple[str, int]:
        """The variable of a length or count, and what it is offset by: compact ones are one more than they mean."""
        if compact:
            name = self.fixed("B")
            self.line(f"if {name} > 127: {name}, p = long_varint(b, p, {name})")
            return name, 1
        name = self.fixed(classic)
        self.flush()
        return name, 0

    def sized(self, field: LayoutField, nullable: bool) -> str:
        string = field.type == "string"
        name, offset = self.length(field.compact, "h" if string else "i")
        result = self.new()
        null = "0" if offset else "-1"
        if nullable:
            self.line(f"if {name} == {null}: {result} = None")
            self.line("else:")
            self.depth += 1
        floor = "1" if offset else "0"
        checks = f"{name} < {floor}"
        if string and offset:
            checks += f" or {name} > 32768"
        self.line(f"if {checks}: raise Surprise")
        self.line(f"q = p + {name}{' - 1' if offset else ''}")
        self.line(f"{result} = b[p:q]{'.decode()' if string else ''}; p = q")
        if nullable:
            self.depth -= 1
        return result

    def array(self, field: LayoutField) -> str:
        name, offset = self.length(field.compact, "i")
        result = self.new()
        if offset:
            self.line(f"{name} -= 1")
        if field.nullable:
            self.line(f"if {name} == -1: {result} = None")
            self.line("else:")
            self.depth += 1
        self.line(f"if {name} < 0 or {name} * {field.element_minimum} > end - p: raise Surprise")
        code = _CODES.get(field.type)
        if code and field.type not in ("bool", "uuid", "float64"):
            size = Struct(">" + code).size
            readers = self.constant([Struct(f">{n}{code}").unpack_from for n in range(_SHORT)])
            self.line(
                f"{result} = list({readers}[{name}](b, p) if {name} < {_SHORT}"
                f" else unpack_from(f'>{{{name}}}{code}', b, p)); p += {name} * {size}"
            )
        else:
            append = self.new()
            self.line(f"{result} = []; {append} = {result}.append")
            self.line(f"for _ in range({name}):")
            self.depth += 1
            value = self.one(field, False)
            self.line(f"{append}({value})")
            self.depth -= 1
        if field.nullable:
            self.depth -= 1
        return result


def _default(field: LayoutField) -> str:
    """Source text that makes the default anew each time it runs."""
    return _display(field.default_value())


def _display(value: Any) -> str:
    if isinstance(value, UUID):
        return f"make_uuid({value.bytes!r})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_display(item)}" for name, item in value.items()) + "}"
    return repr(value)
