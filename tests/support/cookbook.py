"""docs/cookbook.md in, its questions with a statement for each engine out; what the engines return, made comparable."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

PAGE = Path(__file__).parents[2] / "docs" / "cookbook.md"
_SETUP = re.compile(r"<!-- setup -->\n```py\n(.*?)```", re.DOTALL)
_SQL, _PY = (re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL) for language in ("sql", "py"))
_ENGINES = ("Spark", "DuckDB")


@dataclass(frozen=True, slots=True)
class Question:
    """`empty`: the page says that the recorded incidents have no row."""

    title: str
    sql: dict[str, str]
    polars: str
    empty: bool


def setup(page: str) -> str:
    found = _SETUP.search(page)
    assert found
    return found[1]


def questions(page: str) -> list[Question]:
    return [_question(*part.split("\n", 1)) for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]]


def _question(title: str, part: str) -> Question:
    statements = _SQL.findall(part)
    if len(statements) == 1:
        sql = dict.fromkeys(_ENGINES, statements[0])
    else:
        sql = {engine: text for engine in _ENGINES for text in statements if text.startswith(f"-- {engine}\n")}
        assert len(sql) == len(statements) == len(_ENGINES), title
    (polars,) = _PY.findall(part)
    return Question(title, sql, polars, part.strip().startswith("No row on the recorded incidents"))


def plain(rows: pa.Table) -> tuple[list[str], list[str]]:
    """Columns, and rows in no order: engines differ in the types of sums, and in the order of nulls."""
    columns = [column.to_pylist() for column in rows.columns]
    return rows.column_names, sorted(repr([_plain(value) for value in row]) for row in zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return int(value) if value == int(value) else round(value, 9)
    return value
