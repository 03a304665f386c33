"""Renders gauges as OpenMetrics text: HELP, TYPE and UNIT of each family, its samples together, `# EOF` last."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# For older readers HELP and TYPE mean the same, and UNIT and EOF are comments.
PLAIN_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

_Number = int | float


@dataclass(frozen=True, slots=True)
class _Sample:
    value: _Number
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _MetricFamily:
    """A gauge. `unit` is the end of its name, or empty."""

    name: str
    help_text: str
    samples: tuple[_Sample, ...]
    unit: str = ""


class MetricFamilies:
    """Samples by family, in the order in which families were first named. None means unknown and leaves no sample."""

    def __init__(self) -> None:
        self._help: dict[str, tuple[str, str]] = {}
        self._samples: dict[str, dict[tuple[tuple[str, str], ...], _Number]] = {}

    def add(
        self,
        name: str,
        help_text: str,
        value: _Number | None,
        labels: Mapping[str, object] | None = None,
        unit: str = "",
    ) -> None:
        if unit and not name.endswith(f"_{unit}"):
            raise AssertionError(f"{name} doesn't end in its unit {unit}")
        self._help.setdefault(name, (help_text, unit))
        samples = self._samples.setdefault(name, {})
        if value is not None:
            samples[tuple((label, str(text)) for label, text in (labels or {}).items())] = value

    def families(self) -> tuple[_MetricFamily, ...]:
        return tuple(
            _MetricFamily(
                name,
                help_text,
                tuple(_Sample(value, dict(labels)) for labels, value in self._samples[name].items()),
                unit,
            )
            for name, (help_text, unit) in self._help.items()
        )


def render(families: Iterable[_MetricFamily]) -> str:
    """Renders families without samples too, so that their names are known."""
    lines: list[str] = []
    for family in families:
        if not _NAME.fullmatch(family.name):
            raise AssertionError(f"{family.name!r} isn't a valid name of a metric")
        lines.append(f"# TYPE {family.name} gauge")
        if family.unit:
            lines.append(f"# UNIT {family.name} {family.unit}")
        lines.append(f"# HELP {family.name} {_escape(family.help_text)}")
        lines.extend(f"{family.name}{_labels(sample.labels)} {_number(sample.value)}" for sample in family.samples)
    return "\n".join([*lines, "# EOF", ""])


def _escape(text: str) -> str:
    """Escapes backslash, quote and line feed, in labels and in HELP. Lone surrogates can't be sent as UTF-8."""
    safe = text.encode(errors="replace").decode()
    return safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: _Number) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise AssertionError(f"{label!r} isn't a valid name of a label")
    return "{" + ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items()) + "}"
