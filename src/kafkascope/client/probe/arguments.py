"""Builds request arguments for every read-only API: existing resources, missing ones, and edge values.

Each case has the fields of all versions; fields that a version lacks are removed before it's sent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafkascope import __version__
from kafkascope.schema.layouts.layout import LayoutField, layout

_NO_ID = UUID(int=0)
# Prefix of all names that a probe creates.
PROBE_PREFIX = "kafkascope-probe-"
# Made up, so that brokers return their errors for missing things.
MISSING_NAME = f"{PROBE_PREFIX}missing"
MISSING_ID = UUID("6b61666b-6173-636f-7065-2d6d69737367")
_PAST_END = 2**62


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: UUID
    partitions: int


@dataclass(frozen=True, slots=True)
class ClusterSurvey:
    """A few existing things of each kind; `groups` by type in lower case (`classic`, `consumer`, `share`,
    `streams`)."""

    node: int = 1
    # All nodes: brokers, including fenced ones, voters and observers of the quorum.
    nodes: frozenset[int] = frozenset()
    cluster_id: str | None = None
    topics: tuple[Topic, ...] = ()
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    transactional_ids: tuple[str, ...] = ()
    # Existing internal topics: with them, looking up a coordinator creates nothing.
    internal: frozenset[str] = frozenset()
    # Whether it has topics or groups that are neither Kafka's nor a probe's, or users, ACLs or quotas.
    in_use: bool = True
    controllers: bool = False
    sasl: bool = False


@dataclass(frozen=True, slots=True)
class ProbeCase:
    """`first` and `last` are the versions of the case; `any_broker` if its subject is on no broker."""

    label: str
    value: dict[str, Any]
    first: int = 0
    last: int = 32_767
    any_broker: bool = False


def cases(api: str, version: int, survey: ClusterSurvey) -> list[ProbeCase]:
    """The cases of a version, cut to its fields; none for an API without arguments here."""
    fields = layout(f"{api}Request", version).fields
    all_cases = ARGUMENTS[api](survey) if api in ARGUMENTS else ()
    return [
        ProbeCase(case.label, prune(fields, case.value), case.first, case.last, case.any_broker)
        for case in all_cases
        if case.first <= version <= case.last
    ]


def prune(fields: tuple[LayoutField, ...], value: dict[str, Any]) -> dict[str, Any]:
    """Removes fields that the version lacks, and nulls that it doesn't allow."""
    kept: dict[str, Any] = {}
    for layout_field in fields:
        if layout_field.name not in value:
            continue
        content = value[layout_field.name]
        if content is None and not layout_field.nullable:
            continue
        if layout_field.type == "struct" and content is not None:
            inner = content if layout_field.array else [content]
            pruned = [prune(layout_field.fields, item) for item in inner]
            content = pruned if layout_field.array else pruned[0]
        kept[layout_field.name] = content
    return kept


def _named(topic: Topic | None, **fields: Any) -> dict[str, Any]:
    """A topic in every field name that a request has for it."""
    name, topic_id = (topic.name, topic.topic_id) if topic else (MISSING_NAME, MISSING_ID)
    return {"name": name, "topic": name, "topicName": name, "topicId": topic_id, **fields}


def _partition(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {"partitionIndex": number, "partition": number, **fields}


def _each_topic(survey: ClusterSurvey) -> Iterator[tuple[str, Topic | None]]:
    for topic in survey.topics[:2]:
        yield f"topic {topic.name}", topic
    yield "a topic that does not exist", None


def _api_versions(_: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("as clients do", {"clientSoftwareName": "kafkascope", "clientSoftwareVersion": __version__})


def _metadata(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    options = {
        "allowAutoTopicCreation": False,
        "includeClusterAuthorizedOperations": True,
        "includeTopicAuthorizedOperations": True,
    }
    yield ProbeCase("all topics", {"topics": None, **options})
    yield ProbeCase("no topic", {"topics": [], **options}, first=1)
    for label, topic in _each_topic(survey):
        named = {"name": topic.name if topic else MISSING_NAME, "topicId": _NO_ID}
        yield ProbeCase(label, {"topics": [named], **options}, first=4)
        by_id = {"name": None, "topicId": topic.topic_id if topic else MISSING_ID}
        yield ProbeCase(f"{label}, by id", {"topics": [by_id], **options}, first=12)


def _fetch(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    def request(topic: Topic | None, **partition: Any) -> dict[str, Any]:
        row = _partition(partition.pop("number", 0), partitionMaxBytes=65_536, **partition)
        return {
            "replicaId": -1,
            "maxWaitMs": 0,
            "minBytes": 0,
            "maxBytes": 65_536,
            "sessionEpoch": -1,
            "topics": [_named(topic, partitions=[row])],
        }

    for label, topic in _each_topic(survey):
        yield ProbeCase(label, request(topic, fetchOffset=0), any_broker=topic is None)
    for topic in survey.topics[:1]:
        yield ProbeCase("an offset past the end", request(topic, fetchOffset=_PAST_END))
        yield ProbeCase("a newer leader epoch", request(topic, fetchOffset=0, currentLeaderEpoch=1_000_000), first=9)
        yield ProbeCase(
            "a partition that does not exist", request(topic, fetchOffset=0, number=100_000), any_broker=True
        )
    unknown = {**request(None, fetchOffset=0), "sessionId": 7, "sessionEpoch": 3, "topics": []}
    yield ProbeCase("a session that does not exist", unknown, first=7)


# Special timestamps and the version that introduced each (-6: KIP-1023).
_TIMESTAMPS = {-1: 0, -2: 0, 0: 0, -3: 7, -4: 8, -5: 9, -6: 11}


def _list_offsets(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    def request(topic: Topic | None, timestamp: int, **fields: Any) -> dict[str, Any]:
        row = _partition(fields.pop("number", 0), timestamp=timestamp, maxNumOffsets=1, **fields)
        return {"replicaId": -1, "timeoutMs": 1000, "topics": [_named(topic, partitions=[row])]}

    for topic in survey.topics[:1]:
        for timestamp, first in _TIMESTAMPS.items():
            yield ProbeCase(f"timestamp {timestamp}", request(topic, timestamp), first=first)
        yield ProbeCase("read committed", {**request(topic, -1), "isolationLevel": 1}, first=2)
        yield ProbeCase("a newer leader epoch", request(topic, -1, currentLeaderEpoch=1_000_000), first=4)
        yield ProbeCase("a partition that does not exist", request(topic, -1, number=100_000), any_broker=True)
    yield ProbeCase("a topic that does not exist", request(None, -1), any_broker=True)


def _offset_for_leader_epoch(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    for label, topic in _each_topic(survey):
        for epoch in (0, 1_000_000):
            rows = [_partition(leaderEpoch=epoch, currentLeaderEpoch=-1)]
            request = {"replicaId": -2, "topics": [_named(topic, partitions=rows)]}
            yield ProbeCase(f"{label}, epoch {epoch}", request, any_broker=topic is None)


def _each_group(survey: ClusterSurvey) -> Iterator[tuple[str, str]]:
    for kind, names in survey.groups.items():
        for name in names[:2]:
            yield f"{kind} group {name}", name
    yield "a group that does not exist", MISSING_NAME


def _offset_fetch(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    for label, group in _each_group(survey):
        # before version 2 null didn't mean all
        request: dict[str, Any] = {
            "groupId": group,
            "topics": None,
            "requireStable": True,
            "groups": [{"groupId": group, "topics": None}],
        }
        yield ProbeCase(f"{label}, all topics", request)
        topics = [_named(topic, partitionIndexes=[0]) for topic in (*survey.topics[:1], None)]
        request = {"groupId": group, "topics": topics, "groups": [{"groupId": group, "topics": topics}]}
        yield ProbeCase(f"{label}, some topics", request)


def _find_coordinator(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    def request(key: str, kind: int) -> dict[str, Any]:
        return {"key": key, "keyType": kind, "coordinatorKeys": [key]}

    for label, group in _each_group(survey):
        yield ProbeCase(label, request(group, 0))
    for name in (*survey.transactional_ids[:1], MISSING_NAME):
        yield ProbeCase(f"transactional id {name}", request(name, 1), first=1)
    for topic in survey.topics[:1]:
        from kafkascope.client.routing import uuid_key

        key = f"{next(iter(survey.groups.get('share', ())), MISSING_NAME)}:{uuid_key(topic.topic_id)}:0"
        yield ProbeCase("state of a share partition", request(key, 2), first=6)
    yield ProbeCase("share state by an invalid key", request(MISSING_NAME, 2), first=6)


def _describe_groups(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    for label, group in _each_group(survey):
        yield ProbeCase(label, {"groups": [group], "includeAuthorizedOperations": True})


def _list_groups(_: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("all", {})
    yield ProbeCase("by state", {"statesFilter": ["Stable", "Empty", "Dead"]}, first=4)
    yield ProbeCase("by type", {"typesFilter": ["classic", "consumer"]}, first=5)


def _group_describe(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    for label, group in _each_group(survey):
        request = {"groupIds": [group], "includeAuthorizedOperations": True, "includeTopologyDescription": True}
        yield ProbeCase(label, request)


def _share_state_summary(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    for group in (*survey.groups.get("share", ())[:1], MISSING_NAME):
        for topic in survey.topics[:1]:
            rows = [_partition(leaderEpoch=0)]
            yield ProbeCase(f"share group {group}", {"groupId": group, "topics": [_named(topic, partitions=rows)]})


def _share_group_offsets(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    for label, group in _each_group(survey):
        yield ProbeCase(f"{label}, all topics", {"groups": [{"groupId": group, "topics": None}]})
        topics = [_named(topic, partitions=[0]) for topic in (*survey.topics[:1], None)]
        yield ProbeCase(f"{label}, some topics", {"groups": [{"groupId": group, "topics": topics}]})


def _describe_producers(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    for label, topic in _each_topic(survey):
        request = {"topics": [_named(topic, partitionIndexes=[0])]}
        yield ProbeCase(label, request, any_broker=topic is None)


def _describe_transactions(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    for name in (*survey.transactional_ids[:2], MISSING_NAME):
        yield ProbeCase(f"transactional id {name}", {"transactionalIds": [name]})


def _list_transactions(_: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("all", {})
    yield ProbeCase("by state", {"stateFilters": ["Ongoing", "Nonsense"], "producerIdFilters": [0]})
    yield ProbeCase("by duration", {"durationFilter": 0}, first=1)
    yield ProbeCase("by pattern", {"transactionalIdPattern": ".*"}, first=2)
    yield ProbeCase("by an invalid pattern", {"transactionalIdPattern": "["}, first=2)


def _describe_quorum(_: ClusterSurvey) -> Iterator[ProbeCase]:
    for name in ("__cluster_metadata", MISSING_NAME):
        yield ProbeCase(name, {"topics": [{"topicName": name, "partitions": [{"partitionIndex": 0}]}]})


# ConfigResource.Type: topic, broker, broker logger, client metrics, group.
_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP = 2, 4, 8, 16, 32


def _describe_configs(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    def request(kind: int, name: str) -> dict[str, Any]:
        row = {"resourceType": kind, "resourceName": name, "configurationKeys": None}
        return {"resources": [row], "includeSynonyms": True, "includeDocumentation": True}

    for topic in survey.topics[:1]:
        yield ProbeCase(f"topic {topic.name}", request(_TOPIC, topic.name))
    yield ProbeCase("a topic that does not exist", request(_TOPIC, MISSING_NAME))
    for kind, label in ((_BROKER, "this node"), (_LOGGER, "loggers of this node")):
        yield ProbeCase(label, request(kind, str(survey.node)))
    yield ProbeCase("the default of all brokers", request(_BROKER, ""))
    yield ProbeCase("client metrics", request(_METRICS, MISSING_NAME))
    yield ProbeCase("a group", request(_GROUP, next(iter(survey.groups.get("consumer", ())), MISSING_NAME)))


def _describe_log_dirs(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("all", {"topics": None})
    for label, topic in _each_topic(survey):
        yield ProbeCase(label, {"topics": [_named(topic, partitions=[0])]})


def _reassignments(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("all", {"timeoutMs": 1000, "topics": None})
    for label, topic in _each_topic(survey):
        yield ProbeCase(label, {"timeoutMs": 1000, "topics": [_named(topic, partitionIndexes=[0])]})


def _client_quotas(_: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("all", {"components": [], "strict": False})
    yield ProbeCase(
        "of users", {"components": [{"entityType": "user", "matchType": 2, "match": None}], "strict": False}
    )
    yield ProbeCase(
        "of an unknown entity type", {"components": [{"entityType": "nonsense", "matchType": 2, "match": None}]}
    )


def _describe_cluster(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    options = {"includeClusterAuthorizedOperations": True, "includeFencedBrokers": not survey.controllers}
    yield ProbeCase("brokers", {**options, "endpointType": 1})
    yield ProbeCase("controllers", {**options, "endpointType": 2, "includeFencedBrokers": False}, first=1)


def _telemetry(_: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("a new instance", {"clientInstanceId": _NO_ID})


def _config_resources(_: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("all", {})
    for kind in (_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP):
        yield ProbeCase(f"type {kind}", {"resourceTypes": [kind]}, first=1)


def _topic_partitions(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("all", {"topics": [], "responsePartitionLimit": 100})
    for label, topic in _each_topic(survey):
        yield ProbeCase(label, {"topics": [_named(topic)], "responsePartitionLimit": 100})
    for topic in survey.topics[:1]:
        cursor = {"topicName": topic.name, "partitionIndex": 0}
        yield ProbeCase("from a cursor", {"topics": [_named(topic)], "responsePartitionLimit": 1, "cursor": cursor})


def _acls(_: ClusterSurvey) -> Iterator[ProbeCase]:
    request = {"resourceTypeFilter": 1, "patternTypeFilter": 1, "operation": 1, "permissionType": 1}
    # before version 1 there were only literal patterns
    yield ProbeCase("all", {**request, "resourceNameFilter": None, "principalFilter": None, "hostFilter": None})


def _delegation_tokens(_: ClusterSurvey) -> Iterator[ProbeCase]:
    yield ProbeCase("all", {"owners": None})
    yield ProbeCase("of a user", {"owners": [{"principalType": "User", "principalName": MISSING_NAME}]})


def _scram(_: ClusterSurvey) -> Iterator[ProbeCase]:
    # null means all too, but without permission it gets no response at all (3.9 to 4.3)
    yield ProbeCase("all", {"users": []})
    yield ProbeCase("a user that does not exist", {"users": [{"name": MISSING_NAME}]})
    yield ProbeCase("a user twice", {"users": [{"name": MISSING_NAME}, {"name": MISSING_NAME}]})


def _fetch_snapshot(_: ClusterSurvey) -> Iterator[ProbeCase]:
    snapshot = {"endOffset": 0, "epoch": 0}
    row = _partition(currentLeaderEpoch=0, snapshotId=snapshot, position=0)
    request = {"replicaId": -1, "maxBytes": 1024}
    for name in ("__cluster_metadata", MISSING_NAME):
        yield ProbeCase(name, {**request, "topics": [{"name": name, "partitions": [row]}]})


def _sasl_handshake(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    # on an authenticated connection it would begin another login
    if not survey.sasl:
        yield ProbeCase("without SASL on the listener", {"mechanism": "PLAIN"})


def _sasl_authenticate(survey: ClusterSurvey) -> Iterator[ProbeCase]:
    if not survey.sasl:
        yield ProbeCase("without SASL on the listener", {"authBytes": b""})


ARGUMENTS: dict[str, Callable[[ClusterSurvey], Iterator[ProbeCase]]] = {
    "ApiVersions": _api_versions,
    "ConsumerGroupDescribe": _group_describe,
    "DescribeAcls": _acls,
    "DescribeClientQuotas": _client_quotas,
    "DescribeCluster": _describe_cluster,
    "DescribeConfigs": _describe_configs,
    "DescribeDelegationToken": _delegation_tokens,
    "DescribeGroups": _describe_groups,
    "DescribeLogDirs": _describe_log_dirs,
    "DescribeProducers": _describe_producers,
    "DescribeQuorum": _describe_quorum,
    "DescribeShareGroupOffsets": _share_group_offsets,
    "DescribeTopicPartitions": _topic_partitions,
    "DescribeTransactions": _describe_transactions,
    "DescribeUserScramCredentials": _scram,
    "Fetch": _fetch,
    "FetchSnapshot": _fetch_snapshot,
    "FindCoordinator": _find_coordinator,
    "GetTelemetrySubscriptions": _telemetry,
    "ListConfigResources": _config_resources,
    "ListGroups": _list_groups,
    "ListOffsets": _list_offsets,
    "ListPartitionReassignments": _reassignments,
    "ListTransactions": _list_transactions,
    "Metadata": _metadata,
    "OffsetFetch": _offset_fetch,
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "ReadShareGroupStateSummary": _share_state_summary,
    "SaslAuthenticate": _sasl_authenticate,
    "SaslHandshake": _sasl_handshake,
    "ShareGroupDescribe": _group_describe,
    "StreamsGroupDescribe": _group_describe,
}
