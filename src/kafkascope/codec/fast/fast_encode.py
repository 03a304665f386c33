"""Generates a Python function `encode(value)` that encodes complete values of a layout.

Every field must be present, with its exact type, and nothing else. For any other value it raises, and the careful
`write` then encodes the value or reports what is wrong with it.

In the generated text, `out` collects the pieces. A run of fixed-size values is one pack, and the length or count after
it is its last part.
"""

from collections.abc import Callable
from struct import Struct, pack
from typing import Any
from uuid import UUID

from kafkascope.codec.not_canonical import NotCanonical
from kafkascope.codec.write import uvarint
from kafkascope.limits import MAX_STRING_BYTES
from kafkascope.schema.layouts.layout import Layout, LayoutField

Encoder = Callable[[dict[str, Any]], bytes]

_TYPES = {"bool": "bool", "uuid": "UUID", "float64": "float"}
CODES = {
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
# Types whose every bit pattern is a value and whose arrays struct writes in one go.
_NUMBERS = frozenset(CODES) - {"bool", "uuid", "float64"}
# Arrays this short have their writers prepared: replica lists nearly always are.
_SHORT = 16


def exactly(value: Any, default: Any) -> bool:
    """If a value that equals a default has its types too: 0 == False and -1 == -1.0."""
    if type(value) is not type(default):
        return False
    if isinstance(default, dict):
        return all(exactly(value[name], item) for name, item in default.items())
    return True


def long_string(length: int) -> bytes:
    """The length of a compact string that needs more than a byte, already increased by one."""
    if length > MAX_STRING_BYTES + 1:
        raise NotCanonical
    return uvarint(length)


# Names that the generated text uses.
_GLOBALS = {
    "BYTES": tuple(bytes([value]) for value in range(128)),
    "INT": frozenset([int]),
    "NotCanonical": NotCanonical,
    "UUID": UUID,
    "ZERO_UUID": UUID(int=0),
    "exactly": exactly,
    "long_string": long_string,
    "pack": pack,
    "uvarint": uvarint,
}


def compile_encoder(layout: Layout) -> Encoder:
    namespace: dict[str, Any] = {}
    exec(compile(encoder_source(layout, namespace), f"<encoder of {layout.title}>", "exec"), namespace)
    encode: Encoder = namespace["encode"]
    return encode


def encoder_source(layout: Layout, namespace: dict[str, Any]) -> str:
    """The text; the objects that it uses go into `namespace`."""
    source = _EncoderSource(layout.flexible)
    source.line("out = []")
    source.struct(layout.fields, "value")
    source.line("return b''.join(out)")
    namespace.update(source.names, **_GLOBALS)
    return "\n".join(["def encode(value):", *source.lines])


class _EncoderSource:
    """Collects statements; `out` is the list that they write to, a different one inside each tag."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.depth = 1
        self.counter = 0
        self.run: list[tuple[str, str]] = []  # (struct code, expression) not written yet
        self.types: dict[str, list[str]] = {}  # type -> variables of the run that must have it
        self.out = "out"

    def line(self, text: str) -> None:
        self.flush()
        self.raw(text)

    def raw(self, text: str) -> None:
        """Adds a statement that writes nothing before the pending run."""
        self.lines.append("    " * self.depth + text)

    def new(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def constant(self, value: Any) -> str:
        name = f"C{len(self.names)}"
        self.names[name] = value
        return name

    def flush(self) -> None:
        if self.run:
            self.raw(f"{self.out}.append({self.packed()})")

    def packed(self, length: str = "", longer: str = "") -> str:
        """The expression that packs the run, followed by a compact length if there is one, mostly a byte."""
        self.check_types()
        run, self.run = self.run, []
        packs = self.pack(run)
        if not length:
            return packs
        if not run:
            return f"BYTES[{length}] if {length} < 128 else {longer}({length})"
        return f"{self.pack([*run, ('B', length)])} if {length} < 128 else {packs} + {longer}({length})"

    def check_types(self) -> None:
        types, self.types = self.types, {}
        checks = [
            f"not ({' is '.join(f'type({name})' for name in names)} is {type_})" for type_, names in types.items()
        ]
        if checks:
            self.raw(f"if {' or '.join(checks)}: raise NotCanonical")

    def pack(self, run: list[tuple[str, str]]) -> str:
        if all(text.isdecimal() for _, text in run):
            return repr(pack(">" + "".join(code for code, _ in run), *(int(text) for _, text in run)))
        packer = Struct(">" + "".join(code for code, _ in run))
        return f"{self.constant(packer.pack)}({', '.join(text for _, text in run)})"

    def struct(self, fields: tuple[LayoutField, ...], value: str) -> None:
        # A missing field is a KeyError; an additional one shows in the number of fields.
        self.raw(
            f"if len({value}) != {len(fields)}{'' if fields else f' or type({value}) is not dict'}: raise NotCanonical"
        )
        for field in fields:
            if field.tag is None:
                name = self.new()
                self.raw(f"{name} = {value}[{field.name!r}]")
                self.field(field, name)
        tagged = sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)
        if tagged:
            self.tags(tagged, value)
        elif self.flexible:
            self.run.append(("B", "0"))

    def tags(self, tagged: list[LayoutField], value: str) -> None:
        count, section = self.new(), self.new()
        self.line(f"{count} = 0")
        self.line(f"{section} = b''")
        for field in tagged:
            assert field.tag is not None
            content, inner, outer = self.new(), self.new(), self.out
            self.line(f"{content} = {value}[{field.name!r}]")
            self.line(f"if {content} != {_default_source(field)}:")
            self.depth += 1
            self.line(f"{inner} = []")
            self.out = inner
            self.field(field, content)
            self.flush()
            self.out = outer
            self.line(f"{inner} = b''.join({inner})")
            self.line(f"{section} += {uvarint(field.tag)!r} + uvarint(len({inner})) + {inner}")
            self.line(f"{count} += 1")
            self.depth -= 1
            # 0 == False and 1 == True: an int in place of a bool must not pass for the default.
            self.line(f"elif not exactly({content}, {_default_source(field)}): raise NotCanonical")
        self.run.append(("B", count))
        self.line(f"if {count}: {self.out}.append({section})")

    def field(self, field: LayoutField, name: str) -> None:
        if field.array:
            self.array(field, name)
        else:
            self.element(field, name, field.nullable)

    def element(self, field: LayoutField, name: str, nullable: bool) -> None:
        type_ = field.type
        if type_ == "struct":
            self.maybe_struct(field, name, nullable)
        elif type_ in ("string", "bytes", "records"):
            self.sized(field, name, nullable)
        else:
            self.types.setdefault(_TYPES.get(type_, "int"), []).append(name)
            # UUID.bytes is a property written in Python.
            self.run.append((CODES[type_], f"{name}.int.to_bytes(16)" if type_ == "uuid" else name))

    def maybe_struct(self, field: LayoutField, name: str, nullable: bool) -> None:
        if not nullable:
            self.struct(field.fields, name)
            return
        null = b"\xff" if field.tag is None else b"\x00"
        self.line(f"if {name} is None: {self.out}.append({null!r})")
        self.line("else:")
        self.depth += 1
        self.run.append(("B", "1"))
        self.struct(field.fields, name)
        self.flush()
        self.depth -= 1

    def sized(self, field: LayoutField, name: str, nullable: bool) -> None:
        string = field.type == "string"
        length = self.new()
        if nullable:
            self.raw(f"if {name} is None: {name} = b''; {length} = {0 if field.compact else -1}")
            self.raw("else:")
            self.depth += 1
        if string:
            self.raw(f"{name} = {name}.encode()")
        else:
            self.raw(f"if type({name}) is not bytes: raise NotCanonical")
        self.raw(f"{length} = len({name}){' + 1' if field.compact else ''}")
        if nullable:
            self.depth -= 1
        self.count(field, length, "h" if string else "i", "long_string" if string else "uvarint")
        self.line(f"{self.out}.append({name})")

    def count(self, field: LayoutField, length: str, classic: str, longer: str) -> None:
        """The length or count as it is written: compact ones have been increased by one already."""
        if field.compact:
            self.raw(f"{self.out}.append({self.packed(length, longer)})")
        else:
            self.run.append((classic, length))

    def array(self, field: LayoutField, name: str) -> None:
        length, item = self.new(), self.new()
        if field.nullable:
            self.raw(f"if {name} is None: {name} = []; {length} = {0 if field.compact else -1}")
            self.raw(f"elif type({name}) is list: {length} = len({name}){' + 1' if field.compact else ''}")
            self.raw("else: raise NotCanonical")
        else:
            self.raw(f"if type({name}) is not list: raise NotCanonical")
            self.raw(f"{length} = len({name}){' + 1' if field.compact else ''}")
        if field.type in _NUMBERS:
            self.numbers(field, name, length)
            return
        self.count(field, length, "i", "uvarint")
        self.line(f"for {item} in {name}:")
        self.depth += 1
        self.element(field, item, False)
        self.flush()
        self.depth -= 1

    def numbers(self, field: LayoutField, name: str, length: str) -> None:
        """A short array goes into one pack with its count and the run before it."""
        code = CODES[field.type]
        self.check_types()
        run = [*self.run, ("B" if field.compact else "i", length)]
        codes = "".join(code for code, _ in run)
        values = ", ".join(text for _, text in run)
        packers = self.constant([Struct(f">{codes}{count}{code}").pack for count in range(_SHORT)])
        # Unpacking an empty list into a call costs more than a check.
        empty = f"BYTES[{length}]" if run == [("B", length)] else f"{packers}[0]({values})"
        self.raw(f"if not {name}: {self.out}.append({empty})")
        # A bool packs as a number, but isn't one.
        self.raw(f"elif not INT.issuperset(map(type, {name})): raise NotCanonical")
        self.raw(f"elif len({name}) < {_SHORT}: {self.out}.append({packers}[len({name})]({values}, *{name}))")
        self.raw("else:")
        self.depth += 1
        self.count(field, length, "i", "uvarint")
        self.line(f"{self.out}.append(pack(f'>{{len({name})}}{code}', *{name}))")
        self.depth -= 1


def _default_source(field: LayoutField) -> str:
    """Source text that creates the default each time it runs."""
    return _display(field.default_value())


def _display(value: Any) -> str:
    if isinstance(value, UUID):
        assert not value.int, "all uuid defaults are zero"
        return "ZERO_UUID"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_display(item)}" for name, item in value.items()) + "}"
    return repr(value)
