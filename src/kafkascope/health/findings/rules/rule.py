"""Defines a rule: its name, its thresholds with their reasons, its summary and its advice."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from kafkascope.health.findings.episodes import MERGE_US, Episode

Severity = Literal["info", "warning", "critical"]
Limits = Mapping[str, float]  # the thresholds of one rule, by name
SeverityAndSummary = tuple[Severity, str]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A rule fires at this value and above, unless the reason states something else."""

    name: str
    default: float
    unit: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rule:
    """`tell` takes an episode and the rule's thresholds and returns the summary, or None if the rule doesn't fire. If
    the severity depends on the episode, `tell` returns it too, and `severity` says on what. In the advice, commands are
    in backticks; `{group}`, `{topic}`, `{partition}` and `{offset}` are filled in, quoted for a shell, and BROKER is a
    broker's address."""

    name: str
    severity: str
    subject_kind: str
    says: str
    marts: tuple[str, ...]
    thresholds: tuple[Threshold, ...]
    advice: str
    tell: Callable[[Episode, Limits], SeverityAndSummary | str | None]
    gap_us: int = MERGE_US

    def firing(self, episode: Episode, limits: Limits) -> SeverityAndSummary | None:
        result = self.tell(episode, limits)
        return (cast(Severity, self.severity), result) if isinstance(result, str) else result
