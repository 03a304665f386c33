"""Programs beside the shared cluster: Kafka's own tools, and members of groups."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.stage import Stage
from tests.client.describe.live import Tools


@pytest.fixture(scope="package")
def stage(quorum_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Whatever it starts is gone at the end."""
    folder: Path = tmp_path_factory.mktemp("describe")
    with Stage(quorum_cluster, folder, lambda _: None) as running:
        yield running


@pytest.fixture(scope="package")
def tools(stage: Stage) -> Iterator[Tools]:
    running = Tools(stage.java("Tools", "tools", {}), stage.cluster.bootstrap, stage.folder / "tools.properties")
    yield running
    running.close()
