"""Derives the columns of a message's table: one tree for all versions, snake_case names, nesting kept."""

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

# Columns of every table: unknown tags, and a frame's error. Bytes of unknown tags aren't stored: in a newer Kafka they
# may be secret.
ERROR = "_error"
UNKNOWN_TAGS_COLUMN = "_unknown_tags"
UNKNOWN_TYPE = pa.list_(pa.struct([("path", pa.string()), ("tag", pa.int64()), ("size", pa.int32())]))

# One record batch, or one message of an old message set, is one row.
_BATCH = [
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
_HEADER_TYPE = pa.struct([("key", pa.string()), ("value", pa.binary())])
_RECORD_TYPE = pa.struct(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(_HEADER_TYPE)),
    ]
)


def _records_type(batch: pa.DataType) -> pa.DataType:
    return pa.struct([("size", pa.int32()), ("truncated_bytes", pa.int32()), ("batches", pa.list_(batch))])


BATCH_TYPE = pa.struct(_BATCH)
RECORDS_TYPE = _records_type(BATCH_TYPE)
# With keys, values and headers, if requested.
CONTENTS_TYPE = _records_type(pa.struct([*_BATCH, ("contents", pa.list_(_RECORD_TYPE))]))


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A field over all versions of a message. `names` are the catalog's spellings for it; `element_type` is that of one
    element if it is an array."""

    name: str
    names: frozenset[str]
    type: str  # a primitive or `struct`
    array: bool
    care: Care
    children: tuple["Column", ...]
    element_type: pa.DataType
    arrow_type: pa.DataType


def _element_type(type_: str, children: tuple[Column, ...], contents: bool) -> pa.DataType:
    match type_:
        case "struct":
            return pa.struct([pa.field(child.name, child.arrow_type) for child in children])
        case "string":
            return pa.string()
        case "bytes":
            return pa.binary()
        case "records":
            return CONTENTS_TYPE if contents else RECORDS_TYPE
        case "uuid":
            return UUID_TYPE
        case "bool":
            return pa.bool_()
    return _NUMBERS[type_]


@cache
def table_of(name: str, *, contents: bool = False) -> tuple[Column, ...]:
    """The top-level columns of a message's table."""
    known = read_message(name)
    return _union(known, [field for block in known.blocks for field in block.fields], (), contents)


@cache
def arrow_schema(name: str, *, contents: bool = False) -> pa.Schema:
    """One for all versions of a message."""
    return pa.schema([pa.field(column.name, column.arrow_type) for column in table_of(name, contents=contents)])


@cache
def full_schema(name: str, *, contents: bool = False) -> pa.Schema:
    """The same for all versions of a message."""
    known = arrow_schema(name, contents=contents)
    return known.append(pa.field(UNKNOWN_TAGS_COLUMN, UNKNOWN_TYPE)).append(pa.field(ERROR, pa.string()))


def _union(known: Message, fields: list[Field], above: tuple[str, ...], contents: bool) -> tuple[Column, ...]:
    groups: dict[str, list[Field]] = {}
    for field in fields:
        groups.setdefault(snake_case(field.name), []).append(field)
    columns = []
    for name, same in groups.items():
        path = (*above, same[0].name)
        children = _union(known, [child for field in same for child in field.fields], path, contents)
        type_ = "struct" if same[0].is_struct else _widest({field.type for field in same})
        array = same[0].array
        assert all(field.array == array and field.is_struct == same[0].is_struct for field in same), path
        cares = [care_of(known.name, (*above, field.name), field.type) for field in same]
        element = _element_type(type_, children, contents)
        columns.append(
            Column(
                name,
                frozenset(field.name for field in same),
                type_,
                array,
                Care.HIDDEN if Care.HIDDEN in cares else Care.OPEN,
                children,
                element,
                pa.list_(element) if array else element,
            )
        )
    return tuple(columns)


def _widest(types: set[str]) -> str:
    """Two releases may give one field two numeric types (ShareSnapshotValue's SnapshotEpoch, uint16 then int32)."""
    return max(types, key=lambda type_: (_NUMBERS[type_].bit_width if type_ in _NUMBERS else 0, type_))


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
