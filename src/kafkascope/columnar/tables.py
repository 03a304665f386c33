"""A message in, its table's shape out: one tree of columns for all versions, snake_case names, nesting kept."""

import re
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from kafkascope.columnar.secrets import Care, care_of
from kafkascope.schema.catalog import message as read_message
from kafkascope.schema.model import Field, Message

_NUMBERS = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
}
UUID_TYPE = pa.binary(16)

# One record batch (or one message of an old message set) is one row; contents are never in it.
BATCH_TYPE = pa.struct(
    [
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("size", pa.int32()),
        ("partition_leader_epoch", pa.int32()),
        ("magic", pa.int8()),
        ("crc", pa.uint32()),
        ("attributes", pa.int16()),
        ("base_timestamp", pa.int64()),
        ("max_timestamp", pa.int64()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("base_sequence", pa.int32()),
        ("records", pa.int32()),
    ]
)
RECORDS_TYPE = pa.struct([("size", pa.int32()), ("truncated_bytes", pa.int32()), ("batches", pa.list_(BATCH_TYPE))])


@dataclass(frozen=True, slots=True)
class Column:
    """A field over all versions of a message. `names` are the catalog's spellings that lead here."""

    name: str
    names: frozenset[str]
    type: str  # a primitive or `struct`
    array: bool
    care: Care
    children: tuple["Column", ...]

    def element_type(self) -> pa.DataType:
        match self.type:
            case "struct":
                return pa.struct([pa.field(child.name, child.arrow_type()) for child in self.children])
            case "string":
                return pa.string()
            case "bytes":
                return pa.binary()
            case "records":
                return RECORDS_TYPE
            case "uuid":
                return UUID_TYPE
            case "bool":
                return pa.bool_()
        return _NUMBERS[self.type]

    def arrow_type(self) -> pa.DataType:
        one = self.element_type()
        return pa.list_(one) if self.array else one

    def child(self, kafka_name: str) -> "Column":
        return next(child for child in self.children if kafka_name in child.names)


@cache
def table_of(name: str) -> tuple[Column, ...]:
    """The top-level columns of a message's table."""
    known = read_message(name)
    return _union(known, [field for block in known.blocks for field in block.fields], ())


def arrow_schema(name: str) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.arrow_type()) for column in table_of(name)])


def _union(known: Message, fields: list[Field], above: tuple[str, ...]) -> tuple[Column, ...]:
    groups: dict[str, list[Field]] = {}
    for field in fields:
        groups.setdefault(snake_case(field.name), []).append(field)
    columns = []
    for name, same in groups.items():
        path = (*above, same[0].name)
        children = _union(known, [child for field in same for child in field.fields], path)
        type_ = "struct" if same[0].is_struct else _widest({field.type for field in same})
        columns.append(
            Column(name, frozenset(f.name for f in same), type_, same[0].array, care_of(known.name, path), children)
        )
    return tuple(columns)


def _widest(types: set[str]) -> str:
    """Two releases may give one field two numbers (ShareSnapshotValue's SnapshotEpoch, uint16 then int32)."""
    return max(types, key=lambda type_: (_NUMBERS[type_].bit_width if type_ in _NUMBERS else 0, type_))


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
