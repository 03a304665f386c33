"""Fills in the commands of advice with what the recording shows: brokers, groups, topics and offsets. A name that isn't
recorded keeps its placeholder, such as BROKER."""

import re
import shlex

from kafkascope.health.findings.brokers import BROKER, Brokers, cluster_of, node_of, split_cluster
from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rules.rule import Rule

_SOURCE_TOPICS = re.compile(r"Source topics ([\w.-]+)(?:, .*)? are missing")
_PARTITION_KINDS = frozenset({"partition", "replica_log"})
_CLUSTER_KINDS = frozenset({"quorum", "replica", "partition", "replica_log"})


def advice_of(rule: Rule, kind: str, episode: Episode, brokers: Brokers) -> str:
    if BROKER not in rule.advice and "{" not in rule.advice:
        return rule.advice
    topic, _, partition = ("TOPIC", "", "PARTITION")
    if kind == "share_partition":
        topic, _, partition = episode.subject.removeprefix(f"{episode.group}/").rpartition("-")
    elif kind in _PARTITION_KINDS:
        topic, _, partition = split_cluster(episode.subject)[0].partition(" on ")[0].rpartition("-")
    offsets = episode.samples("offsets")
    names = {
        "{group}": episode.group,
        "{topic}": topic,
        "{partition}": partition,
        "{source_topic}": _missing_topic(episode),
        "{offset}": offsets[0].partition("-")[0] if offsets else "OFFSET",
    }
    advice = rule.advice.replace(BROKER, shlex.quote(_broker(kind, episode, brokers)))
    for placeholder, name in names.items():
        # A backtick would end the command.
        advice = advice.replace(placeholder, shlex.quote(name).replace("`", "'"))
    return advice


def _missing_topic(episode: Episode) -> str:
    """The first that the coordinator names: `Source topics words, lines are missing.`"""
    details = episode.samples("details")
    named = _SOURCE_TOPICS.match(details[0]) if details else None
    return named[1] if named else "TOPIC"


def _broker(kind: str, episode: Episode, brokers: Brokers) -> str:
    if kind in _CLUSTER_KINDS:
        troubled = (node_of(name) for name in (episode.subject, *episode.named["lost_leaders"]))
        return brokers.of_cluster(cluster_of(episode.subject), {node.number for node in troubled if node is not None})
    if kind == "cluster":
        return brokers.of_cluster(episode.subject)
    if episode.named.get("brokers"):
        return max(episode.named["brokers"].items(), key=lambda item: (item[1], item[0]))[0]
    return (
        brokers.of_group(episode.group)
        if kind.startswith(("share_", "streams_", "group"))
        else brokers.of_cluster(None)
    )
