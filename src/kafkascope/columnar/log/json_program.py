"""Compiles a message's layout to the program by which `json_machine` writes it: operations, each with the text that
comes before its value. None for a layout that only the careful path writes."""

import json
from dataclasses import dataclass
from functools import cache, lru_cache
from struct import Struct

import numpy as np
import numpy.typing as npt

from kafkascope.columnar.log import json_machine as ops
from kafkascope.columnar.log.text import SLACK
from kafkascope.columnar.secrets import Care, care_of, open_settings
from kafkascope.limits import MAX_STRING_BYTES
from kafkascope.schema.layouts.layout import LayoutField, layout

_NUMBERS = {
    "int8": (ops.INT8, ">b"),
    "int16": (ops.JSON_INT16, ">h"),
    "uint16": (ops.UINT16, ">H"),
    "int32": (ops.INT32, ">i"),
    "uint32": (ops.UINT32, ">I"),
    "int64": (ops.INT64, ">q"),
    "bool": (ops.JSON_BOOL, ">?"),
}
_MOST_BYTES = 0x7FFFFFFF
_CONFIG = "ConfigRecord"
_HASH_START, _HASH_PRIME, _64_BITS = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
# Refused by each byte of a presence but 1.
_ABSENT_INT8, _ABSENT_TAG = 0xFF, 0


class _NotWritten(Exception):
    """A field that only the careful path writes."""


@dataclass(frozen=True, slots=True, eq=False)
class JsonProgram:
    """`address` is that of its first operation. `kept` holds the memory that the words point to."""

    address: int
    depth: int
    kept: tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]


@lru_cache(maxsize=1024)
def json_program(name: str, version: int) -> JsonProgram | None:
    """For the newest release that has the version."""
    known = layout(name, version)
    build = _Build(known.message.name, known.flexible)
    try:
        build.message(known.fields)
    except _NotWritten:
        return None
    build.tag_fields()
    return build.linked()


class _Build:
    """Words that are places in the program, in the text or among the tags are lists of one number until `linked`."""

    def __init__(self, message: str, flexible: bool) -> None:
        self._message = message
        self._flexible = flexible
        self._waiting = ""
        self._texts = bytearray()
        self._operations: list[list[int]] = []
        self._places: list[tuple[int, int, int]] = []  # operation, its word, the operation that it points to
        self._sections: list[tuple[int, list[tuple[LayoutField, tuple[str, ...]]]]] = []
        self._tags: list[tuple[int, list[tuple[int, int, bytes]]]] = []
        self._top: set[int] = set()
        self._depth = 0
        self.depth = 0

    def text(self, text: str) -> None:
        self._waiting += text

    def operation(self, number: int, *needs: int) -> int:
        text, self._waiting = self._waiting.encode("ascii"), ""
        words = [number, len(self._texts), len(text), *needs]
        self._texts += text
        self._operations.append(words + [0] * (ops.JSON_OPERATION - len(words)))
        return len(self._operations) - 1

    def message(self, fields: tuple[LayoutField, ...]) -> None:
        self.struct(fields, ())
        self.operation(ops.JSON_END)
        tagged = [field for field in fields if field.tag is not None]
        # Without a field before them nobody knows whether a tag needs a comma.
        if not tagged or self._is_in_order(fields) or fields[0].tag is not None or len(tagged) > ops.MOST_TAGS:
            return
        section = next(at for at, words in enumerate(self._operations) if words[0] == ops.JSON_TAGS and at in self._top)
        self._places.append((section, ops.ORDERED, len(self._operations)))
        known: list[tuple[int, int, bytes]] = []
        self.text("{")
        for index, field in enumerate(fields):
            if field.tag is None:
                self.text(f"{', ' if index else ''}{json.dumps(field.name)}: ")
                self._field(field, ())
                continue
            tag = self.operation(ops.TAGGED, len(known))
            self.text(f", {json.dumps(field.name)}: ")
            self._field(field, ())
            end = self.operation(ops.RESTORE, len(known))
            self._places.append((tag, ops.JSON_SKIP, end + 1))
            known.append((field.tag, 0, _default_bytes(field)))
        self.operation(ops.AFTER_TAGS)
        self.text("}")
        self.operation(ops.JSON_END)
        self._tags.append((section, known))

    @staticmethod
    def _is_in_order(fields: tuple[LayoutField, ...]) -> bool:
        """Whether JSON has the tags where the wire has them: after all others, by number."""
        return list(fields) == sorted(fields, key=lambda field: -1 if field.tag is None else field.tag)

    def struct(self, fields: tuple[LayoutField, ...], above: tuple[str, ...]) -> None:
        plain = [field for field in fields if field.tag is None]
        tagged = [field for field in fields if field.tag is not None]
        self.text("{")
        for index, field in enumerate(plain):
            self.text(f"{', ' if index else ''}{json.dumps(field.name)}: ")
            self._field(field, above)
        if self._flexible:
            section = self.operation(ops.JSON_TAGS)
            if not above:
                self._top.add(section)
            # Elsewhere the names would come in another order, or without a comma.
            if plain and tagged and self._is_in_order(fields):
                self._sections.append((section, [(field, above) for field in tagged]))
                self.depth = max(self.depth, self._depth + 1)
        self.text("}")

    def tag_fields(self) -> None:
        """After the end, since they are read only where they are."""
        while self._sections:
            section, tagged = self._sections.pop()
            known = []
            for field, above in tagged:
                first = len(self._operations)
                self.text(f", {json.dumps(field.name)}: ")
                # Deeper than any other place, so that one stack is enough for both.
                self._depth = self.depth + 1
                try:
                    default = _default_bytes(field)
                    self._field(field, above)
                except _NotWritten:
                    self._waiting = ""
                    continue
                self.operation(ops.JSON_TAG_END)
                known.append((field.tag or 0, first, default))
            self._tags.append((section, known))

    def _field(self, field: LayoutField, above: tuple[str, ...]) -> None:
        path = (*above, field.source.name)
        if field.type != "struct" and care_of(self._message, path, field.type) is Care.HIDDEN:
            self._hidden(field)
        elif not field.array:
            self._value(field, path, field.nullable)
        elif field.type == "int32":
            self.operation(ops.INT32S, _width(field, 4), field.nullable)
        else:
            array = self.operation(ops.JSON_ARRAY, _width(field, 4), field.nullable, 0, field.element_minimum)
            self._depth += 1
            self.depth = max(self.depth, self._depth)
            first = len(self._operations)
            self._value(field, path, False)
            self._depth -= 1
            end = self.operation(ops.JSON_NEXT)
            self._places += [(end, ops.JSON_FIRST, first), (array, ops.JSON_SKIP, end + 1)]

    def _hidden(self, field: LayoutField) -> None:
        if field.array or field.type not in ("string", "bytes"):
            raise _NotWritten
        if self._message == _CONFIG:
            slots, mask = _open_settings()
            self.operation(ops.SETTING, _width(field, 2), field.nullable, int(slots.ctypes.data), mask)
            return
        most = MAX_STRING_BYTES if field.type == "string" else _MOST_BYTES
        width = 2 if field.type == "string" else 4
        self.operation(ops.JSON_HIDDEN, _width(field, width), field.nullable, 0, most)

    def _value(self, field: LayoutField, path: tuple[str, ...], nullable: bool) -> None:
        if field.type in _NUMBERS:
            self.operation(_NUMBERS[field.type][0])
        elif field.type == "string":
            self.operation(ops.STRING, _width(field, 2), nullable)
        elif field.type == "bytes":
            self.operation(ops.JSON_BYTES, _width(field, 4), nullable)
        elif field.type == "uuid":
            self.operation(ops.JSON_UUID)
        elif field.type != "struct":
            raise _NotWritten
        elif nullable:
            absent = _ABSENT_INT8 if field.tag is None else _ABSENT_TAG
            present = self.operation(ops.JSON_STRUCT, absent)
            self.struct(field.fields, path)
            # The closing brace has to come before the place where an absent one goes on.
            close = self.operation(ops.GO_ON)
            self._places.append((present, ops.JSON_SKIP, close + 1))
        else:
            self.struct(field.fields, path)

    def linked(self) -> JsonProgram:
        count = sum(len(tags) for _, tags in self._tags)
        first_tag = len(self._operations) * ops.JSON_OPERATION
        words = np.zeros(first_tag + count * ops.TAG, np.int64)
        words[:first_tag] = np.array(self._operations, np.int64).reshape(-1)
        defaults = b"".join(default for _, tags in self._tags for _, _, default in tags)
        texts = np.frombuffer(bytes(self._texts) + defaults + bytes(SLACK), np.uint8).copy()
        base, text_at = int(words.ctypes.data), int(texts.ctypes.data)
        step = 8 * ops.JSON_OPERATION
        words[ops.JSON_TEXT : first_tag : ops.JSON_OPERATION] += text_at
        for operation, at, target in self._places:
            words[operation * ops.JSON_OPERATION + at] = base + step * target
        at, default_at = first_tag, text_at + len(self._texts)
        for section, tags in self._tags:
            words[section * ops.JSON_OPERATION + ops.JSON_FIRST] = base + 8 * at
            words[section * ops.JSON_OPERATION + ops.JSON_FIRST + 1] = len(tags)
            for number, first, default in tags:
                words[at : at + ops.TAG] = number, base + step * first, default_at, len(default)
                at, default_at = at + ops.TAG, default_at + len(default)
        return JsonProgram(base, self.depth + 1, (words, texts))


@cache
def _open_settings() -> tuple[npt.NDArray[np.int64], int]:
    """A table of at most a quarter full, and the mask that makes a slot of a hash; the names come after the slots."""
    settings = [(kind, name.encode()) for kind, names in sorted(open_settings().items()) for name in sorted(names)]
    mask = (1 << (4 * len(settings)).bit_length()) - 1
    names = b"".join(name for _, name in settings)
    table = np.zeros((mask + 1) * ops.SLOT + len(names) // 8 + 1, np.int64)
    table.view(np.uint8)[8 * ops.SLOT * (mask + 1) :][: len(names)] = np.frombuffer(names, np.uint8)
    at = int(table.ctypes.data) + 8 * ops.SLOT * (mask + 1)
    for kind, name in settings:
        slot = _setting_hash(kind, name) & mask
        while table[slot * ops.SLOT + 2]:
            slot = (slot + 1) & mask
        table[slot * ops.SLOT : (slot + 1) * ops.SLOT] = kind, at, len(name)
        at += len(name)
    return table, mask


def _setting_hash(kind: int, name: bytes) -> int:
    """As the kernel computes it, with its shift of signed numbers."""
    value = ((_HASH_START ^ kind) * _HASH_PRIME) & _64_BITS
    for byte in name:
        value = ((value ^ byte) * _HASH_PRIME) & _64_BITS
    signed = value - (1 << 64) if value >> 63 else value
    return signed ^ (signed >> 29)


def _width(field: LayoutField, classic: int) -> int:
    return 0 if field.compact else classic


def _default_bytes(field: LayoutField) -> bytes:
    """What a tag with the default value would hold: Kafka leaves such tags out, and so does its JSON."""
    default = field.default_value()
    if field.type == "struct" and not field.array and default is not None:
        raise _NotWritten
    if default is None:
        return b"\0"
    if field.array or default in ("", b""):
        return b"\1"
    if field.type in _NUMBERS:
        packed: bytes = Struct(_NUMBERS[field.type][1]).pack(default)
        return packed
    if field.type == "uuid":
        return bytes(16)
    if field.type == "string":
        encoded = default.encode()
        if len(encoded) < 127:
            return bytes([len(encoded) + 1, *encoded])
    raise _NotWritten
