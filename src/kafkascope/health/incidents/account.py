"""Defines the sentences of an incident, and formats the names, counts and commands in them."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from kafkascope.health.findings.diagnosis import Finding
from kafkascope.health.incidents.facts import Facts
from kafkascope.health.incidents.incident import Confidence
from kafkascope.health.incidents.subjects import Node

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


def quoted(name: object) -> str:
    """Puts a name in backticks; a backtick within the name is replaced, so that the sentence still parses."""
    return f"`{str(name).replace('`', chr(39))}`"


def listed(names: Iterable[object], most: int = _MOST_NAMES) -> str:
    """`a`, `b` and 4 more."""
    ordered = [quoted(name) for name in dict.fromkeys(names)]
    shown, left = ordered[:most], len(ordered) - most
    if left > 0:
        return f"{', '.join(shown)} and {left} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def counted(tally: object) -> str:
    """Formats a tally from a finding: `steady 3, doomed 1` becomes names in backticks with ×3 and ×1."""
    text, _, more = str(tally).partition(" and ")
    parts = [part.rpartition(" ") for part in text.split(", ")]
    if not all(name and number.replace(",", "").isdecimal() for name, _, number in parts):
        return str(tally)
    words = [f"{quoted(name)} ×{number}" for name, _, number in parts]
    words += [more] if more else []
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def command(words: str, *arguments: str) -> str:
    """Puts a command in backticks, its arguments quoted for a shell."""
    return quoted(" ".join([words, *map(shlex.quote, arguments)]))


def names_in(tally: object) -> list[str]:
    """The names in a tally from a finding."""
    return [part.rpartition(" ")[0] or part for part in str(tally).partition(" and ")[0].split(", ")]


def broker(cluster: str | None, facts: Facts, without: Iterable[Node] = ()) -> str:
    """A broker to ask; `BROKER` if the recording names none."""
    return facts.bootstrap(cluster, without) or "BROKER"


def broker_of(group: str, facts: Facts) -> str:
    """The coordinator of a group, else any broker where all are of one cluster. Of groups with one name in several
    clusters none is guessed."""
    coordinators = facts.coordinators.get(group)
    if coordinators:
        if len({facts.cluster_of.get(address) for address in coordinators} - {None}) > 1:
            return "BROKER"
        return min(coordinators)
    return "BROKER" if facts.several_clusters else broker(None, facts)


def number(finding: Finding, name: str) -> float:
    value = finding.figures.get(name, 0)
    return value if isinstance(value, int | float) else 0
