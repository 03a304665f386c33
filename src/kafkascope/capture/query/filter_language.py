r"""Parses `--where`, a small language over the columns of `exchanges`, into a tree that picks rows of an Arrow batch:
`api == "Fetch" and latency_us > 100ms`. It evaluates only columns, literals and comparisons; a `UsageError` names the
place.

    expression = term {"or" term}         term = factor {"and" factor}
    factor     = "not" factor | "(" expression ")" | column [operator literal]
    operator   = "==" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "in"
    literal    = number | duration | size | "text" | true | false | null | "(" literal {"," literal} ")"

A duration is 250us, 100ms, 1.5s or 2m, a size 10kb or 1mb. Times are text: "2026-11-15T09:30". `~` searches for a
regular expression. A comparison with an unknown value is false; `== null` asks for unknown values. In quotes `\"`, `\'`
and `\\` mean a quote and a backslash; any other backslash stays: `"\d"` is a digit.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.capture.exchanges.exchange_columns import SCHEMA, TIME
from kafkascope.errors import UsageError
from kafkascope.times import parse_moment

Mask = npt.NDArray[np.bool_]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?[0-9]+(?:\.[0-9]+)?)(?P<unit>[a-zA-Zµ]*)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<sign>==|!=|<=|>=|[<>~(),=]))",
    re.DOTALL,
)
_ESCAPED = re.compile(r"""\\(["'\\])""")
_DURATIONS = {"us": 1, "µs": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_SIZES = {"b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}
_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_OPERATORS = (*_ORDER, "~", "in")
# Deeper than anyone writes by hand.
_DEEPEST = 50
# All numeric columns are integers; the widest is an int64.
_LEAST, _MOST = -(2**63), 2**63 - 1
# A sign and the digits of an int64.
_LONGEST_WHOLE = 20


@dataclass(frozen=True, slots=True)
class Duration:
    microseconds: float


@dataclass(frozen=True, slots=True)
class Compare:
    column: str
    operator: str
    literal: Any


@dataclass(frozen=True, slots=True)
class Combine:
    word: str  # and, or, not
    parts: tuple["Node", ...]


Node = Compare | Combine


def parse_where(text: str) -> Node:
    return _Parser(text).whole()


def pick(node: Node, batch: pa.RecordBatch) -> Mask:
    """The rows of a batch with the columns of `exchanges` that match."""
    if isinstance(node, Compare):
        return _compare(node, batch.column(node.column))
    masks = [pick(part, batch) for part in node.parts]
    if node.word == "not":
        return ~masks[0]
    combine = np.logical_and if node.word == "and" else np.logical_or
    return np.asarray(combine.reduce(masks))


def _compare(node: Compare, column: pa.Array) -> Mask:
    if node.operator == "in":
        masks = [_compare(Compare(node.column, "==", literal), column) for literal in node.literal]
        return np.asarray(np.logical_or.reduce(masks))
    if node.literal is None:
        known: Mask = column.is_valid().to_numpy(zero_copy_only=False)
        return ~known if node.operator == "==" else known
    if node.operator == "~":
        matching = pc.match_substring_regex(column, node.literal)
    else:
        literal = node.literal
        if isinstance(literal, Duration):
            literal = literal.microseconds / (1 if node.column.endswith("_us") else 1_000)
        if isinstance(literal, datetime):
            literal = pa.scalar(literal, TIME)
        if isinstance(literal, (int, float)) and not isinstance(literal, bool):
            matching = _compare_number(column, node.operator, literal)
        else:
            matching = _ORDER[node.operator](column, literal)
    return np.asarray(pc.fill_null(matching, False).to_numpy(zero_copy_only=False), dtype=bool)


def _compare_number(column: pa.Array, operator: str, number: float) -> pa.Array:
    """Compares as int64, which is exact: Arrow refuses to compare a large integer with a float."""
    beyond = not _LEAST <= number <= _MOST
    if beyond or (operator in ("==", "!=") and number != math.floor(number)):
        always = (
            operator == "!=" or (operator in ("<", "<=") and number > 0) or (operator in (">", ">=") and number < 0)
        )
        return pc.and_(column.is_valid(), always)
    whole = math.ceil(number) if operator in ("<", ">=") else math.floor(number)
    return _ORDER[operator](column, pa.scalar(whole, pa.int64()))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._tokens: list[tuple[str, Any, int]] = []
        self._next = 0
        self._depth = 0
        while self._at < len(text.rstrip()):
            match = _TOKEN.match(text, self._at)
            if match is None:
                raise self._fail(f"'{text[self._at :].strip()[:1]}' isn't understood", self._at)
            self._tokens.append(self._token(match))
            self._at = match.end()

    def _token(self, match: re.Match[str]) -> tuple[str, Any, int]:
        start = match.end() - len(match[0].lstrip())
        if match["number"] is not None:
            return "literal", self._number(match["number"], match["unit"], start), start
        if match["word"] is not None:
            word = match["word"]
            constant = {"true": True, "false": False, "null": None}
            if word in constant:
                return "literal", constant[word], start
            return ("keyword" if word in ("and", "or", "not", "in") else "column"), word, start
        if match["text"] is not None:
            return "literal", self._quoted(match["text"][1:-1], start), start
        return "sign", match["sign"], start

    def _quoted(self, text: str, start: int) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self._fail("this text isn't UTF-8", start) from None
        return _ESCAPED.sub(r"\1", text)

    def _number(self, number: str, unit: str, start: int) -> Any:
        if not unit:
            # A longer one is beyond every column, and Python converts at most 4,300 digits.
            return int(number) if "." not in number and len(number) <= _LONGEST_WHOLE else float(number)
        lower = unit.lower()
        if lower in _DURATIONS:
            return Duration(float(number) * _DURATIONS[lower])
        if lower in _SIZES:
            return float(number) * _SIZES[lower]
        raise self._fail(f"unknown unit '{unit}'; durations have us, ms, s, m or h, sizes b, kb, mb or gb", start)

    def _fail(self, what: str, at: int) -> UsageError:
        return UsageError(f"--where: {what} (character {at + 1})")

    def _peek(self) -> tuple[str, Any, int]:
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return "end", None, len(self._text)

    def _take(self, kind: str, value: Any) -> bool:
        if self._peek()[:2] == (kind, value):
            self._next += 1
            return True
        return False

    def whole(self) -> Node:
        if not self._tokens:
            raise UsageError('--where is empty; for example: api == "Fetch" and latency_us > 100ms')
        node = self._either("or", lambda: self._either("and", self._factor))
        kind, value, at = self._peek()
        if kind != "end":
            raise self._fail(f"unexpected '{value}'; expected and, or, or the end", at)
        return node

    def _either(self, word: str, inner: Callable[[], Node]) -> Node:
        parts = [inner()]
        while self._take("keyword", word):
            parts.append(inner())
        return parts[0] if len(parts) == 1 else Combine(word, tuple(parts))

    def _factor(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._fail(f"more than {_DEEPEST} nested levels", self._peek()[2])
        try:
            if self._take("keyword", "not"):
                return Combine("not", (self._factor(),))
            if self._take("sign", "("):
                node = self._either("or", lambda: self._either("and", self._factor))
                if not self._take("sign", ")"):
                    raise self._fail("a closing bracket is missing", self._peek()[2])
                return node
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Node:
        kind, column, at = self._peek()
        if kind != "column":
            actual = "the end" if kind == "end" else f"'{column}'"
            raise self._fail(f"expected a column, found {actual}", at)
        if column not in SCHEMA.names:
            raise self._fail(f"unknown column {column}; use one of {', '.join(SCHEMA.names)}", at)
        self._next += 1
        kind, operator, at = self._peek()
        if kind == "end" or operator in ("and", "or", ")"):
            if SCHEMA.field(column).type != pa.bool_():
                raise self._fail(f"{column} needs a comparison: {', '.join(_OPERATORS)}", at)
            return Compare(column, "==", True)
        if operator == "=":
            raise self._fail("use == instead of =", at)
        if operator not in _OPERATORS:
            raise self._fail(f"unknown comparison '{operator}'; use one of {', '.join(_OPERATORS)}", at)
        self._next += 1
        if operator == "in":
            return Compare(column, "in", self._list(column))
        return Compare(column, operator, self._literal(column, operator))

    def _list(self, column: str) -> tuple[Any, ...]:
        if not self._take("sign", "("):
            raise self._fail("in needs a list in brackets", self._peek()[2])
        items = [self._literal(column, "==")]
        while self._take("sign", ","):
            items.append(self._literal(column, "=="))
        if not self._take("sign", ")"):
            raise self._fail("a closing bracket is missing", self._peek()[2])
        return tuple(items)

    def _literal(self, column: str, operator: str) -> Any:
        kind, value, at = self._peek()
        if kind != "literal":
            hint = f'; put text in quotes: "{value}"' if kind == "column" else ""
            raise self._fail(f"expected a value{hint}", at)
        self._next += 1
        type_ = SCHEMA.field(column).type
        if value is None:
            if operator not in ("==", "!="):
                raise self._fail("null can only be compared with == or !=", at)
            return None
        if operator == "~":
            if type_ != pa.string() or not isinstance(value, str):
                raise self._fail("~ needs a regular expression in quotes", at)
            try:
                pc.match_substring_regex(pa.array([""]), value)
            except pa.ArrowInvalid:
                raise self._fail("this isn't a regular expression", at) from None
            return value
        return self._typed(column, type_, value, at)

    def _typed(self, column: str, type_: pa.DataType, value: Any, at: int) -> Any:
        if type_ == TIME:
            moment = parse_moment(value) if isinstance(value, str) else None
            if moment is None:
                raise self._fail(f'{column} is a time: "2026-11-15T09:30:00"', at)
            return moment
        if isinstance(value, Duration):
            if not column.endswith(("_us", "_ms")):
                raise self._fail(f"{column} isn't a duration", at)
            return value
        fits = {pa.string(): isinstance(value, str), pa.bool_(): isinstance(value, bool)}.get(
            type_, isinstance(value, (int, float)) and not isinstance(value, bool)
        )
        if not fits:
            expected = {pa.string(): "text in quotes", pa.bool_(): "true or false"}.get(type_, "a number")
            raise self._fail(f"{column} is compared with {expected}", at)
        return value
