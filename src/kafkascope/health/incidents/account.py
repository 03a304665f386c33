"""Defines the sentences of an incident, and formats the names, counts and commands in them."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from kafkascope.formatting import first_names, join_names
from kafkascope.health.findings.diagnosis import Finding
from kafkascope.health.findings.words import quoted
from kafkascope.health.incidents.incident import Confidence

_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Account:
    cause: str
    subject_kind: str
    subject: str
    title: str
    explanation: str
    confidence: Confidence
    disproof: str
    advice: str


def listed(names: Iterable[object], most: int = _MOST_NAMES) -> str:
    """`a`, `b` and 4 more."""
    ordered = [quoted(name) for name in dict.fromkeys(names)]
    return first_names(ordered, most) if len(ordered) > most else join_names(ordered)


def counted(tally: object) -> str:
    """Formats a tally from a finding: `steady 3, doomed 1` becomes names in backticks with ×3 and ×1."""
    text, _, more = str(tally).partition(" and ")
    parts = [part.rpartition(" ") for part in text.split(", ")]
    if not all(name and number.replace(",", "").isdecimal() for name, _, number in parts):
        return str(tally)
    return join_names([*(f"{quoted(name)} ×{number}" for name, _, number in parts), *filter(None, [more])])


def command(words: str, *arguments: str) -> str:
    """Puts a command in backticks, its arguments quoted for a shell."""
    return quoted(" ".join([words, *map(shlex.quote, arguments)]))


def names_in(tally: object) -> list[str]:
    """The names in a tally from a finding."""
    return [part.rpartition(" ")[0] or part for part in str(tally).partition(" and ")[0].split(", ")]


def number(finding: Finding, name: str) -> float:
    value = finding.figures.get(name, 0)
    return value if isinstance(value, int | float) else 0
