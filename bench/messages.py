"""The messages that are measured: name, version and value in the sizes that clusters really send; the same each run."""

from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

from kafkascope.codec.message import decode, encode


@dataclass(frozen=True, slots=True)
class Case:
    """`value` is complete: it has every field, as decoding returns it."""

    label: str
    name: str
    version: int
    data: bytes
    value: dict[str, Any]


def cases() -> list[Case]:
    random = Random(20)
    return [
        _case("ApiVersionsRequest", 3, {"clientSoftwareName": "apache-kafka-java", "clientSoftwareVersion": "4.3.1"}),
        _case("ShareFetchRequest", 2, _share_fetch(random)),
        _case("StreamsGroupHeartbeatResponse", 0, _streams_heartbeat()),
        _case("DescribeQuorumResponse", 1, _quorum()),
        _case("ProduceRequest", 9, _produce(random), "3 x 1 KB"),
        _case("MetadataResponse", 12, _metadata(random, 10, 10), "100 partitions"),
        _case("MetadataResponse", 12, _metadata(random, 40, 50), "2,000 partitions"),
        _case("MetadataResponse", 8, _metadata(random, 10, 10), "100, classic"),
        _case("OffsetCommitRequest", 9, _offset_commit(10, 50), "500 partitions"),
        _case("ListOffsetsResponse", 7, _list_offsets(10, 50), "500 partitions"),
        _case("FetchRequest", 13, _fetch_request(random, 20, 10), "200 partitions"),
        _case("FetchResponse", 13, _fetch(random, 4, 16_384), "64 KB of records"),
        _case("FetchResponse", 13, _fetch(random, 8, 131_072), "1 MB of records"),
        _case("ShareAcknowledgeRequest", 1, _share_acknowledge(random, 10, 100), "1,000 batches"),
        _case("DescribeConfigsResponse", 4, _configs(10, 60), "600 settings"),
        _case("DescribeTopicPartitionsResponse", 0, _topic_partitions(random, 20, 100), "2,000 partitions"),
    ]


def _case(name: str, version: int, value: dict[str, Any], note: str = "") -> Case:
    data = encode(name, version, value)
    decoded = decode(name, version, data)
    assert decoded.exact and encode(name, version, decoded.value) == data
    return Case(f"{name} v{version}{f', {note}' if note else ''}", name, version, data, decoded.value)


def _id(random: Random) -> UUID:
    return UUID(bytes=random.randbytes(16))


def _share_fetch(random: Random) -> dict[str, Any]:
    batch = {"firstOffset": 4_200, "lastOffset": 4_299, "acknowledgeTypes": [1]}
    partition = {"partitionIndex": 0, "acknowledgementBatches": [batch]}
    return {
        "groupId": "payments",
        "memberId": "9mLxUAbYRuKsyPEEOVwtMg",
        "shareSessionEpoch": 5,
        "maxWaitMs": 500,
        "minBytes": 1,
        "maxBytes": 52_428_800,
        "maxRecords": 500,
        "batchSize": 500,
        "topics": [{"topicId": _id(random), "partitions": [partition]}],
        "forgottenTopicsData": [],
    }


def _streams_heartbeat() -> dict[str, Any]:
    tasks = [{"subtopologyId": str(number), "partitions": list(range(number, 12, 3))} for number in range(3)]
    return {
        "memberId": "9mLxUAbYRuKsyPEEOVwtMg",
        "memberEpoch": 7,
        "heartbeatIntervalMs": 5_000,
        "acceptableRecoveryLagLegacy": 10_000,
        "taskOffsetIntervalMs": 60_000,
        "status": None,
        "activeTasks": tasks,
        "standbyTasks": tasks[:1],
        "warmupTasks": [],
        "endpointInformationEpoch": 3,
        "partitionsByUserEndpoint": None,
    }


def _quorum() -> dict[str, Any]:
    def replica(number: int) -> dict[str, Any]:
        at = 1_763_200_000_000 + number
        offset = 81_234 - number
        return {"replicaId": number, "logEndOffset": offset, "lastFetchTimestamp": at, "lastCaughtUpTimestamp": at}

    partition = {
        "partitionIndex": 0,
        "leaderId": 1,
        "leaderEpoch": 12,
        "highWatermark": 81_230,
        "currentVoters": [replica(number) for number in (1, 2, 3)],
        "observers": [replica(number) for number in (4, 5, 6)],
    }
    return {"topics": [{"topicName": "__cluster_metadata", "partitions": [partition]}]}


def _produce(random: Random) -> dict[str, Any]:
    partitions = [{"index": number, "records": random.randbytes(1_024)} for number in range(3)]
    return {"acks": -1, "timeoutMs": 30_000, "topicData": [{"name": "payments", "partitionData": partitions}]}


def _metadata(random: Random, topics: int, partitions: int) -> dict[str, Any]:
    """The UpdateMetadata of ZooKeeper days has the same shape and size."""

    def partition(number: int) -> dict[str, Any]:
        replicas = random.sample(range(1, 7), 3)
        return {
            "partitionIndex": number,
            "leaderId": replicas[0],
            "leaderEpoch": random.randint(0, 300),
            "replicaNodes": replicas,
            "isrNodes": replicas,
        }

    return {
        "brokers": [{"nodeId": n, "host": f"broker-{n}.example", "port": 9092, "rack": f"r{n}"} for n in range(1, 7)],
        "clusterId": "4L6g3nShT-eMCtK--X86sw",
        "controllerId": 3,
        "topics": [
            {"name": f"topic-{number}", "partitions": [partition(n) for n in range(partitions)]}
            for number in range(topics)
        ],
    }


def _offset_commit(topics: int, partitions: int) -> dict[str, Any]:
    return {
        "groupId": "payments",
        "generationIdOrMemberEpoch": 4,
        "memberId": "consumer-payments-1-9mLxUAbYRuKsyPEEOVwtMg",
        "topics": [
            {
                "name": f"topic-{topic}",
                "partitions": [
                    {"partitionIndex": n, "committedOffset": 100_000 + n, "committedMetadata": ""}
                    for n in range(partitions)
                ],
            }
            for topic in range(topics)
        ],
    }


def _list_offsets(topics: int, partitions: int) -> dict[str, Any]:
    return {
        "topics": [
            {
                "name": f"topic-{topic}",
                "partitions": [
                    {"partitionIndex": n, "timestamp": -1, "offset": 100_000 + n, "leaderEpoch": 4}
                    for n in range(partitions)
                ],
            }
            for topic in range(topics)
        ],
    }


def _fetch_request(random: Random, topics: int, partitions: int) -> dict[str, Any]:
    return {
        "maxWaitMs": 500,
        "minBytes": 1,
        "sessionId": 77,
        "sessionEpoch": 1,
        "topics": [
            {
                "topicId": _id(random),
                "partitions": [
                    {"partition": n, "currentLeaderEpoch": 4, "fetchOffset": 100_000 + n, "partitionMaxBytes": 1 << 20}
                    for n in range(partitions)
                ],
            }
            for _ in range(topics)
        ],
        "rackId": "r1",
    }


def _fetch(random: Random, partitions: int, size: int) -> dict[str, Any]:
    def partition(number: int) -> dict[str, Any]:
        return {
            "partitionIndex": number,
            "highWatermark": 1_000_000,
            "lastStableOffset": 1_000_000,
            "logStartOffset": 0,
            "abortedTransactions": [],
            "records": random.randbytes(size),
        }

    topic = {"topicId": _id(random), "partitions": [partition(number) for number in range(partitions)]}
    return {"sessionId": 77, "responses": [topic]}


def _share_acknowledge(random: Random, partitions: int, batches: int) -> dict[str, Any]:
    def partition(number: int) -> dict[str, Any]:
        return {
            "partitionIndex": number,
            "acknowledgementBatches": [
                {"firstOffset": 10 * n, "lastOffset": 10 * n + 9, "acknowledgeTypes": [1]} for n in range(batches)
            ],
        }

    return {
        "groupId": "payments",
        "memberId": "9mLxUAbYRuKsyPEEOVwtMg",
        "shareSessionEpoch": 6,
        "topics": [{"topicId": _id(random), "partitions": [partition(number) for number in range(partitions)]}],
    }


def _configs(resources: int, settings: int) -> dict[str, Any]:
    def setting(number: int) -> dict[str, Any]:
        name = f"log.some.setting.number{number}"
        synonym = {"name": name, "value": str(number), "source": 5}
        return {"name": name, "value": str(number), "configSource": 5, "synonyms": [synonym], "configType": 3}

    return {
        "results": [
            {"resourceType": 2, "resourceName": f"topic-{n}", "configs": [setting(m) for m in range(settings)]}
            for n in range(resources)
        ]
    }


def _topic_partitions(random: Random, topics: int, partitions: int) -> dict[str, Any]:
    def partition(number: int) -> dict[str, Any]:
        replicas = random.sample(range(1, 7), 3)
        return {
            "partitionIndex": number,
            "leaderId": replicas[0],
            "leaderEpoch": 9,
            "replicaNodes": replicas,
            "isrNodes": replicas,
            "eligibleLeaderReplicas": [],
            "lastKnownElr": [],
        }

    return {
        "topics": [
            {"name": f"topic-{n}", "topicId": _id(random), "partitions": [partition(m) for m in range(partitions)]}
            for n in range(topics)
        ]
    }
