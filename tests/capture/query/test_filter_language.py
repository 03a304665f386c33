"""`--where` as a language: what is typed is what is compared, whatever its size."""

from typing import Any

import pyarrow as pa
import pytest

from kafkascope.capture.exchanges.exchange_columns import SCHEMA
from kafkascope.capture.query.filter_language import parse_where, pick
from kafkascope.errors import UsageError

LEAST, MOST = -(2**63), 2**63 - 1


def picked(expression: str, column: str, values: list[Any]) -> list[Any]:
    """Those of the values that it holds for."""
    batch = pa.RecordBatch.from_arrays([pa.array(values, SCHEMA.field(column).type)], names=[column])
    return [values[index] for index in pick(parse_where(expression), batch).nonzero()[0]]


@pytest.mark.parametrize(
    ("quoted", "matching"),
    [
        (r'"^java-\d\.\d$"', ["java-3.9"]),
        (r'"^java-\\d\\.\\d$"', ["java-3.9"]),
        (r"'^java-\d\.\d$'", ["java-3.9"]),
        (r'"^java-[0-9].[0-9]$"', ["java-3.9", "java-3x9"]),
        (r'"\bjava\b"', ["java-3.9", "java-3x9"]),
        (r'"say \"it\""', ['say "it"']),
        (r"'say \"it\"'", ['say "it"']),
        (r"""'say "it"'""", ['say "it"']),
        (r'"it\'s"', ["it's"]),
        (r"'it\'s'", ["it's"]),
        (r'"back\\\\slash"', ["back\\slash"]),
    ],
)
def test_a_regular_expression_works_as_typed(quoted: str, matching: list[str]) -> None:
    names = ["java-3.9", "java-3x9", 'say "it"', "it's", "back\\slash"]
    assert picked(f"client_id ~ {quoted}", "client_id", names) == matching


def test_text_keeps_backslashes_that_escape_nothing() -> None:
    assert picked(r'client_id == "a\b"', "client_id", ["a\\b", "ab"]) == ["a\\b"]
    assert picked(r'client_id == "a\\b"', "client_id", ["a\\b", "ab"]) == ["a\\b"]


BEYOND = ["9223372036854775808", "99999999999999999999999", "9" * 5_000, "9" * 5_000 + ".5", "9" * 400 + "s", "1" * 99]


@pytest.mark.parametrize("number", BEYOND, ids=lambda number: number[:24])
def test_a_number_beyond_the_range_is_compared_right(number: str) -> None:
    values = [LEAST, 0, MOST, None]
    known = values[:3]
    for operator, high, low in (
        ("==", [], []),
        ("!=", known, known),
        ("<", known, []),
        ("<=", known, []),
        (">", [], known),
        (">=", [], known),
    ):
        assert picked(f"latency_us {operator} {number}", "latency_us", values) == high
        # -9223372036854775808 is the least there is, and no more beyond than that
        below = f"-{number}" if number != BEYOND[0] else "-9223372036854775809"
        assert picked(f"latency_us {operator} {below}", "latency_us", values) == low
    assert picked(f"latency_us in ({number}, 0)", "latency_us", values) == [0]


@pytest.mark.parametrize(
    ("expression", "matching"),
    [
        ("latency_us == 9223372036854775807", [MOST]),
        ("latency_us == -9223372036854775808", [LEAST]),
        ("latency_us > 9223372036854775806", [MOST]),
        ("latency_us < 1.5", [LEAST, 1]),
        ("latency_us <= 1.5", [LEAST, 1]),
        ("latency_us > 1.5", [2, MOST]),
        ("latency_us >= 1.5", [2, MOST]),
        ("latency_us == 1.5", []),
        ("latency_us != 1.5", [LEAST, 1, 2, MOST]),
        ("latency_us > 0.0015ms", [2, MOST]),
        ("latency_us == 0.002ms", [2]),
        ("latency_us > 1", [2, MOST]),
    ],
)
def test_fractions_and_durations_are_compared_exactly_with_whole_numbers_of_any_size(
    expression: str, matching: list[int]
) -> None:
    assert picked(expression, "latency_us", [LEAST, 1, 2, MOST, None]) == matching


def test_a_narrow_column_is_compared_with_numbers_that_it_cannot_hold() -> None:
    assert picked("api_key < 99999999999999999999999", "api_key", [-32768, 78, None]) == [-32768, 78]
    assert picked("api_key == 65614", "api_key", [78]) == []  # 78 + 65536


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("api_key == ٣", "'٣' isn't understood"),
        ("client_id == '\udcff'", "this text isn't UTF-8"),
        ("client_id ~ '\udcff'", "this text isn't UTF-8"),
        ("request_at > '0001-01-01T00:00:00+23:59'", "request_at is a time"),
        ('client_id ~ "a\\"', "'\"' isn't understood"),
    ],
)
def test_what_cannot_be_compared_is_said(expression: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_where(expression)
