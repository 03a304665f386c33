"""The lab's fixtures, for the tests here."""

from lab.fixtures import cluster, quorum_cluster, secure_cluster

__all__ = ["cluster", "quorum_cluster", "secure_cluster"]
