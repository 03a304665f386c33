"""Fixtures for all tests: the lab's clusters and the built wheel. The end of a run lists what tests measured,
`record_property("measured", "8 pairs")`, and what was skipped and why."""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lab.fixtures import (
    cluster,
    cluster_39,
    quorum_cluster,
    secure_cluster,
    secured_cluster,
    secured_cluster_39,
)
from tests.support.order import CLUSTERS, for_workers
from tests.support.slow import SLOW_FIXTURES, is_slow
from tests.support.wheels import shared, wheel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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

# Whoever asks for one of these starts Java, Spark or a browser, and is left out of `make quick`.
HEAVY_FIXTURES = {*CLUSTERS, "spark", "browser", "java"}
QUICK = "KAFKASCOPE_QUICK"

if QUICK in os.environ:
    # A test that starts Java without saying so fails.
    os.environ["JAVA_HOME"] = os.path.join(os.sep, "left", "out", "of", "make", "quick")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """One session for all tests of a worker: starting it takes seconds, and the first work in it as many again."""
    from kafkascope.pipeline.session import local_session

    log = tmp_path_factory.mktemp("spark") / "spark.log"
    session = local_session(2, log=str(log))
    yield session
    session.stop()


def pytest_collection_finish() -> None:
    # Ten thousand tests are objects by the million, which every collection would walk again.
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if QUICK in os.environ:
        config.hook.pytest_deselected(items=[item for item in items if _is_left_out(item)])
        items[:] = [item for item in items if not _is_left_out(item)]
    items[:] = for_workers(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)), _is_heavy)


def _is_heavy(item: pytest.Item) -> bool:
    return item.get_closest_marker("heavy") is not None or bool(HEAVY_FIXTURES & {*getattr(item, "fixturenames", ())})


def _is_left_out(item: pytest.Item) -> bool:
    fixtures = {*getattr(item, "fixturenames", ())}
    return _is_heavy(item) or is_slow(item.nodeid) or not SLOW_FIXTURES.isdisjoint(fixtures)


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
