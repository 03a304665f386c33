"""Parses the nodes and clusters that findings name, and finds the broker to ask about a group or a cluster. It guesses
none where several clusters are recorded."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

# The placeholder for an address that isn't recorded.
BROKER = "BROKER"
_BEFORE_CLUSTER = (" of cluster ", " at ")


class Node(NamedTuple):
    cluster: str | None
    number: int


def split_cluster(subject: str) -> tuple[str, str, str]:
    """What is before the name of the cluster, the words between, and the name; empty if the subject has none."""
    parts = (subject.partition(between) for between in _BEFORE_CLUSTER)
    return next((split for split in parts if split[1]), (subject, "", ""))


def cluster_of(subject: str) -> str | None:
    return split_cluster(subject)[2] or None


def node_of(subject: str) -> Node | None:
    """Parses the subject of a replica: `node 2`, `node 2 of cluster Ab-1`, `node 2 at 10.0.0.1:9093`."""
    words = subject.split(" ")
    if len(words) < 2 or words[0] != "node" or not words[1].isdecimal():
        return None
    return Node(cluster_of(subject), int(words[1]))


class Brokers:
    """What the marts `brokers` and `groups` have about brokers, by their addresses; `coordinators` by group."""

    def __init__(self, brokers: Iterable[Mapping[str, Any]] = (), groups: Iterable[Mapping[str, Any]] = ()) -> None:
        self.nodes: dict[str, Node] = {}
        self.cluster_of: dict[str, str | None] = {}
        self.coordinators: defaultdict[str, set[str]] = defaultdict(set)
        self._calls: Counter[str] = Counter()
        for row in brokers:
            address, cluster = row["broker_address"], row["cluster_id"]
            self._calls[address] += row["calls"] or 0
            self.cluster_of[address] = cluster
            if row["node_id"] is not None:
                self.nodes[address] = Node(cluster, row["node_id"])
        for row in groups:
            if row["coordinator"] is not None:
                self.coordinators[row["group_id"]].add(row["coordinator"])

    @property
    def several_clusters(self) -> bool:
        return len(set(self.cluster_of.values()) - {None}) > 1

    def of_group(self, group: str) -> str:
        """Its coordinator. Of groups with one name in several clusters none is guessed."""
        coordinators = self.coordinators.get(group, set())
        if len({self.cluster_of.get(address) for address in coordinators} - {None}) > 1:
            return BROKER
        return min(coordinators) if coordinators else self.of_cluster(None)

    def of_cluster(self, cluster: str | None, without: Collection[int] = ()) -> str:
        """The broker with the most calls but for the nodes of these numbers; addresses of known nodes come first."""
        if cluster is None and self.several_clusters:
            return BROKER
        ranked = [
            (cluster is not None and self.cluster_of[address] == cluster, address in self.nodes, calls, address)
            for address, calls in self._calls.items()
            if (address not in self.nodes or self.nodes[address].number not in without)
            and (cluster is None or self.cluster_of[address] in (None, cluster))
        ]
        return max(ranked)[-1] if ranked else BROKER
