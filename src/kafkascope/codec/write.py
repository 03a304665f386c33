"""The careful encoder: missing fields take their defaults, and anything else that is wrong raises `EncodeError` with
its path. The compiled encoder of `fast` writes complete values and passes other input to this one."""

from collections.abc import Mapping
from struct import Struct
from struct import error as StructError
from typing import Any
from uuid import UUID

from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.errors import EncodeError
from kafkascope.formatting import close_names, did_you_mean
from kafkascope.limits import MAX_STRING_BYTES
from kafkascope.schema.layouts.layout import Layout, LayoutField

_NUMBERS = {
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "uint16": Struct(">H"),
    "int32": Struct(">i"),
    "uint32": Struct(">I"),
    "int64": Struct(">q"),
}
_FLOAT = Struct(">d")


def uvarint(value: int) -> bytes:
    """An unsigned varint (KIP-482) in the shortest form."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Write:
    """One pass over one value."""

    __slots__ = ("layout", "out")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.out = bytearray()

    def message(self, value: Any) -> bytes:
        self._struct(self.layout.fields, value, "")
        return bytes(self.out)

    def fail(self, path: str, problem: str) -> EncodeError:
        where = f", {path}" if path else ""
        return EncodeError(f"{self.layout.title}{where}: {problem}")

    def _struct(self, fields: tuple[LayoutField, ...], value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise self.fail(path, f"expected an object, got {shown(value)}")
        prefix = f"{path}." if path else ""
        self._check_names(fields, value, prefix)
        tagged: list[tuple[int, bytes]] = []
        for field in fields:
            present = field.name in value
            content = value[field.name] if present else field.default_value()
            if field.tag is None:
                self._field(field, content, prefix + field.name)
            elif present and not self._is_default(field, content, prefix + field.name):
                tagged.append((field.tag, self._apart(field, content, prefix + field.name)))
        if self.layout.flexible:
            self._tags(tagged, value.get(UNKNOWN_TAGS) or [], fields, path)

    def _check_names(self, fields: tuple[LayoutField, ...], value: Mapping[str, Any], prefix: str) -> None:
        names = {field.name for field in fields}
        for name in value:
            if name in names or (name == UNKNOWN_TAGS and (self.layout.flexible or not value[name])):
                continue
            path = f"{prefix}{name}"
            if name == UNKNOWN_TAGS:
                raise self.fail(path, f"version {self.layout.version} isn't flexible and has no tags")
            raise self.fail(path, self._why_unknown(fields, str(name), prefix))

    def _why_unknown(self, fields: tuple[LayoutField, ...], name: str, prefix: str) -> str:
        for field in fields:
            if name in field.aliases:
                return f"no such field; it is called {field.name} here"
        for versions in _elsewhere(self.layout, prefix, name):
            return f"no such field in version {self.layout.version}; it is in {versions}"
        return f"no such field{did_you_mean(close_names(name, [field.name for field in fields]))}"

    def _is_default(self, field: LayoutField, content: Any, path: str) -> bool:
        """If its bytes equal the default's: a struct may be incomplete, a list may be a tuple, a number an enum."""
        default = field.default_value()
        if content is None or default is None:
            return content is default
        return self._apart(field, content, path) == self._apart(field, default, path)

    def _apart(self, field: LayoutField, content: Any, path: str) -> bytes:
        outer, self.out = self.out, bytearray()
        self._field(field, content, path)
        inner, self.out = self.out, outer
        return bytes(inner)

    def _tags(self, tagged: list[tuple[int, bytes]], unknown: Any, fields: tuple[LayoutField, ...], path: str) -> None:
        where = f"{path}.{UNKNOWN_TAGS}" if path else UNKNOWN_TAGS
        field_tags = {field.tag for field in fields}
        if not isinstance(unknown, list):
            raise self.fail(where, f"expected a list, got {shown(unknown)}")
        taken: set[int] = set()
        for index, item in enumerate(unknown):
            match item:
                case {"tag": int(number), "data": bytes(data)} if number >= 0 and not isinstance(number, bool):
                    pass
                case _:
                    raise self.fail(f"{where}[{index}]", "expected an object with `tag` and `data`")
            if number in field_tags or number in taken or number > 0x7FFFFFFF:
                why = "is repeated" if number in taken else "doesn't fit int32"
                why = "is a field of this version" if number in field_tags else why
                raise self.fail(f"{where}[{index}].tag", f"tag {number_text(number)} {why}")
            taken.add(number)
            tagged.append((number, data))
        self.out += uvarint(len(tagged))
        # Ascending over known and unknown tags alike, as Java merges them (KIP-482).
        for number, data in sorted(tagged):
            self.out += uvarint(number)
            self.out += uvarint(len(data))
            self.out += data

    def _field(self, field: LayoutField, value: Any, path: str) -> None:
        if not field.array:
            self._value(field, value, path, field.nullable)
            return
        if value is None:
            self._null(field, path, field.nullable)
            return
        if not isinstance(value, (list, tuple)):
            raise self.fail(path, f"expected a list of {field.type}, got {shown(value)}")
        self._count(field, len(value), ">i")
        for index, item in enumerate(value):
            self._value(field, item, f"{path}[{index}]", False)

    def _null(self, field: LayoutField, path: str, nullable: bool, classic: str = ">i") -> None:
        if not nullable:
            raise self.fail(path, f"null, which version {self.layout.version} doesn't allow")
        self._count(field, -1, classic)

    def _count(self, field: LayoutField, count: int, classic: str) -> None:
        self.out += uvarint(count + 1) if field.compact else Struct(classic).pack(count)

    def _value(self, field: LayoutField, value: Any, path: str, nullable: bool) -> None:
        type_ = field.type
        if type_ == "struct":
            self._maybe_struct(field, value, path, nullable)
        elif type_ == "string":
            self._string(field, value, path, nullable)
        elif type_ in ("bytes", "records"):
            if value is None:
                self._null(field, path, nullable)
            elif isinstance(value, (bytes, bytearray, memoryview)):
                self._count(field, len(value), ">i")
                self.out += value
            else:
                raise self.fail(path, f"expected bytes, got {shown(value)}")
        elif type_ == "bool":
            if not isinstance(value, bool):
                raise self.fail(path, f"expected true or false, got {shown(value)}")
            self.out.append(value)
        elif type_ == "uuid":
            if not isinstance(value, UUID):
                raise self.fail(path, f"expected a uuid, got {shown(value)}")
            self.out += value.bytes
        elif type_ == "float64":
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise self.fail(path, f"expected float64, got {shown(value)}")
            try:
                self.out += _FLOAT.pack(value)
            except (OverflowError, StructError):
                raise self.fail(path, "a number that doesn't fit float64") from None
        else:
            self._number(type_, value, path)

    def _number(self, type_: str, value: Any, path: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fail(path, f"expected {type_}, got {shown(value)}")
        try:
            self.out += _NUMBERS[type_].pack(value)
        except StructError:
            raise self.fail(path, f"{number_text(value)} doesn't fit {type_}") from None

    def _maybe_struct(self, field: LayoutField, value: Any, path: str, nullable: bool) -> None:
        if value is None and not nullable:
            raise self.fail(path, f"null, which version {self.layout.version} doesn't allow")
        if nullable:
            # An int8 of -1 or 1, but inside a tag an unsigned varint of 0 or 1.
            null = b"\xff" if field.tag is None else b"\x00"
            self.out += null if value is None else b"\x01"
        if value is not None:
            self._struct(field.fields, value, path)

    def _string(self, field: LayoutField, value: Any, path: str, nullable: bool) -> None:
        if value is None:
            self._null(field, path, nullable, ">h")
            return
        if not isinstance(value, str):
            raise self.fail(path, f"expected a string, got {shown(value)}")
        try:
            raw = value.encode()
        except UnicodeEncodeError:
            raise self.fail(path, "a lone surrogate, which UTF-8 can't encode") from None
        if len(raw) > MAX_STRING_BYTES:
            raise self.fail(path, f"string of {len(raw)} bytes; Kafka's limit is {MAX_STRING_BYTES}")
        self._count(field, len(raw), ">h")
        self.out += raw


def shown(value: Any) -> str:
    """Only the type, since values may be secret."""
    if value is None:
        return "null"
    return f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"


def number_text(value: int) -> str:
    """A number that doesn't fit its type; thousands of digits don't fit a line, and Python refuses to print them."""
    return str(value) if value.bit_length() <= 64 else "a number of more than 64 bits"


def _elsewhere(layout: Layout, prefix: str, name: str) -> list[str]:
    """The versions in which the message has this field at this place."""
    fields = [field for block in layout.message.blocks for field in block.fields]
    for part in prefix.split(".")[:-1]:
        part_name = part.partition("[")[0].lower()
        fields = [child for field in fields if field.name.lower() == part_name for child in field.fields]
    return [
        f"versions {f.versions.text}"
        for f in fields
        if layout.version not in f.versions and name.lower() in {f.name.lower(), *(w.lower() for w, _ in f.was)}
    ]
