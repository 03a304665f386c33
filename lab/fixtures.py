"""pytest fixtures: running clusters, one of a kind for a worker's whole run. `tests/conftest.py` offers them to all."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator["Cluster"]:
    """One node, plain."""
    # here and not above: most test runs start no cluster
    from lab.cluster import Cluster

    with Cluster() as running:
        yield running


@pytest.fixture(scope="session")
def secure_cluster() -> Iterator["Cluster"]:
    """One node with plain, TLS and SASL listeners."""
    from lab.cluster import Cluster

    with Cluster(tls=True, sasl=True) as running:
        yield running


@pytest.fixture(scope="session")
def quorum_cluster() -> Iterator["Cluster"]:
    """Three combined nodes and an observer."""
    from lab.cluster import Cluster

    with Cluster(3, observer=True) as running:
        yield running


@pytest.fixture(scope="session")
def secured_cluster() -> Iterator["Cluster"]:
    """One node with every kind of login, and ACLs on; `lab.secured` names its listeners and users."""
    from lab.cluster import Cluster

    with Cluster(secured=True) as running:
        yield running


@pytest.fixture(scope="session")
def cluster_39() -> Iterator["Cluster"]:
    """One node of 3.9.2, plain."""
    from lab.cluster import Cluster

    with Cluster(release="3.9.2") as running:
        yield running


@pytest.fixture(scope="session")
def secured_cluster_39() -> Iterator["Cluster"]:
    """The secured one on 3.9.2."""
    from lab.cluster import Cluster

    with Cluster(secured=True, release="3.9.2") as running:
        yield running
