"""The lab's clusters, the built wheel; and at the end of a run what tests measured, `record_property("measured", "8
pairs")`, and what was skipped and why."""

from collections import Counter

import pytest

from lab.fixtures import (
    cluster,
    cluster_39,
    quorum_cluster,
    secure_cluster,
    secured_cluster,
    secured_cluster_39,
)
from tests.support.wheels import shared, wheel

# Imported in one place alone, so that all tests of a worker share them.
__all__ = [
    "cluster",
    "cluster_39",
    "quorum_cluster",
    "secure_cluster",
    "secured_cluster",
    "secured_cluster_39",
    "shared",
    "wheel",
]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        str(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, value in report.user_properties
        if name == "measured"
    ]
    if lines:
        terminalreporter.section("measured")
        for line in sorted(lines):
            terminalreporter.write_line(line)
    skipped = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    if skipped:
        terminalreporter.section("skipped")
        for reason, count in skipped.most_common():
            terminalreporter.write_line(f"{count:>5}  {reason}")
