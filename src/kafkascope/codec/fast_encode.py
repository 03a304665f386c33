"""A layout in, a compiled Python function out that encodes complete values: `encode(value)`.

The counterpart of `fast_decode`: every field must be there, of its exact type, and nothing else; anything other
raises, and the careful `write` then encodes the value or says what is wrong with it.
"""

from collections.abc import Callable
from struct import Struct, pack
from typing import Any
from uuid import UUID

from kafkascope.codec.parts import CODES, UUIDS, Surprise, default_source
from kafkascope.codec.write import uvarint
from kafkascope.schema.layout import Layout, LayoutField

Encoder = Callable[[dict[str, Any]], bytes]

# One-byte varints, ready made.
_BYTES = tuple(bytes([value]) for value in range(128))
_TYPES = {"bool": "bool", "uuid": "UUID", "float64": "float"}


def compile_encoder(layout: Layout) -> Encoder:
    source = _Source(layout.flexible)
    source.line("out = []; w = out.append")
    source.struct(layout.fields, "value")
    source.line("return b''.join(out)")
    namespace: dict[str, Any] = {
        **source.names,
        "Surprise": Surprise,
        "UUID": UUID,
        "V": _BYTES,
        "UUIDS": UUIDS,
        "pack": pack,
        "uvarint": uvarint,
    }
    text = "\n".join(["def encode(value):", *source.lines])
    exec(compile(text, f"<encoder of {layout.title}>", "exec"), namespace)
    encode: Encoder = namespace["encode"]
    return encode


class _Source:
    """Collects statements; `w` is the append of the list that they write to, a new one inside each tag."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.depth = 1
        self.counter = 0
        self.run: list[tuple[str, str]] = []  # (struct code, expression) not written yet
        self.types: dict[str, list[str]] = {}  # type -> variables of the run that must be of it
        self.sink = "w"

    def line(self, text: str) -> None:
        self.flush()
        self.raw(text)

    def raw(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def new(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def constant(self, value: Any) -> str:
        name = f"C{len(self.names)}"
        self.names[name] = value
        return name

    def flush(self) -> None:
        run, self.run = self.run, []
        types, self.types = self.types, {}
        if not run:
            return
        checks = [f"not ({' is '.join(f'type({name})' for name in names)} is {type_})" for type_, names in types.items()]
        if checks:
            self.raw(f"if {' or '.join(checks)}: raise Surprise")
        packer = Struct(">" + "".join(code for code, _ in run))
        self.raw(f"{self.sink}({self.constant(packer.pack)}({', '.join(text for _, text in run)}))")

    def struct(self, fields: tuple[LayoutField, ...], value: str) -> None:
        self.line(f"if len({value}) != {len(fields)}: raise Surprise")
        for field in fields:
            if field.tag is None:
                name = self.new()
                # Plain reads may stand before a pending run: they only name what it packs.
                self.raw(f"{name} = {value}[{field.name!r}]")
                self.field(field, name)
        if self.flexible:
            tagged = sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)
            if tagged:
                self.tags(tagged, value)
            else:
                self.run.append(("B", "0"))
        self.flush()

    def tags(self, tagged: list[LayoutField], value: str) -> None:
        pieces = self.new()
        self.line(f"{pieces} = []")
        for field in tagged:
            assert field.tag is not None
            content, inner, outer = self.new(), self.new(), self.sink
            self.line(f"{content} = {value}[{field.name!r}]")
            self.line(f"if {content} != {default_source(field)}:")
            self.depth += 1
            self.line(f"{inner} = []; {inner}w = {inner}.append")
            self.sink = f"{inner}w"
            self.field(field, content)
            self.flush()
            self.sink = outer
            self.line(f"{inner} = b''.join({inner})")
            self.line(f"{pieces}.append({uvarint(field.tag)!r} + uvarint(len({inner})) + {inner})")
            self.depth -= 1
            # 0 == False and 1 == True: an int where a bool belongs must not pass for the default.
            self.line(f"elif type({content}) is not type({default_source(field)}): raise Surprise")
        self.line(f"{self.sink}(V[len({pieces})])")
        self.line(f"if {pieces}: {self.sink}(b''.join({pieces}))")

    def field(self, field: LayoutField, name: str) -> None:
        if field.array:
            self.array(field, name)
        else:
            self.one(field, name, field.nullable)

    def one(self, field: LayoutField, name: str, nullable: bool) -> None:
        type_ = field.type
        if type_ == "struct":
            self.maybe_struct(field, name, nullable)
        elif type_ in ("string", "bytes", "records"):
            self.sized(field, name, nullable)
        else:
            self.types.setdefault(_TYPES.get(type_, "int"), []).append(name)
            self.run.append((CODES[type_], f"{name}.bytes" if type_ == "uuid" else name))

    def maybe_struct(self, field: LayoutField, name: str, nullable: bool) -> None:
        if not nullable:
            self.struct(field.fields, name)
            return
        null = b"\xff" if field.tag is None else b"\x00"
        self.line(f"if {name} is None: {self.sink}({null!r})")
        self.line("else:")
        self.depth += 1
        self.line(f"{self.sink}(b'\\x01')")
        self.struct(field.fields, name)
        self.depth -= 1

    def sized(self, field: LayoutField, name: str, nullable: bool) -> None:
        string = field.type == "string"
        classic = self.constant(Struct(">h" if string else ">i").pack)
        if nullable:
            null = b"\x00" if field.compact else b"\xff\xff" if string else b"\xff\xff\xff\xff"
            self.line(f"if {name} is None: {self.sink}({null!r})")
            self.line("else:")
            self.depth += 1
        if string:
            self.line(f"{name} = {name}.encode()")
        else:
            self.line(f"if type({name}) is not bytes: raise Surprise")
        length = self.new()
        self.line(f"{length} = len({name})")
        if string:
            self.line(f"if {length} > 32767: raise Surprise")
        if field.compact:
            self.line(f"{self.sink}(V[{length} + 1] + {name} if {length} < 127 else uvarint({length} + 1) + {name})")
        else:
            self.line(f"{self.sink}({classic}({length}))")
            self.line(f"{self.sink}({name})")
        if nullable:
            self.depth -= 1

    def array(self, field: LayoutField, name: str) -> None:
        if field.nullable:
            null = b"\x00" if field.compact else b"\xff\xff\xff\xff"
            self.line(f"if {name} is None: {self.sink}({null!r})")
            self.line("else:")
            self.depth += 1
        length, item = self.new(), self.new()
        self.line(f"if type({name}) is not list: raise Surprise")
        self.line(f"{length} = len({name})")
        if field.compact:
            self.line(f"{self.sink}(V[{length} + 1] if {length} < 127 else uvarint({length} + 1))")
        else:
            self.line(f"{self.sink}({self.constant(Struct('>i').pack)}({length}))")
        code = CODES.get(field.type)
        if code and field.type not in _TYPES:
            self.line(f"if True in {name} and any(type({item}) is not int for {item} in {name}): raise Surprise")
            self.line(f"if False in {name} and any(type({item}) is not int for {item} in {name}): raise Surprise")
            self.line(f"{self.sink}(pack(f'>{{{length}}}{code}', *{name}))")
        else:
            self.line(f"for {item} in {name}:")
            self.depth += 1
            self.one(field, item, False)
            self.flush()
            self.depth -= 1
        if field.nullable:
            self.depth -= 1
