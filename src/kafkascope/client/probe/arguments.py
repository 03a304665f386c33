"""What a cluster has in, arguments for every API that only reads out: what is there, what is not, and edge values.

Each case says all that any version can say; what a version lacks is cut off before it is sent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafkascope import __version__
from kafkascope.schema.layouts.layout import LayoutField, layout

NO_ID = UUID(int=0)
# How the names of all begin that a probe makes.
PREFIX = "kafkascope-probe-"
# Nobody's: made up, so that brokers say what they say of what does not exist.
MISSING = f"{PREFIX}missing"
MISSING_ID = UUID("6b61666b-6173-636f-7065-2d6d69737367")
_PAST_END = 2**62


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: UUID
    partitions: int


@dataclass(frozen=True, slots=True)
class Survey:
    """A few of everything that there is; `groups` by type in lower case (`classic`, `consumer`, `share`, `streams`)."""

    node: int = 1
    # All that it has: brokers, fenced ones too, voters and observers of the quorum.
    nodes: frozenset[int] = frozenset()
    cluster_id: str | None = None
    topics: tuple[Topic, ...] = ()
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    transactional_ids: tuple[str, ...] = ()
    # Internal topics that are there: asking for a coordinator creates nothing then.
    internal: frozenset[str] = frozenset()
    # Whether it holds topics or groups that are neither Kafka's nor a probe's, or users, ACLs or quotas.
    in_use: bool = True
    controllers: bool = False
    sasl: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """`first` and `last` are the versions that it is for; `any_broker` where its subject lives nowhere."""

    what: str
    value: dict[str, Any]
    first: int = 0
    last: int = 32_767
    any_broker: bool = False


def cases(api: str, version: int, survey: Survey) -> list[Case]:
    """Those of a version, cut to its fields; none for an API that nobody wrote arguments for."""
    fields = layout(f"{api}Request", version).fields
    made = ARGUMENTS[api](survey) if api in ARGUMENTS else ()
    return [
        Case(case.what, prune(fields, case.value), case.first, case.last, case.any_broker)
        for case in made
        if case.first <= version <= case.last
    ]


def prune(fields: tuple[LayoutField, ...], value: dict[str, Any]) -> dict[str, Any]:
    """Without what the version has no field for, and without null where it has none."""
    kept: dict[str, Any] = {}
    for known in fields:
        if known.name not in value:
            continue
        content = value[known.name]
        if content is None and not known.nullable:
            continue
        if known.type == "struct" and content is not None:
            inner = content if known.array else [content]
            pruned = [prune(known.fields, item) for item in inner]
            content = pruned if known.array else pruned[0]
        kept[known.name] = content
    return kept


def _named(topic: Topic | None, **more: Any) -> dict[str, Any]:
    """A topic under every name that some request has for it."""
    name, topic_id = (topic.name, topic.topic_id) if topic else (MISSING, MISSING_ID)
    return {"name": name, "topic": name, "topicName": name, "topicId": topic_id, **more}


def _partition(number: int = 0, **more: Any) -> dict[str, Any]:
    return {"partitionIndex": number, "partition": number, **more}


def _each_topic(survey: Survey) -> Iterator[tuple[str, Topic | None]]:
    for topic in survey.topics[:2]:
        yield f"topic {topic.name}", topic
    yield "a topic that does not exist", None


def _api_versions(_: Survey) -> Iterator[Case]:
    yield Case("as clients do", {"clientSoftwareName": "kafkascope", "clientSoftwareVersion": __version__})


def _metadata(survey: Survey) -> Iterator[Case]:
    told = {
        "allowAutoTopicCreation": False,
        "includeClusterAuthorizedOperations": True,
        "includeTopicAuthorizedOperations": True,
    }
    yield Case("all topics", {"topics": None, **told})
    yield Case("no topic", {"topics": [], **told}, first=1)
    for what, topic in _each_topic(survey):
        named = {"name": topic.name if topic else MISSING, "topicId": NO_ID}
        yield Case(what, {"topics": [named], **told}, first=4)
        by_id = {"name": None, "topicId": topic.topic_id if topic else MISSING_ID}
        yield Case(f"{what}, by id", {"topics": [by_id], **told}, first=12)


def _fetch(survey: Survey) -> Iterator[Case]:
    def asked(topic: Topic | None, **partition: Any) -> dict[str, Any]:
        row = _partition(partition.pop("number", 0), partitionMaxBytes=65_536, **partition)
        return {
            "replicaId": -1,
            "maxWaitMs": 0,
            "minBytes": 0,
            "maxBytes": 65_536,
            "sessionEpoch": -1,
            "topics": [_named(topic, partitions=[row])],
        }

    for what, topic in _each_topic(survey):
        yield Case(what, asked(topic, fetchOffset=0), any_broker=topic is None)
    for topic in survey.topics[:1]:
        yield Case("an offset past the end", asked(topic, fetchOffset=_PAST_END))
        yield Case("a newer leader epoch", asked(topic, fetchOffset=0, currentLeaderEpoch=1_000_000), first=9)
        yield Case("a partition that does not exist", asked(topic, fetchOffset=0, number=100_000), any_broker=True)
    unknown = {**asked(None, fetchOffset=0), "sessionId": 7, "sessionEpoch": 3, "topics": []}
    yield Case("a session that does not exist", unknown, first=7)


# Special timestamps and the version that brought each (-6: KIP-1023).
_TIMESTAMPS = {-1: 0, -2: 0, 0: 0, -3: 7, -4: 8, -5: 9, -6: 11}


def _list_offsets(survey: Survey) -> Iterator[Case]:
    def asked(topic: Topic | None, timestamp: int, **more: Any) -> dict[str, Any]:
        row = _partition(more.pop("number", 0), timestamp=timestamp, maxNumOffsets=1, **more)
        return {"replicaId": -1, "timeoutMs": 1000, "topics": [_named(topic, partitions=[row])]}

    for topic in survey.topics[:1]:
        for timestamp, first in _TIMESTAMPS.items():
            yield Case(f"timestamp {timestamp}", asked(topic, timestamp), first=first)
        yield Case("read committed", {**asked(topic, -1), "isolationLevel": 1}, first=2)
        yield Case("a newer leader epoch", asked(topic, -1, currentLeaderEpoch=1_000_000), first=4)
        yield Case("a partition that does not exist", asked(topic, -1, number=100_000), any_broker=True)
    yield Case("a topic that does not exist", asked(None, -1), any_broker=True)


def _offset_for_leader_epoch(survey: Survey) -> Iterator[Case]:
    for what, topic in _each_topic(survey):
        for epoch in (0, 1_000_000):
            rows = [_partition(leaderEpoch=epoch, currentLeaderEpoch=-1)]
            asked = {"replicaId": -2, "topics": [_named(topic, partitions=rows)]}
            yield Case(f"{what}, epoch {epoch}", asked, any_broker=topic is None)


def _every_group(survey: Survey) -> Iterator[tuple[str, str]]:
    for kind, names in survey.groups.items():
        for name in names[:2]:
            yield f"{kind} group {name}", name
    yield "a group that does not exist", MISSING


def _offset_fetch(survey: Survey) -> Iterator[Case]:
    for what, group in _every_group(survey):
        # before version 2 null did not mean all
        asked: dict[str, Any] = {
            "groupId": group,
            "topics": None,
            "requireStable": True,
            "groups": [{"groupId": group, "topics": None}],
        }
        yield Case(f"{what}, all topics", asked)
        topics = [_named(topic, partitionIndexes=[0]) for topic in (*survey.topics[:1], None)]
        asked = {"groupId": group, "topics": topics, "groups": [{"groupId": group, "topics": topics}]}
        yield Case(f"{what}, some topics", asked)


def _find_coordinator(survey: Survey) -> Iterator[Case]:
    def asked(key: str, kind: int) -> dict[str, Any]:
        return {"key": key, "keyType": kind, "coordinatorKeys": [key]}

    for what, group in _every_group(survey):
        yield Case(what, asked(group, 0))
    for name in (*survey.transactional_ids[:1], MISSING):
        yield Case(f"transactional id {name}", asked(name, 1), first=1)
    for topic in survey.topics[:1]:
        from kafkascope.client.routing import uuid_key

        key = f"{next(iter(survey.groups.get('share', ())), MISSING)}:{uuid_key(topic.topic_id)}:0"
        yield Case("state of a share partition", asked(key, 2), first=6)
    yield Case("share state by a key that is none", asked(MISSING, 2), first=6)


def _describe_groups(survey: Survey) -> Iterator[Case]:
    for what, group in _every_group(survey):
        yield Case(what, {"groups": [group], "includeAuthorizedOperations": True})


def _list_groups(_: Survey) -> Iterator[Case]:
    yield Case("all", {})
    yield Case("by state", {"statesFilter": ["Stable", "Empty", "Dead"]}, first=4)
    yield Case("by type", {"typesFilter": ["classic", "consumer"]}, first=5)


def _group_describe(survey: Survey) -> Iterator[Case]:
    for what, group in _every_group(survey):
        asked = {"groupIds": [group], "includeAuthorizedOperations": True, "includeTopologyDescription": True}
        yield Case(what, asked)


def _share_state_summary(survey: Survey) -> Iterator[Case]:
    for group in (*survey.groups.get("share", ())[:1], MISSING):
        for topic in survey.topics[:1]:
            rows = [_partition(leaderEpoch=0)]
            yield Case(f"share group {group}", {"groupId": group, "topics": [_named(topic, partitions=rows)]})


def _share_group_offsets(survey: Survey) -> Iterator[Case]:
    for what, group in _every_group(survey):
        yield Case(f"{what}, all topics", {"groups": [{"groupId": group, "topics": None}]})
        topics = [_named(topic, partitions=[0]) for topic in (*survey.topics[:1], None)]
        yield Case(f"{what}, some topics", {"groups": [{"groupId": group, "topics": topics}]})


def _describe_producers(survey: Survey) -> Iterator[Case]:
    for what, topic in _each_topic(survey):
        asked = {"topics": [_named(topic, partitionIndexes=[0])]}
        yield Case(what, asked, any_broker=topic is None)


def _describe_transactions(survey: Survey) -> Iterator[Case]:
    for name in (*survey.transactional_ids[:2], MISSING):
        yield Case(f"transactional id {name}", {"transactionalIds": [name]})


def _list_transactions(_: Survey) -> Iterator[Case]:
    yield Case("all", {})
    yield Case("by state", {"stateFilters": ["Ongoing", "Nonsense"], "producerIdFilters": [0]})
    yield Case("by duration", {"durationFilter": 0}, first=1)
    yield Case("by pattern", {"transactionalIdPattern": ".*"}, first=2)
    yield Case("by a pattern that is none", {"transactionalIdPattern": "["}, first=2)


def _describe_quorum(_: Survey) -> Iterator[Case]:
    for name in ("__cluster_metadata", MISSING):
        yield Case(name, {"topics": [{"topicName": name, "partitions": [{"partitionIndex": 0}]}]})


# ConfigResource.Type: topic, broker, broker logger, client metrics, group.
_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP = 2, 4, 8, 16, 32


def _describe_configs(survey: Survey) -> Iterator[Case]:
    def asked(kind: int, name: str) -> dict[str, Any]:
        row = {"resourceType": kind, "resourceName": name, "configurationKeys": None}
        return {"resources": [row], "includeSynonyms": True, "includeDocumentation": True}

    for topic in survey.topics[:1]:
        yield Case(f"topic {topic.name}", asked(_TOPIC, topic.name))
    yield Case("a topic that does not exist", asked(_TOPIC, MISSING))
    for kind, what in ((_BROKER, "this node"), (_LOGGER, "loggers of this node")):
        yield Case(what, asked(kind, str(survey.node)))
    yield Case("the default of all brokers", asked(_BROKER, ""))
    yield Case("client metrics", asked(_METRICS, MISSING))
    yield Case("a group", asked(_GROUP, next(iter(survey.groups.get("consumer", ())), MISSING)))


def _describe_log_dirs(survey: Survey) -> Iterator[Case]:
    yield Case("all", {"topics": None})
    for what, topic in _each_topic(survey):
        yield Case(what, {"topics": [_named(topic, partitions=[0])]})


def _reassignments(survey: Survey) -> Iterator[Case]:
    yield Case("all", {"timeoutMs": 1000, "topics": None})
    for what, topic in _each_topic(survey):
        yield Case(what, {"timeoutMs": 1000, "topics": [_named(topic, partitionIndexes=[0])]})


def _client_quotas(_: Survey) -> Iterator[Case]:
    yield Case("all", {"components": [], "strict": False})
    yield Case("of users", {"components": [{"entityType": "user", "matchType": 2, "match": None}], "strict": False})
    yield Case("of nonsense", {"components": [{"entityType": "nonsense", "matchType": 2, "match": None}]})


def _describe_cluster(survey: Survey) -> Iterator[Case]:
    told = {"includeClusterAuthorizedOperations": True, "includeFencedBrokers": not survey.controllers}
    yield Case("brokers", {**told, "endpointType": 1})
    yield Case("controllers", {**told, "endpointType": 2, "includeFencedBrokers": False}, first=1)


def _telemetry(_: Survey) -> Iterator[Case]:
    yield Case("a new instance", {"clientInstanceId": NO_ID})


def _config_resources(_: Survey) -> Iterator[Case]:
    yield Case("all", {})
    for kind in (_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP):
        yield Case(f"type {kind}", {"resourceTypes": [kind]}, first=1)


def _topic_partitions(survey: Survey) -> Iterator[Case]:
    yield Case("all", {"topics": [], "responsePartitionLimit": 100})
    for what, topic in _each_topic(survey):
        yield Case(what, {"topics": [_named(topic)], "responsePartitionLimit": 100})
    for topic in survey.topics[:1]:
        cursor = {"topicName": topic.name, "partitionIndex": 0}
        yield Case("from a cursor", {"topics": [_named(topic)], "responsePartitionLimit": 1, "cursor": cursor})


def _acls(_: Survey) -> Iterator[Case]:
    asked = {"resourceTypeFilter": 1, "patternTypeFilter": 1, "operation": 1, "permissionType": 1}
    # before version 1 there were literal patterns alone
    yield Case("all", {**asked, "resourceNameFilter": None, "principalFilter": None, "hostFilter": None})


def _delegation_tokens(_: Survey) -> Iterator[Case]:
    yield Case("all", {"owners": None})
    yield Case("of a user", {"owners": [{"principalType": "User", "principalName": MISSING}]})


def _scram(_: Survey) -> Iterator[Case]:
    # null means all too, but whoever is not allowed to ask gets no answer to it at all (3.9 to 4.3)
    yield Case("all", {"users": []})
    yield Case("a user that does not exist", {"users": [{"name": MISSING}]})
    yield Case("a user twice", {"users": [{"name": MISSING}, {"name": MISSING}]})


def _fetch_snapshot(_: Survey) -> Iterator[Case]:
    snapshot = {"endOffset": 0, "epoch": 0}
    row = _partition(currentLeaderEpoch=0, snapshotId=snapshot, position=0)
    asked = {"replicaId": -1, "maxBytes": 1024}
    for name in ("__cluster_metadata", MISSING):
        yield Case(name, {**asked, "topics": [{"name": name, "partitions": [row]}]})


def _sasl_handshake(survey: Survey) -> Iterator[Case]:
    # on a connection that is logged in it would begin another login
    if not survey.sasl:
        yield Case("where no login is wanted", {"mechanism": "PLAIN"})


def _sasl_authenticate(survey: Survey) -> Iterator[Case]:
    if not survey.sasl:
        yield Case("where no login is wanted", {"authBytes": b""})


ARGUMENTS: dict[str, Callable[[Survey], Iterator[Case]]] = {
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
