"""docs/lake.md names every column of every table, with its type, in order."""

import re

import pyarrow as pa
import pytest

from kafkascope.lake.log_tables import LOG_TABLES, record_types
from kafkascope.lake.tables import KEYS, body_table, table_named
from tests.lake.build import ROOT

PAGE = (ROOT / "docs" / "lake.md").read_text(encoding="utf-8")


def columns_told(title: str) -> list[tuple[str, str]]:
    part = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \| (\w+) \| \S.* \|$", part, re.MULTILINE)


def word(type_: pa.DataType) -> str:
    if pa.types.is_timestamp(type_):
        return "timestamp"
    if pa.types.is_date(type_):
        return "date"
    if pa.types.is_struct(type_):
        return "struct"
    return "list" if pa.types.is_list(type_) else str(type_)


def columns_of(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(field.name, word(field.type)) for field in schema]


@pytest.mark.parametrize("name", ["captures", "connections", "exchanges", "quarantine", *LOG_TABLES])
def test_every_column_is_told_with_its_type(name: str) -> None:
    assert columns_told(name) == columns_of(table_named(name).schema)


def test_columns_that_every_body_has_are_told() -> None:
    for message in ("ShareFetchRequest", "DescribeQuorumResponse"):
        schema = body_table(message).schema
        assert columns_told("Bodies") == columns_of(schema)[: len(KEYS)] + columns_of(schema)[-3:]


def test_columns_that_every_record_has_are_told() -> None:
    documented = columns_told("Records")
    assert documented == columns_of(table_named("offset_commit").schema)
    assert [row for row in documented if row[0] != "key"] == columns_of(table_named("topic_record").schema)


def test_every_table_of_records_is_listed() -> None:
    listed = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8").split("\n## In a lake\n")[1].split("\n## ")[0]
    assert {*record_types(), *LOG_TABLES} <= set(re.findall(r"`(\w+)`", listed))
