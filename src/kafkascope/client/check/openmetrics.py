"""Families of metrics in, OpenMetrics text out: HELP, TYPE and UNIT of each, its samples together, `# EOF` last."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# To older readers HELP and TYPE mean the same, and UNIT and EOF are comments.
PLAIN_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

Number = int | float


@dataclass(frozen=True, slots=True)
class Sample:
    value: Number
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Family:
    """A gauge. `unit` is what its name ends in, or empty."""

    name: str
    says: str
    samples: tuple[Sample, ...]
    unit: str = ""


class Families:
    """Samples by family, in the order in which the families were first named; None is unknown and leaves no sample."""

    def __init__(self) -> None:
        self._says: dict[str, tuple[str, str]] = {}
        self._samples: dict[str, dict[tuple[tuple[str, str], ...], Number]] = {}

    def add(
        self, name: str, says: str, value: Number | None, labels: Mapping[str, object] | None = None, unit: str = ""
    ) -> None:
        if unit and not name.endswith(f"_{unit}"):
            raise AssertionError(f"{name} does not end in its unit {unit}")
        self._says.setdefault(name, (says, unit))
        samples = self._samples.setdefault(name, {})
        if value is not None:
            samples[tuple((label, str(text)) for label, text in (labels or {}).items())] = value

    def families(self) -> tuple[Family, ...]:
        return tuple(
            Family(
                name, says, tuple(Sample(value, dict(labels)) for labels, value in self._samples[name].items()), unit
            )
            for name, (says, unit) in self._says.items()
        )


def render(families: Iterable[Family]) -> str:
    """A family without samples is told all the same: its name is known then."""
    lines: list[str] = []
    for family in families:
        if not _NAME.fullmatch(family.name):
            raise AssertionError(f"{family.name!r} is no name of a metric")
        lines.append(f"# TYPE {family.name} gauge")
        if family.unit:
            lines.append(f"# UNIT {family.name} {family.unit}")
        lines.append(f"# HELP {family.name} {escape(family.says)}")
        lines.extend(f"{family.name}{_labels(one.labels)} {number(one.value)}" for one in family.samples)
    return "\n".join([*lines, "# EOF", ""])


def escape(text: str) -> str:
    """Backslash, quote and line feed, in labels and in HELP alike. What is no Unicode cannot be sent as UTF-8."""
    safe = text.encode(errors="replace").decode()
    return safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: Number) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise AssertionError(f"{label!r} is no name of a label")
    return "{" + ",".join(f'{label}="{escape(text)}"' for label, text in labels.items()) + "}"
