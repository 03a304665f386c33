"""Keeps the metadata of a cluster as of an offset, and says what each record changed."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kafkascope.health.disks.metadata_records import (
    ACL_RESOURCES,
    CONFIG_RESOURCES,
    NO_LEADER,
    SAME_LEADER,
    word,
)
from kafkascope.logs.hidden import is_open_setting

Key = tuple[Any, ...]
Facts = dict[str, Any]
# A key and what is true of it now; None if it's gone.
Change = tuple[Key, Facts | None]


class MetadataImage:
    """`facts` has everything that is true now: topics, partitions, settings, features, numbers of ACLs, brokers."""

    def __init__(self) -> None:
        self.facts: dict[Key, Facts] = {}
        self.topics: dict[str, str] = {}
        self._partitions: dict[str, set[int]] = {}
        self._settings: dict[tuple[str, str], set[str]] = {}
        self._acls: dict[str, str] = {}
        self._acl_counts: Counter[str] = Counter()

    def apply(self, type_: str, value: Facts) -> Iterator[Change]:
        """A record of a type that isn't kept changes nothing."""
        handler = _HANDLERS.get(type_)
        for key, facts in handler(self, value) if handler is not None else ():
            if facts is None:
                if self.facts.pop(key, None) is not None:
                    yield key, None
            elif self.facts.get(key) != facts:
                self.facts[key] = facts
                yield key, facts

    def _topic(self, value: Facts) -> Iterator[Change]:
        topic_id, name = value["topic_id"], value["name"]
        self.topics[topic_id] = name
        yield ("topic", topic_id), {"topic": name, "topic_id": topic_id}

    def _remove_topic(self, value: Facts) -> Iterator[Change]:
        topic_id = value["topic_id"]
        name = self.topics.pop(topic_id, None)
        yield ("topic", topic_id), None
        for partition in sorted(self._partitions.pop(topic_id, ())):
            yield ("partition", topic_id, partition), None
        # Kafka deletes a topic's settings with it, without a record for each.
        for setting in sorted(self._settings.pop(("topic", name or ""), ())):
            yield ("config", "topic", name, setting), None

    def _partition(self, value: Facts) -> Iterator[Change]:
        topic_id, partition = value["topic_id"], value["partition_id"]
        self._partitions.setdefault(topic_id, set()).add(partition)
        yield (
            ("partition", topic_id, partition),
            {
                "topic": self.topics.get(topic_id),
                "topic_id": topic_id,
                "partition": partition,
                "leader": _leader(value["leader"]),
                "leader_epoch": value["leader_epoch"],
                "replicas": value.get("replicas") or [],
                "isr": value.get("isr") or [],
            },
        )

    def _partition_change(self, value: Facts) -> Iterator[Change]:
        key = ("partition", value["topic_id"], value["partition_id"])
        before = self.facts.get(key)
        if before is None:
            return
        after = dict(before)
        for name in ("replicas", "isr"):
            if value.get(name) is not None:
                after[name] = value[name]
        leader = value.get("leader", SAME_LEADER)
        if leader != SAME_LEADER:
            # The controller counts every choice of a leader, even of the same one.
            after |= {"leader": _leader(leader), "leader_epoch": before["leader_epoch"] + 1}
        yield key, after

    def _config(self, value: Facts) -> Iterator[Change]:
        kind = word(CONFIG_RESOURCES, value["resource_type"]) or ""
        resource, name = value.get("resource_name") or "", value["name"]
        key = ("config", kind, resource, name)
        hidden = not is_open_setting(value["resource_type"], name)
        if value.get("value") is None and not hidden:
            self._settings.get((kind, resource), set()).discard(name)
            yield key, None
            return
        self._settings.setdefault((kind, resource), set()).add(name)
        yield key, {"resource_type": kind, "resource": resource, "name": name, "value": value.get("value")}

    def _feature(self, value: Facts) -> Iterator[Change]:
        level = value["feature_level"]
        # Level 0 is how a feature is turned off.
        facts = {"name": value["name"], "value": str(level)} if level else None
        yield ("feature", value["name"]), facts

    def _remove_feature(self, value: Facts) -> Iterator[Change]:
        yield ("feature", value["name"]), None

    def _acl(self, value: Facts) -> Iterator[Change]:
        if value["id"] not in self._acls:
            kind = word(ACL_RESOURCES, value["resource_type"]) or ""
            self._acls[value["id"]] = kind
            self._acl_counts[kind] += 1
            yield self._acl_count(kind)

    def _remove_acl(self, value: Facts) -> Iterator[Change]:
        kind = self._acls.pop(value["id"], None)
        if kind is not None:
            self._acl_counts[kind] -= 1
            yield self._acl_count(kind)

    def _acl_count(self, kind: str) -> Change:
        number = self._acl_counts[kind]
        return ("acls", kind), {"resource_type": kind, "value": str(number)} if number else None

    def _register(self, value: Facts) -> Iterator[Change]:
        node = str(value["broker_id"])
        yield ("broker", node), _broker(node, fenced=value["fenced"], leaving=value.get("in_controlled_shutdown"))

    def _change_broker(self, value: Facts) -> Iterator[Change]:
        node = str(value["broker_id"])
        before = self.facts.get(("broker", node))
        if before is not None:
            # 1 sets it, -1 clears it, 0 leaves it.
            fenced, leaving = value.get("fenced") or 0, value.get("in_controlled_shutdown") or 0
            was_fenced, was_leaving = before["value"] == "fenced", before["value"] == "shutting down"
            now_fenced = fenced > 0 if fenced else was_fenced
            yield ("broker", node), _broker(node, fenced=now_fenced, leaving=leaving > 0 if leaving else was_leaving)

    def _fence(self, value: Facts) -> Iterator[Change]:
        node = str(value["id"])
        yield ("broker", node), _broker(node, fenced=True)

    def _unfence(self, value: Facts) -> Iterator[Change]:
        node = str(value["id"])
        yield ("broker", node), _broker(node, fenced=False)

    def _unregister(self, value: Facts) -> Iterator[Change]:
        yield ("broker", str(value["broker_id"])), None


_HANDLERS = {
    "topic_record": MetadataImage._topic,
    "remove_topic_record": MetadataImage._remove_topic,
    "partition_record": MetadataImage._partition,
    "partition_change_record": MetadataImage._partition_change,
    "config_record": MetadataImage._config,
    "feature_level_record": MetadataImage._feature,
    "remove_feature_level_record": MetadataImage._remove_feature,
    "access_control_entry_record": MetadataImage._acl,
    "remove_access_control_entry_record": MetadataImage._remove_acl,
    "register_broker_record": MetadataImage._register,
    "broker_registration_change_record": MetadataImage._change_broker,
    "fence_broker_record": MetadataImage._fence,
    "unfence_broker_record": MetadataImage._unfence,
    "unregister_broker_record": MetadataImage._unregister,
}
KEPT_TYPES = frozenset(_HANDLERS)


def _leader(node: int) -> int | None:
    return None if node == NO_LEADER else node


def _broker(node: str, *, fenced: bool, leaving: bool | None = False) -> Facts:
    return {"name": node, "value": "fenced" if fenced else "shutting down" if leaving else "active"}
