"""One Spark session for all tests of a worker: starting it takes seconds."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.pipeline.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    session = local_session(2, log=str(log))
    yield session
    session.stop()


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(tmp_path / "lake")
