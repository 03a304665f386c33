"""Converts values to Kafka's JSON form, as its own JSON converters write it, and back.

camelCase names, base64 bytes, uuids as unpadded url-safe base64, tagged fields omitted at their default. Two things are
missing in Java's JSON: record data is base64 under its own name (Java writes nothing there), and unknown tags are under
`_unknownTaggedFields`. Reading also accepts the definitions' spelling, earlier names and dashed uuids.
"""

import math
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any, Literal, cast
from uuid import UUID

from kafkascope.codec.not_canonical import NotCanonical
from kafkascope.codec.other_versions import says_nothing
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.errors import EncodeError
from kafkascope.schema.layouts.layout import Layout, LayoutField, layout
from kafkascope.schema.model import Field

# JSON has no numbers for these; Jackson writes these strings.
_NOT_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BOUNDS = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
_TYPES = {"bool": bool, "string": str, "bytes": bytes, "records": bytes, "uuid": UUID, "float64": float}
# Raised for a value that isn't as `decode` makes it.
_LEFT_TO_CAREFUL = (NotCanonical, KeyError, TypeError, AttributeError)


def to_json(
    name: str,
    version: int,
    value: Mapping[str, Any],
    release: str | None = None,
    *,
    records: Literal["base64", "size"] = "base64",
) -> dict[str, Any]:
    """A value in Kafka's JSON form: whatever `encode` accepts, missing fields at their defaults; raises `EncodeError`
    for other values. `records="size"` writes `recordsSizeInBytes`, as a request log does."""
    message_layout = layout(name, version, release)
    try:
        return _ToJson(message_layout.flexible, records == "size").struct(message_layout.fields, value)
    except _LEFT_TO_CAREFUL:
        whole = _as_decoded(name, version, value, release)
    return _ToJson(message_layout.flexible, records == "size").struct(message_layout.fields, whole)


def _as_decoded(name: str, version: int, value: Mapping[str, Any], release: str | None) -> dict[str, Any]:
    """For a value that isn't as `decode` makes it: `encode` reports what is wrong, or fills in what is missing."""
    from kafkascope.codec.message import decode, encode

    return decode(name, version, encode(name, version, cast("dict[str, Any]", value), release), release).value


class _ToJson:
    """One pass over one value as `decode` makes it; any other raises. It accepts decoded values that `encode` would
    refuse: a string may have grown by its replacement characters, a tag may be repeated."""

    __slots__ = ("flexible", "sizes")

    def __init__(self, flexible: bool, sizes: bool) -> None:
        self.flexible = flexible
        self.sizes = sizes

    def struct(self, fields: tuple[LayoutField, ...], value: Mapping[str, Any]) -> dict[str, Any]:
        written: dict[str, Any] = {}
        shown: Any
        for field in fields:
            content = value[field.name]
            if field.type == "records" and self.sizes and type(content) is bytes:
                written[f"{field.name}SizeInBytes"] = len(content)
                continue
            # Most fields are single numbers and strings: convert those without a call.
            if type(content) is int and not field.array:
                low, high = _BOUNDS[field.type]
                if not low <= content <= high:
                    raise NotCanonical
                shown = content
            elif type(content) is str and field.type == "string" and not field.array:
                shown = content
            else:
                shown = self._field(field, content)
            if field.tag is None or content != field.default_value():
                written[field.name] = shown
        if len(value) > len(fields):
            self._unknown_tags(fields, value, written)
        return written

    def _unknown_tags(self, fields: tuple[LayoutField, ...], value: Mapping[str, Any], written: dict[str, Any]) -> None:
        tags = value[UNKNOWN_TAGS]
        if len(value) > len(fields) + 1 or (tags and not self.flexible):
            raise NotCanonical
        if any(type(tag["tag"]) is not int for tag in tags):
            raise NotCanonical
        if tags:
            written[UNKNOWN_TAGS] = [{"tag": tag["tag"], "data": b64encode(tag["data"]).decode()} for tag in tags]

    def _field(self, field: LayoutField, content: Any) -> Any:
        if content is None:
            if field.nullable:
                return None
            raise NotCanonical
        if not field.array:
            return self._value(field, content)
        if type(content) is not list:
            raise NotCanonical
        return [self._value(field, item) for item in content]

    def _value(self, field: LayoutField, content: Any) -> Any:
        type_ = field.type
        if type_ == "struct":
            return self.struct(field.fields, content)
        bounds = _BOUNDS.get(type_)
        if bounds is not None:
            if type(content) is int and bounds[0] <= content <= bounds[1]:
                return content
            raise NotCanonical
        if not _is_exactly(content, _TYPES[type_]):
            raise NotCanonical
        if type_ in ("bytes", "records"):
            return b64encode(content).decode()
        if type_ == "uuid":
            return uuid_text(content)
        if type_ == "float64" and not math.isfinite(content):
            return next(word for word, number in _NOT_NUMBERS.items() if repr(number) == repr(content))
        return content


def _is_exactly(content: Any, type_: type) -> bool:
    return type(content) is type_


def uuid_text(value: UUID) -> str:
    """Kafka's form of a uuid: 22 characters of url-safe base64."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_uuid(text: str) -> UUID:
    """Either form; raises ValueError for other text."""
    # UUID() itself takes dashes anywhere, signs and braces.
    if re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        return UUID(text)
    if len(text) != 22:
        raise ValueError(text)
    return UUID(bytes=b64decode(text.replace("-", "+").replace("_", "/") + "==", validate=True))


def from_json(name: str, version: int, value: Any, release: str | None = None) -> dict[str, Any]:
    """A value for `encode` from Kafka's JSON form; `EncodeError` names the path of a wrong one. Without `release`, a
    field that only other versions have is dropped if it's null or at its default, as in Java."""
    return _Read(layout(name, version, release)).message(value)


class _Read:
    """One pass over one JSON value. Missing fields stay missing: `encode` knows their defaults."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def message(self, value: Any) -> dict[str, Any]:
        blocks = self.layout.message.blocks
        every = tuple(field for block in blocks if block.releases is None for field in block.fields)
        return self._struct(self.layout.fields, every, value, "")

    def fail(self, path: str, problem: str) -> EncodeError:
        where = f", {path}" if path else ""
        return EncodeError(f"{self.layout.title}{where}: {problem}")

    def _struct(
        self, fields: tuple[LayoutField, ...], every: tuple[Field, ...], value: Any, path: str
    ) -> dict[str, Any]:
        """`every` are the fields that any version has here."""
        if not isinstance(value, dict):
            raise self.fail(path, f"expected an object, got {_kind(value)}")
        prefix = f"{path}." if path else ""
        spellings = {spelling: field for field in fields for spelling in reversed((field.name, *field.aliases))}
        # A current name takes precedence over another field's earlier one (StreamsGroupHeartbeat's
        # AcceptableRecoveryLag).
        spellings |= {field.kafka_name: field for field in fields} | {field.name: field for field in fields}
        read: dict[str, Any] = {}
        for name, content in value.items():
            field = spellings.get(name)
            if field is None:
                if name == UNKNOWN_TAGS:
                    read[name] = self._unknown_tags(content, f"{prefix}{name}")
                    continue
                self._no_size_alone(name, fields, f"{prefix}{name}")
                if self.layout.release is None and says_nothing(name, content, every):
                    continue
                read[name] = content  # `encode` reports the unknown field
                continue
            if field.name in read:
                raise self.fail(f"{prefix}{name}", f"{field.name} occurs twice, under two of its names")
            read[field.name] = self._field(field, content, f"{prefix}{name}")
        return read

    def _no_size_alone(self, name: str, fields: tuple[LayoutField, ...], path: str) -> None:
        if any(field.type == "records" and name == f"{field.name}SizeInBytes" for field in fields):
            raise self.fail(path, "a request log omits record data; pass the records as base64")

    def _unknown_tags(self, content: Any, path: str) -> list[dict[str, Any]]:
        if not isinstance(content, list):
            raise self.fail(path, f"expected a list, got {_kind(content)}")
        tags = []
        for index, item in enumerate(content):
            match item:
                case {"tag": int(number), "data": str(data)} if not isinstance(number, bool):
                    tags.append({"tag": number, "data": self._base64(data, f"{path}[{index}].data")})
                case _:
                    raise self.fail(f"{path}[{index}]", "expected an object with `tag` and base64 `data`")
        return tags

    def _field(self, field: LayoutField, content: Any, path: str) -> Any:
        if content is None:
            return None
        if not field.array:
            return self._value(field, content, path)
        if not isinstance(content, list):
            raise self.fail(path, f"expected a list of {field.type}, got {_kind(content)}")
        return [self._value(field, item, f"{path}[{index}]") for index, item in enumerate(content)]

    def _value(self, field: LayoutField, content: Any, path: str) -> Any:
        match field.type:
            case "struct":
                return self._struct(field.fields, field.source.fields, content, path)
            case "bytes" | "records" if isinstance(content, str):
                return self._base64(content, path)
            case "uuid" if isinstance(content, str):
                try:
                    return parse_uuid(content)
                except ValueError:
                    raise self.fail(path, "not a uuid; expected 22 characters of base64 or 36 with dashes") from None
            case "float64" if isinstance(content, str) and content in _NOT_NUMBERS:
                return _NOT_NUMBERS[content]
            case "bool" if not isinstance(content, bool):
                raise self.fail(path, f"expected true or false, got {_kind(content)}")
            case "string" if not isinstance(content, str):
                raise self.fail(path, f"expected a string, got {_kind(content)}")
            case "bytes" | "records" | "uuid":
                raise self.fail(path, f"expected {field.type} as text, got {_kind(content)}")
            case "float64" if isinstance(content, bool) or not isinstance(content, (int, float)):
                raise self.fail(path, f"expected float64, got {_kind(content)}")
            case "int8" | "int16" | "uint16" | "int32" | "uint32" | "int64" if type(content) is not int:
                raise self.fail(path, f"expected {field.type}, got {_kind(content)}")
        return content

    def _base64(self, content: str, path: str) -> bytes:
        try:
            return b64decode(content, validate=True)
        except (Base64Error, ValueError):
            raise self.fail(path, "not base64") from None


def _kind(value: Any) -> str:
    """A JSON value's type, never its content."""
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number with a fraction" if isinstance(value, float) else "a number")
