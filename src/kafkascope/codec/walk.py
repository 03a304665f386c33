"""The careful decoder: reads a message field by field, with reasons and spans, and raises only `DecodeError`.

It accepts whatever Kafka's Java reader accepts, and notes each place where encoding the value again would make other
bytes (protocol note 18: non-minimal varints, bool 2, tags out of order…). The compiled decoder of `fast` reads the
well-formed rest and passes other input to this one.
"""

from struct import Struct
from typing import Any
from uuid import UUID

from kafkascope.codec.result import UNKNOWN_TAGS, Span
from kafkascope.codec.value_cost import (
    BYTES_COST,
    CACHED_INTS,
    FLOAT_COST,
    LIST_COST,
    NUMBER_COST,
    SLOT_COST,
    STRING_COST,
    UNKNOWN_TAG_COST,
    UUID_COST,
    WIDE_LETTER_COST,
    allowance,
    cost_of,
)
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_REASONS, MAX_SPANS, MAX_STRING_BYTES, MAX_VARINT_BYTES
from kafkascope.schema.layouts.layout import FIXED_SIZES, Layout, LayoutField

_NUMBERS = {
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "uint16": Struct(">H"),
    "int32": Struct(">i"),
    "uint32": Struct(">I"),
    "int64": Struct(">q"),
    "float64": Struct(">d"),
}
# int8 numbers below those that always exist in CPython.
_OWN_INT8 = bytes(range(128, 251))


class Walk:
    """One pass over one message; `position` is where the next byte is read."""

    __slots__ = (
        "allowed", "costs", "data", "keep_spans", "layout", "left", "more_reasons", "position", "reasons", "spans",
    )  # fmt: skip

    def __init__(self, layout: Layout, data: bytes, position: int = 0, *, spans: bool = False) -> None:
        self.layout = layout
        self.data = data
        self.position = position
        self.keep_spans = spans
        self.reasons: list[str] = []
        self.more_reasons = 0
        self.spans: list[Span] = []
        self.allowed = self.left = allowance(len(data) - position)
        self.costs: dict[int, int] = {}  # of a struct's fields, by the identity of their tuple

    def message(self, *, whole: bool = True) -> dict[str, Any]:
        """The body; with `whole`, bytes after it are a reason against exactness instead of another reader's."""
        value = self._struct(self.layout.fields, "")
        left = len(self.data) - self.position
        if whole and left:
            noun = "byte" if left == 1 else "bytes"
            self._reason(f"{left} {noun} after the message (offset {self.position})")
            self._span("#trailing", self.position, len(self.data), "bytes")
        return value

    def fail(self, path: str, problem: str, offset: int | None = None) -> DecodeError:
        where = f", {path}" if path else ""
        at = self.position if offset is None else offset
        return DecodeError(f"{self.layout.title}{where}: {problem} (offset {at})")

    def _inexact(self, path: str, problem: str, offset: int) -> None:
        self._reason(f"{path or 'body'}: {problem} (offset {offset})")

    def _reason(self, text: str) -> None:
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(text)
        else:
            self.more_reasons += 1

    def all_reasons(self) -> tuple[str, ...]:
        return (*self.reasons, f"and {self.more_reasons} more") if self.more_reasons else tuple(self.reasons)

    def _span(self, path: str, start: int, end: int, type_: str) -> None:
        if self.keep_spans:
            if len(self.spans) >= MAX_SPANS:
                raise self.fail(
                    path, f"more than {MAX_SPANS} spans; decode without them, on the command line with --json", start
                )
            self.spans.append(Span(path, start, end, type_))

    def _charge(self, cost: int, path: str) -> None:
        """Charges for an object before it is created."""
        self.left -= cost
        if self.left < 0:
            problem = f"the message takes more than {self.allowed} bytes as Python values"
            raise self.fail(path, f"{problem}; decode_columns can read it if it is well-formed")

    def _cost_of(self, fields: tuple[LayoutField, ...]) -> int:
        cost = self.costs.get(id(fields))
        if cost is None:
            cost = self.costs[id(fields)] = cost_of(fields)
        return cost

    def _need(self, count: int, path: str, label: str) -> int:
        """Steps over `count` bytes and returns where they start."""
        start = self.position
        if count > len(self.data) - start:
            raise self.fail(path, f"{label} needs {count} bytes, {len(self.data) - start} left")
        self.position = start + count
        return start

    def _struct(self, fields: tuple[LayoutField, ...], path: str) -> dict[str, Any]:
        self._charge(self._cost_of(fields), path)
        value: dict[str, Any] = {}
        prefix = f"{path}." if path else ""
        tagged = {}
        for field in fields:
            if field.tag is None:
                value[field.name] = self._field(field, prefix + field.name)
            else:
                tagged[field.tag] = field
                value[field.name] = None  # keeps the definition's order; read or defaulted below
        if self.layout.flexible:
            self._tags(tagged, value, path)
        return value

    def _tags(self, tagged: dict[int, LayoutField], value: dict[str, Any], path: str) -> None:
        prefix = f"{path}." if path else ""
        count = self._varint(f"{path}#tags", "tag count")
        if count < 0:
            raise self.fail(f"{path}#tags", f"{count} tags")
        if count * 2 > len(self.data) - self.position:
            raise self.fail(
                f"{path}#tags", f"{count} tags need {2 * count} bytes, {len(self.data) - self.position} left"
            )
        unknown: list[dict[str, Any]] = []
        seen: set[int] = set()  # known ones only
        last = -1
        for _ in range(count):
            at = self.position
            number = self._varint(f"{path}#tag", "tag")
            if number <= last:
                how = "repeated" if number == last or number in seen else f"after tag {last}"
                self._inexact(path, f"tag {number} is {how}", at)
            last = max(last, number)
            field = tagged.get(number)
            name = prefix + (field.name if field else f"tag{number & 0xFFFFFFFF}")
            size = self._varint(f"{name}#size", "tag size")
            start = self.position
            if field is None:
                if not 0 <= size <= len(self.data) - start:
                    raise self.fail(name, f"size {size} of tag {number}, {len(self.data) - start} bytes left")
                self.position += size
                self._charge(UNKNOWN_TAG_COST + size, name)
                unknown.append({"tag": number & 0xFFFFFFFF, "data": self.data[start : self.position]})
                self._span(name, start, self.position, "bytes")
                continue
            seen.add(number)
            content = self._field(field, name)
            if self.position - start != size:
                # Java continues after the content, whatever the size.
                self._inexact(name, f"tag size is {size}, its content takes {self.position - start}", start)
            value[field.name] = content
            if content == field.default_value() and not (type(content) is float and content != content):
                self._inexact(name, f"tag {number} holds its default, which is not written", start)
        for number, field in tagged.items():
            if number not in seen:
                value[field.name] = field.default_value()
        if unknown:
            value[UNKNOWN_TAGS] = unknown

    def _field(self, field: LayoutField, path: str) -> Any:
        if field.array:
            return self._array(field, path)
        return self._value(field, path, field.nullable)

    def _array(self, field: LayoutField, path: str) -> list[Any] | None:
        count = self._count(field, f"{path}#count", "int32", "count")
        if count is None:
            return None
        left = len(self.data) - self.position
        if count * field.element_minimum > left:
            raise self.fail(path, f"count {count} needs {count * field.element_minimum} bytes, {left} left")
        if field.type in FIXED_SIZES and not self.keep_spans and field.type not in ("bool", "uuid"):
            code = _NUMBERS[field.type].format[-1]
            start = self._need(count * FIXED_SIZES[field.type], path, f"count {count}")
            raw = memoryview(self.data)[start : self.position]
            own = count if field.type != "int8" else count - len(bytes(raw).translate(None, _OWN_INT8))
            self._charge(LIST_COST + count * SLOT_COST + own * NUMBER_COST, path)
            return list(Struct(f">{count}{code}").unpack_from(self.data, start))
        each = SLOT_COST + (self._cost_of(field.fields) if field.type == "struct" else 0)
        # Refuse too many before creating the first.
        self._charge(LIST_COST + count * each, path)
        self.left += count * (each - SLOT_COST)
        return [self._value(field, f"{path}[{index}]", False) for index in range(count)]

    def _value(self, field: LayoutField, path: str, nullable: bool) -> Any:
        type_ = field.type
        if type_ == "struct":
            return self._maybe_struct(field, path, nullable)
        if type_ == "string":
            return self._string(field, path, nullable)
        if type_ in ("bytes", "records"):
            return self._bytes(field, path, nullable)
        start = self._need(FIXED_SIZES[type_], path, type_)
        self._span(path, start, self.position, type_)
        if type_ == "bool":
            if self.data[start] > 1:
                self._inexact(path, f"bool is {self.data[start]}, written as 1", start)
            return self.data[start] != 0
        if type_ == "uuid":
            self._charge(UUID_COST, path)
            return UUID(bytes=self.data[start : self.position])
        number = _NUMBERS[type_].unpack_from(self.data, start)[0]
        if type_ == "float64" or number not in CACHED_INTS:
            self._charge(FLOAT_COST if type_ == "float64" else NUMBER_COST, path)
        if number != number and self.data[start : self.position] != _NUMBERS[type_].pack(number):
            self._inexact(path, "a NaN with a payload", start)
        return number

    def _maybe_struct(self, field: LayoutField, path: str, nullable: bool) -> dict[str, Any] | None:
        if nullable and not self._present(field, path):
            return None
        return self._struct(field.fields, path)

    def _present(self, field: LayoutField, path: str) -> bool:
        """Precedes a nullable struct: an int8 of -1 or 1, but inside a tag an unsigned varint of 0 or 1."""
        start = self.position
        if field.tag is not None:
            present = self._varint(f"{path}#present", "presence")
            if present > 1:
                self._inexact(path, f"presence is {present}, written as 1", start)
            return present > 0
        self._need(1, path, "presence byte")
        self._span(f"{path}#present", start, start + 1, "int8")
        present = self.data[start]
        if present not in (1, 0xFF):
            # Java takes any negative byte for null and any other for a struct.
            self._inexact(path, f"presence byte is {present}, written as {'-1' if present > 127 else '1'}", start)
        return present < 128

    def _string(self, field: LayoutField, path: str, nullable: bool) -> str | None:
        length = self._length(field, path, nullable, "int16")
        if length is None:
            return None
        if length > MAX_STRING_BYTES:
            raise self.fail(path, f"string of {length} bytes; Kafka's limit is {MAX_STRING_BYTES}")
        start = self._need(length, path, "string")
        self._span(path, start, self.position, "string")
        raw = self.data[start : self.position]
        if raw:
            self._charge(STRING_COST + length * (1 if raw.isascii() else WIDE_LETTER_COST), path)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self._inexact(path, "invalid UTF-8, shown with replacement characters", start)
            return raw.decode(errors="replace")

    def _bytes(self, field: LayoutField, path: str, nullable: bool) -> bytes | None:
        length = self._length(field, path, nullable, "int32")
        if length is None:
            return None
        start = self._need(length, path, field.type)
        self._span(path, start, self.position, field.type)
        if length:
            self._charge(BYTES_COST + length, path)
        return self.data[start : self.position]

    def _length(self, field: LayoutField, path: str, nullable: bool, classic: str) -> int | None:
        return self._count(field, f"{path}#length", classic, "length", nullable and not field.array)

    def _count(
        self, field: LayoutField, path: str, classic: str, label: str, nullable: bool | None = None
    ) -> int | None:
        """A count or length in either encoding; None is null."""
        nullable = field.nullable if nullable is None else nullable
        start = self.position
        if field.compact:
            count = self._varint(path, f"compact {label}") - 1
            count = count if count >= -(1 << 31) else (1 << 31) - 1
        else:
            size = FIXED_SIZES[classic]
            self._need(size, path, label)
            self._span(path, start, self.position, classic)
            count = _NUMBERS[classic].unpack_from(self.data, start)[0]
        if count >= 0:
            return count
        if not nullable:
            raise self.fail(path.partition("#")[0], f"{label} {count}: null where null is not allowed", start)
        if count != -1:
            self._inexact(path.partition("#")[0], f"{label} {count}, written as -1", start)
        return None

    def _varint(self, path: str, label: str) -> int:
        """An unsigned varint (KIP-482)."""
        start = self.position
        value = shift = 0
        for index in range(MAX_VARINT_BYTES):
            at = start + index
            if at >= len(self.data):
                raise self.fail(path.partition("#")[0], f"{label} is cut off", start)
            byte = self.data[at]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            raise self.fail(path.partition("#")[0], f"{label} is longer than {MAX_VARINT_BYTES} bytes", start)
        self.position = start + index + 1
        if value > 0x7FFFFFFF:
            # Java reads an int32: larger numbers wrap around, below zero.
            wrapped = (value & 0xFFFFFFFF) - (1 << 32 if value & 0x80000000 else 0)
            self._inexact(path.partition("#")[0], f"{label} {value} doesn't fit int32", start)
            value = wrapped
        if index and byte == 0:
            needed = max(1, -(-value.bit_length() // 7))
            self._inexact(path.partition("#")[0], f"{label} takes {index + 1} bytes, {needed} would do", start)
        self._span(path, start, self.position, "uvarint")
        return value
