"""Generates random exchanges by API: a request, its response, and how the broker takes it.

Values name every field that some version has; `traffic_pool` keeps those of the version at hand."""

from functools import partial

from bench.traffic_world import MAX_INT, NOW_MS, Case, Topic, Value, World, named


def api_versions(world: World) -> Case:
    software = world.random.choice(
        (("apache-kafka-java", "4.3.1"), ("librdkafka", "2.6.1"), ("apache-kafka-java", "3.9.1"))
    )
    keys = [{"apiKey": n, "minVersion": 0, "maxVersion": world.random.randint(1, 18)} for n in range(90)]
    features = [
        {"name": f"{name}.version", "minVersion": 0, "maxVersion": 30} for name in ("metadata", "share", "group")
    ]
    answer = {
        "apiKeys": keys[: world.random.randint(60, 90)],
        "supportedFeatures": features,
        "finalizedFeaturesEpoch": 4,
    }
    return Case({"clientSoftwareName": software[0], "clientSoftwareVersion": software[1]}, answer)


def metadata(world: World) -> Case:
    chosen = world.random.sample(world.topics, world.random.randint(1, 8))
    answer = {
        "throttleTimeMs": world.throttle(),
        "brokers": [
            {"nodeId": n, "host": f"broker-{n}.kafka.example", "port": 9092, "rack": f"r{n}"} for n in (1, 2, 3)
        ],
        "clusterId": "4L6g3nShT-eMCtK--X86sw",
        "controllerId": world.random.randint(1, 3),
        "topics": [named(topic, partitions=_layout(world, topic)) for topic in chosen],
    }
    return Case({"topics": [named(topic) for topic in chosen], "allowAutoTopicCreation": False}, answer)


def _layout(world: World, topic: Topic) -> list[Value]:
    out = []
    for number in range(topic.partitions):
        nodes = world.random.sample((1, 2, 3), 3)
        part = {"partitionIndex": number, "leaderId": nodes[0], "leaderEpoch": world.random.randint(0, 300)}
        out.append({**part, "replicaNodes": nodes, "isrNodes": nodes, "eligibleLeaderReplicas": [], "lastKnownElr": []})
    return out


def produce(world: World, most: int = 4) -> Case:
    chosen = world.some(most)
    answered: list[Value] = []
    sent: list[Value] = []
    for topic, partitions in chosen:
        data = [{"index": n, "records": world.records(1)} for n in partitions]
        sent.append(named(topic, partitionData=data))
        parts = [
            {"index": n, "errorCode": world.error(6, 19), "baseOffset": world.offset(), "logAppendTimeMs": -1}
            for n in partitions
        ]
        answered.append(named(topic, partitionResponses=[{**part, "logStartOffset": 0} for part in parts]))
    silent = world.random.random() < 0.04
    request = {"transactionalId": None, "acks": 0 if silent else -1, "timeoutMs": 30_000, "topicData": sent}
    return Case(request, {"responses": answered, "throttleTimeMs": world.throttle()}, silent=silent)


def fetch(world: World, most: int = 10, batches: int = 1, *, replica: bool = False) -> Case:
    chosen, session = world.some(most), world.random.randint(1, MAX_INT)
    empty = not replica and world.random.random() < 0.15
    topics = [
        named(
            topic,
            partitions=[
                {
                    "partition": n,
                    "currentLeaderEpoch": 4,
                    "fetchOffset": world.offset(),
                    "lastFetchedEpoch": 4 if replica else -1,
                    "logStartOffset": 0 if replica else -1,
                    "partitionMaxBytes": 1 << 20,
                }
                for n in partitions
            ],
        )
        for topic, partitions in chosen
    ]
    request: Value = {
        "replicaId": 2 if replica else -1,
        "maxWaitMs": 500,
        "minBytes": 1,
        "maxBytes": 52_428_800,
        "sessionId": session,
        "sessionEpoch": world.random.randint(1, 100_000),
        "topics": topics,
        "rackId": "",
    }
    if replica:
        request["replicaState"] = {"replicaId": 2, "replicaEpoch": 71}
    responses = [] if empty else [named(topic, partitions=_fetched(world, parts, batches)) for topic, parts in chosen]
    return Case(
        request, {"throttleTimeMs": world.throttle(), "sessionId": session, "responses": responses}, waits=empty
    )


def _fetched(world: World, partitions: list[int], batches: int) -> list[Value]:
    out = []
    for number in partitions:
        high = world.offset()
        common = {"partitionIndex": number, "highWatermark": high, "lastStableOffset": high, "logStartOffset": 0}
        data = world.records(world.random.randint(1, batches))
        out.append({**common, "abortedTransactions": None, "errorCode": world.error(6), "records": data})
    return out


def list_offsets(world: World) -> Case:
    chosen = world.some(30)
    requested = [
        named(t, partitions=[{"partitionIndex": n, "currentLeaderEpoch": 4, "timestamp": -1} for n in parts])
        for t, parts in chosen
    ]
    results = [
        named(
            t,
            partitions=[
                {"partitionIndex": n, "timestamp": -1, "offset": world.offset(), "leaderEpoch": 4} for n in parts
            ],
        )
        for t, parts in chosen
    ]
    return Case({"replicaId": -1, "isolationLevel": 0, "topics": requested, "timeoutMs": 30_000}, {"topics": results})


def find_coordinator(world: World) -> Case:
    group, node = world.group(), world.random.randint(1, 3)
    where = {"nodeId": node, "host": f"broker-{node}.kafka.example", "port": 9092, "errorCode": world.error(15)}
    answer = {"throttleTimeMs": 0, "coordinators": [{"key": group, **where}], **where}
    return Case({"key": group, "keyType": 0, "coordinatorKeys": [group]}, answer)


def _committed(world: World, partitions: list[int]) -> list[Value]:
    def offset(number: int) -> Value:
        return {"partitionIndex": number, "committedOffset": world.offset(), "committedLeaderEpoch": 4}

    return [{**offset(number), "committedMetadata": "", "metadata": ""} for number in partitions]


def offset_commit(world: World) -> Case:
    chosen = world.some(60)
    error = world.error(22, 25)
    request = {
        "groupId": world.group(),
        "generationIdOrMemberEpoch": world.random.randint(1, 500),
        "memberId": world.member(),
        "retentionTimeMs": -1,
        "topics": [named(topic, partitions=_committed(world, parts)) for topic, parts in chosen],
    }
    results = [named(t, partitions=[{"partitionIndex": n, "errorCode": error} for n in parts]) for t, parts in chosen]
    return Case(request, {"throttleTimeMs": world.throttle(), "topics": results})


def offset_fetch(world: World) -> Case:
    chosen, group = world.some(60), world.group()
    requested = [named(topic, partitionIndexes=parts) for topic, parts in chosen]
    results = [named(topic, partitions=_committed(world, parts)) for topic, parts in chosen]
    member = {
        "groupId": group,
        "memberId": world.member(),
        "memberEpoch": world.random.randint(1, 500),
        "topics": requested,
    }
    request = {"groupId": group, "topics": requested, "groups": [member], "requireStable": True}
    return Case(request, {"topics": results, "groups": [{"groupId": group, "topics": results}]})


def heartbeat(world: World) -> Case:
    request = {"groupId": world.group(), "generationId": world.random.randint(1, 500), "memberId": world.member()}
    return Case(request, {"throttleTimeMs": world.throttle(), "errorCode": world.error(27, 25)})


def join_group(world: World) -> Case:
    members = world.random.sample(world.members, world.random.randint(1, 12))
    request = {
        "groupId": world.group(),
        "sessionTimeoutMs": 45_000,
        "rebalanceTimeoutMs": 300_000,
        "memberId": members[0],
        "protocolType": "consumer",
        "protocols": [
            {"name": name, "metadata": world.random.randbytes(90)} for name in ("range", "cooperative-sticky")
        ],
        "reason": "rebalance",
    }
    answer = {
        "generationId": world.random.randint(1, 500),
        "protocolType": "consumer",
        "protocolName": "range",
        "leader": members[0],
        "memberId": members[0],
        "members": [{"memberId": name, "metadata": world.random.randbytes(90)} for name in members],
    }
    return Case(request, answer, waits=world.random.random() < 0.5)


def sync_group(world: World) -> Case:
    members = world.random.sample(world.members, world.random.randint(1, 12))
    request = {
        "groupId": world.group(),
        "generationId": world.random.randint(1, 500),
        "memberId": members[0],
        "protocolType": "consumer",
        "protocolName": "range",
        "assignments": [{"memberId": name, "assignment": world.random.randbytes(60)} for name in members],
    }
    answer = {"protocolType": "consumer", "protocolName": "range", "assignment": world.random.randbytes(60)}
    return Case(request, answer)


def _assignment(world: World) -> list[Value]:
    return [{"topicId": topic.id, "partitions": parts} for topic, parts in world.some(40)]


def group_heartbeat(world: World) -> Case:
    """Of consumer and share groups. Mostly nothing is new, and then nothing is sent."""
    news, member = world.random.random() < 0.2, world.member()
    request = {
        "groupId": world.group(),
        "memberId": member,
        "memberEpoch": world.random.randint(1, 500),
        "rebalanceTimeoutMs": 300_000 if news else -1,
        "subscribedTopicNames": [topic.name for topic in world.random.sample(world.topics, 3)] if news else None,
        "subscribedTopicRegex": None,
        "serverAssignor": "uniform" if news else None,
        "topicPartitions": _assignment(world) if news else None,
    }
    answer = {
        "throttleTimeMs": world.throttle(),
        "errorCode": world.error(113, 25),
        "memberId": member,
        "memberEpoch": world.random.randint(1, 500),
        "heartbeatIntervalMs": 5_000,
        "assignment": {"topicPartitions": _assignment(world)} if news else None,
    }
    return Case(request, answer)


def _acknowledged(world: World, partitions: list[int]) -> list[Value]:
    out = []
    for number in partitions:
        first, batches = world.offset(), []
        for _ in range(world.random.randint(1, 8)):
            count = world.random.randint(1, 20)
            types = [world.random.choice((1, 1, 1, 2, 3)) for _ in range(count)] if world.random.random() < 0.3 else [1]
            batches.append({"firstOffset": first, "lastOffset": first + count - 1, "acknowledgeTypes": types})
            first += count
        out.append({"partitionIndex": number, "acknowledgementBatches": batches})
    return out


def _share(world: World) -> tuple[list[tuple[Topic, list[int]]], Value]:
    chosen = world.some(12)
    session = {
        "groupId": world.group(),
        "memberId": world.member(),
        "shareSessionEpoch": world.random.randint(1, 9_999),
    }
    return chosen, {**session, "topics": [named(t, partitions=_acknowledged(world, parts)) for t, parts in chosen]}


def share_fetch(world: World) -> Case:
    chosen, request = _share(world)
    empty = world.random.random() < 0.15
    responses = []
    for topic, partitions in [] if empty else chosen:
        parts = []
        for number in partitions:
            first = world.offset()
            acquired = [
                {"firstOffset": first + n, "lastOffset": first + n + 9, "deliveryCount": world.random.randint(1, 5)}
                for n in range(0, 10 * world.random.randint(1, 4), 10)
            ]
            parts.append({"partitionIndex": number, "records": world.records(1), "acquiredRecords": acquired})
        responses.append(named(topic, partitions=parts))
    limits = {"maxWaitMs": 500, "minBytes": 1, "maxBytes": 52_428_800, "maxRecords": 500, "batchSize": 500}
    answer = {"throttleTimeMs": world.throttle(), "acquisitionLockTimeoutMs": 30_000, "responses": responses}
    return Case({**request, **limits, "forgottenTopicsData": []}, answer, waits=empty)


def share_acknowledge(world: World) -> Case:
    chosen, request = _share(world)
    error = world.error(121)
    results = [named(t, partitions=[{"partitionIndex": n, "errorCode": error} for n in parts]) for t, parts in chosen]
    return Case(request, {"throttleTimeMs": 0, "acquisitionLockTimeoutMs": 30_000, "responses": results})


def streams_heartbeat(world: World) -> Case:
    def tasks() -> list[Value]:
        count = world.random.randint(1, 6)
        return [{"subtopologyId": str(n), "partitions": list(range(n, 24, count))} for n in range(count)]

    news = world.random.random() < 0.4
    member = world.member()
    request = {
        "groupId": world.group(),
        "memberId": member,
        "memberEpoch": world.random.randint(1, 500),
        "rebalanceTimeoutMs": 300_000 if news else -1,
        "topology": None,
        "activeTasks": tasks() if news else None,
        "standbyTasks": tasks() if news else None,
        "warmupTasks": [] if news else None,
        "processId": str(world.uuid()) if news else None,
        "userEndpoint": {"host": "streams.example", "port": 8080} if news else None,
        "clientTags": [{"key": "zone", "value": "a"}] if news else None,
        "taskOffsets": [{"subtopologyId": "0", "partition": n, "offset": world.offset()} for n in range(24)]
        if news
        else None,
        "taskEndOffsets": None,
    }
    answer = {
        "memberId": member,
        "memberEpoch": world.random.randint(1, 500),
        "heartbeatIntervalMs": 5_000,
        "taskOffsetIntervalMs": 60_000,
        "status": None,
        "activeTasks": tasks() if news else None,
        "standbyTasks": tasks() if news else None,
        "warmupTasks": [] if news else None,
        "partitionsByUserEndpoint": None,
    }
    return Case(request, answer)


def describe_quorum(world: World) -> Case:
    end = world.offset()

    def replica(number: int) -> Value:
        at = NOW_MS + world.random.randint(0, 1 << 20)
        common = {
            "replicaId": number,
            "replicaDirectoryId": world.uuid(),
            "logEndOffset": end - world.random.randint(0, 9),
        }
        return {**common, "lastFetchTimestamp": at, "lastCaughtUpTimestamp": at}

    partition = {
        "partitionIndex": 0,
        "leaderId": world.random.randint(1, 3),
        "leaderEpoch": world.random.randint(1, 99),
        "highWatermark": end,
        "currentVoters": [replica(number) for number in (1, 2, 3)],
        "observers": [replica(number) for number in range(4, world.random.randint(6, 12))],
    }
    requested = [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]
    nodes = [
        {"nodeId": n, "listeners": [{"name": "CONTROLLER", "host": f"broker-{n}.kafka.example", "port": 9093}]}
        for n in (1, 2, 3)
    ]
    results = [{"topicName": "__cluster_metadata", "partitions": [partition]}]
    return Case({"topics": requested}, {"topics": results, "nodes": nodes})


def init_producer_id(world: World) -> Case:
    producer = world.random.randint(1_000, 90_000)
    request = {"transactionalId": None, "transactionTimeoutMs": MAX_INT, "producerId": -1, "producerEpoch": -1}
    return Case(request, {"producerId": producer, "producerEpoch": 0})


def end_txn(world: World) -> Case:
    producer = {"producerId": world.random.randint(1_000, 90_000), "producerEpoch": world.random.randint(0, 99)}
    request = {"transactionalId": f"{world.group()}-0_1", "committed": world.random.random() < 0.9, **producer}
    return Case(request, {"errorCode": world.error(51), **producer})


def txn_offset_commit(world: World) -> Case:
    commit = offset_commit(world)
    producer = {
        "transactionalId": f"{commit.request['groupId']}-0_1",
        "producerId": world.random.randint(1_000, 90_000),
    }
    return Case({**commit.request, **producer, "producerEpoch": 3}, commit.response)


def describe_groups(world: World) -> Case:
    def member() -> Value:
        common = {"memberId": world.member(), "clientId": "worker", "clientHost": "/10.1.0.9"}
        return {**common, "memberMetadata": world.random.randbytes(80), "memberAssignment": world.random.randbytes(60)}

    groups = world.random.sample(world.groups, 3)
    results = [
        {
            "groupId": group,
            "groupState": "Stable",
            "protocolType": "consumer",
            "protocolData": "range",
            "members": [member() for _ in range(world.random.randint(0, 8))],
        }
        for group in groups
    ]
    return Case({"groups": groups, "includeAuthorizedOperations": False}, {"groups": results})


def list_groups(world: World) -> Case:
    groups = world.random.sample(world.groups, world.random.randint(5, 24))
    results = [
        {"groupId": g, "protocolType": "consumer", "groupState": "Stable", "groupType": "classic"} for g in groups
    ]
    return Case({"statesFilter": ["Stable"], "typesFilter": []}, {"groups": results})


def broker_heartbeat(world: World) -> Case:
    request = {"brokerId": world.random.randint(1, 6), "brokerEpoch": 71, "currentMetadataOffset": world.offset()}
    return Case(request, {"isCaughtUp": True, "isFenced": False})


def write_share_state(world: World) -> Case:
    chosen = world.some(8)

    def state(number: int) -> Value:
        first = world.offset()
        batches = [
            {
                "firstOffset": first + 10 * n,
                "lastOffset": first + 10 * n + 9,
                "deliveryState": n % 3,
                "deliveryCount": 1,
            }
            for n in range(world.random.randint(1, 12))
        ]
        return {"partition": number, "stateEpoch": 2, "leaderEpoch": 4, "startOffset": first, "stateBatches": batches}

    requested = [{"topicId": topic.id, "partitions": [state(n) for n in parts]} for topic, parts in chosen]
    results = [{"topicId": topic.id, "partitions": [{"partition": n} for n in parts]} for topic, parts in chosen]
    return Case({"groupId": world.group(), "topics": requested}, {"results": results})


def leader_epochs(world: World) -> Case:
    chosen = world.some(40)
    requested = [
        named(topic, partitions=[{"partition": n, "currentLeaderEpoch": 4, "leaderEpoch": 3} for n in parts])
        for topic, parts in chosen
    ]
    results = [
        named(topic, partitions=[{"partition": n, "leaderEpoch": 3, "endOffset": world.offset()} for n in parts])
        for topic, parts in chosen
    ]
    return Case({"replicaId": 2, "topics": requested}, {"topics": results})


def describe_configs(world: World) -> Case:
    def setting(number: int) -> Value:
        common = {"name": f"log.segment.setting.{number}", "value": str(world.random.randint(0, 1 << 40))}
        return {**common, "configSource": 5, "configType": 3, "synonyms": [{**common, "source": 5}]}

    chosen = world.random.sample(world.topics, 2)
    requested = [{"resourceType": 2, "resourceName": topic.name, "configurationKeys": None} for topic in chosen]
    results = [
        {"resourceType": 2, "resourceName": topic.name, "configs": [setting(n) for n in range(30)]} for topic in chosen
    ]
    return Case({"resources": requested, "includeSynonyms": True}, {"results": results})


def topic_partitions(world: World) -> Case:
    chosen = world.random.sample(world.topics, world.random.randint(1, 6))
    results = [named(topic, partitions=_layout(world, topic)) for topic in chosen]
    request = {"topics": [{"name": topic.name} for topic in chosen], "responsePartitionLimit": 2_000, "cursor": None}
    return Case(request, {"topics": results, "nextCursor": None})


REPLICA_FETCH = partial(fetch, most=24, batches=2, replica=True)
