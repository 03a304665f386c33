"""pytest fixtures: running clusters, one of a kind for a worker's whole run. Import the ones a conftest offers."""

from collections.abc import Iterator

import pytest

from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One node, plain."""
    with Cluster() as running:
        yield running


@pytest.fixture(scope="session")
def secure_cluster() -> Iterator[Cluster]:
    """One node with plain, TLS and SASL listeners."""
    with Cluster(tls=True, sasl=True) as running:
        yield running


@pytest.fixture(scope="session")
def quorum_cluster() -> Iterator[Cluster]:
    """Three combined nodes and an observer."""
    with Cluster(3, observer=True) as running:
        yield running
