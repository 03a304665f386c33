"""A session of a Spark that lacks what the pipeline needs is refused by its version, before anything is done."""

import importlib.util
import runpy
from types import SimpleNamespace
from typing import Any

import pytest

import pyspark_kafkascope_share
from kafkascope.errors import UsageError
from kafkascope.pipeline import ingest
from kafkascope.pipeline.session import OLDEST_SPARK, OLDEST_STREAMS, check_version


@pytest.mark.parametrize("version", ["4.0.1", "3.5.8", "4.0.0-preview2"])
def test_an_older_spark_is_refused(version: str, tmp_path: Any) -> None:
    session: Any = SimpleNamespace(version=version)
    with pytest.raises(
        UsageError, match=rf"^this session is of Spark {version}; the pipeline needs Spark 4\.1 or newer$"
    ):
        ingest(session, [tmp_path], tmp_path / "lake")
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("version", ["4.1.0", "4.3.0", "4.10.0-SNAPSHOT", "5.0.0"])
def test_a_newer_one_is_taken(version: str) -> None:
    session: Any = SimpleNamespace(version=version)
    check_version(session)
    assert OLDEST_SPARK < OLDEST_STREAMS


def test_streams_need_a_newer_one() -> None:
    session: Any = SimpleNamespace(version="4.1.4")
    with pytest.raises(UsageError, match=r"following a folder needs Spark 4\.2 or newer$"):
        check_version(session, OLDEST_STREAMS)


@pytest.mark.parametrize(("module", "defined"), [(object(), True), (None, False)])
def test_the_share_source_hides_no_other_source_of_an_older_spark(
    module: object, defined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark imports the modules of all sources, and registers none if one fails."""
    file = pyspark_kafkascope_share.__file__
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: module)
    assert ("DefaultSource" in runpy.run_path(file)) is defined
