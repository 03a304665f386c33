"""Columns of the decoder to columns of the lake: the same values as a conversion in plain Python, however nested, null
or sliced."""

import random
from base64 import urlsafe_b64encode
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Schema

from kafkascope.columnar.tables import UUID_TYPE
from kafkascope.lake.shape import lake_type, to_lake
from kafkascope.lake.tables import body_table
from kafkascope.schema.catalog import apis

SCALARS = (UUID_TYPE, pa.uint16(), pa.uint32(), pa.int64(), pa.string(), pa.binary(), pa.bool_())


def random_type(rng: random.Random, depth: int) -> pa.DataType:
    kind = rng.random() if depth else 0
    if kind < 0.4:
        return rng.choice(SCALARS)
    if kind < 0.7:
        return pa.list_(random_type(rng, depth - 1))
    return pa.struct([(f"f{at}", random_type(rng, depth - 1)) for at in range(rng.randint(1, 3))])


def random_value(rng: random.Random, type_: pa.DataType) -> Any:
    if rng.random() < 0.2:
        return None
    if type_ == UUID_TYPE:
        return rng.randbytes(16)
    if pa.types.is_list(type_):
        return [random_value(rng, type_.value_type) for _ in range(rng.choice((0, 0, 1, 2, 5)))]
    if pa.types.is_struct(type_):
        return {field.name: random_value(rng, field.type) for field in type_}
    if pa.types.is_boolean(type_):
        return rng.random() < 0.5
    if pa.types.is_integer(type_):
        return rng.choice((0, 1, 2 ** (type_.bit_width - (not pa.types.is_unsigned_integer(type_))) - 1))
    return rng.choice(("", "a", "ä" * 9)) if pa.types.is_string(type_) else rng.randbytes(rng.randint(0, 5))


def in_python(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if type_ == UUID_TYPE:
        return urlsafe_b64encode(value).decode().rstrip("=")
    if pa.types.is_list(type_):
        return [in_python(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return {field.name: in_python(value[field.name], field.type) for field in type_}
    return value


@pytest.mark.parametrize("seed", range(150))
def test_values_are_those_of_a_plain_conversion_whatever_the_slice(seed: int) -> None:
    rng = random.Random(seed)
    type_ = random_type(rng, 4)
    values = [random_value(rng, type_) for _ in range(rng.choice((0, 1, 7, 40)))]
    whole = pa.array(values, type_)
    first = rng.randint(0, len(values))
    last = rng.randint(first, len(values))
    chunks = pa.chunked_array([whole.slice(first, last - first), whole, whole.slice(0, first)], type_)
    table = to_lake(pa.table({"c": chunks}))
    table.validate(full=True)
    expected = [in_python(value, type_) for value in values[first:last] + values + values[:first]]
    assert table.column("c").to_pylist() == expected, f"seed {seed}, {type_}"
    assert table.schema.field("c").type == lake_type(type_)


def test_slice_within_a_struct_keeps_its_rows() -> None:
    ids = pa.array([bytes([row]) * 16 for row in range(6)], UUID_TYPE)
    counts = pa.array([[row] * row for row in range(6)], pa.list_(pa.uint16()))
    inner = pa.StructArray.from_arrays([ids.slice(2, 3), counts.slice(2, 3)], ["id", "n"])
    column = to_lake(pa.table({"c": inner.slice(1, 2)})).column("c").to_pylist()
    assert [row["id"] for row in column] == ["AwMDAwMDAwMDAwMDAwMDAw", "BAQEBAQEBAQEBAQEBAQEBA"]
    assert [row["n"] for row in column] == [[3, 3, 3], [4, 4, 4, 4]]


def test_kafkas_own_zero_and_metadata_ids_read_as_kafka_writes_them() -> None:
    ids = pa.array([bytes(16), bytes(15) + b"\x01"], UUID_TYPE)
    assert to_lake(pa.table({"c": ids})).column("c").to_pylist() == [
        "AAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAQ",
    ]


@pytest.mark.parametrize("contents", [False, True])
def test_every_body_has_columns_of_one_name_each_that_delta_can_hold(contents: bool) -> None:
    for api in apis().values():
        for kind in ("Request", "Response"):
            schema = body_table(f"{api}{kind}", contents=contents).schema
            names = [name.lower() for name in schema.names]
            assert len(set(names)) == len(names), api
            assert pa.schema(Schema.from_arrow(schema).to_arrow()).equals(schema), api
