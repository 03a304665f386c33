"""Fills in the commands of advice with what the recording shows: brokers, groups, topics and offsets. A name that isn't
recorded keeps its placeholder, such as BROKER."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rule import Rule

Row = Mapping[str, Any]
BROKER = "BROKER"
_CLUSTER_KINDS = frozenset({"quorum", "replica"})


class Brokers:
    """Finds the broker to ask: a group's coordinator for that group, otherwise the broker with the most calls."""

    def __init__(self, brokers: Iterable[Row], groups: Iterable[Row]) -> None:
        self._calls: Counter[str] = Counter()
        self._cluster: dict[str, str | None] = {}
        self._node: dict[str, str] = {}
        self._coordinators: defaultdict[str, set[str]] = defaultdict(set)
        for row in brokers:
            self._calls[row["broker_address"]] += row["calls"] or 0
            self._cluster[row["broker_address"]] = row["cluster_id"]
            self._node[row["broker_address"]] = f"node {row['node_id']}"
        for row in groups:
            if row["coordinator"] is not None:
                self._coordinators[row["group_id"]].add(row["coordinator"])

    def of_group(self, group: str) -> str:
        """Of groups with one name in several clusters none is guessed."""
        coordinators = self._coordinators.get(group, set())
        if len({self._cluster.get(address) for address in coordinators} - {None}) > 1:
            return BROKER
        return min(coordinators) if coordinators else self.of_cluster(None)

    def of_cluster(self, cluster: str | None, without: Collection[str] = ()) -> str:
        """Returns None if there are several clusters and `cluster` doesn't name one. `without` are nodes in trouble, as
        `node 2`."""
        addresses = [
            address
            for address in self._calls
            if self._cluster[address] == (cluster or self._cluster[address]) and self._node[address] not in without
        ]
        if not addresses or (cluster is None and len(set(self._cluster.values()) - {None}) > 1):
            return BROKER
        return max(addresses, key=lambda address: (self._calls[address], address))


def advice_of(rule: Rule, kind: str, episode: Episode, brokers: Brokers) -> str:
    if BROKER not in rule.advice and "{" not in rule.advice:
        return rule.advice
    topic, _, partition = ("TOPIC", "", "PARTITION")
    if kind == "share_partition":
        topic, _, partition = episode.subject.removeprefix(f"{episode.group}/").rpartition("-")
    offsets = episode.samples("offsets")
    names = {
        "{group}": episode.group,
        "{topic}": topic,
        "{partition}": partition,
        "{offset}": offsets[0].partition("-")[0] if offsets else "OFFSET",
    }
    advice = rule.advice.replace(BROKER, shlex.quote(_broker(kind, episode, brokers)))
    for placeholder, name in names.items():
        # A backtick would end the command.
        advice = advice.replace(placeholder, shlex.quote(name).replace("`", "'"))
    return advice


def _broker(kind: str, episode: Episode, brokers: Brokers) -> str:
    if kind in _CLUSTER_KINDS:
        cluster = next(
            (found for between in (" of cluster ", " at ") if (found := episode.subject.partition(between)[2])), None
        )
        return brokers.of_cluster(cluster, {*episode.named["lost_leaders"], " ".join(episode.subject.split(" ")[:2])})
    if episode.named.get("brokers"):
        return max(episode.named["brokers"].items(), key=lambda item: (item[1], item[0]))[0]
    return brokers.of_group(episode.group) if kind.startswith(("share_", "streams_")) else brokers.of_cluster(None)
