"""Four messages in hex, a comment a field: bytes to values and back, and examples in the definitions' own spelling."""

from typing import Any
from uuid import UUID

import pytest

import kafkascope
from tests.support.hexes import hexes

TOPIC_ID = UUID("550e8400-e29b-41d4-a716-446655440000")

SHARE_GROUP_DESCRIBE = hexes("""
    00000000                            # throttle_time_ms 0
    02                                  # groups: 1
      0000                              #   error_code 0
      00                                #   error_message null
      11 6f726465722d70726f636573736f7273  # group_id "order-processors"
      07 537461626c65                   #   group_state "Stable"
      0000000c                          #   group_epoch 12
      0000000c                          #   assignment_epoch 12
      07 73696d706c65                   #   assignor_name "simple"
      02                                #   members: 1
        17 6356334b51735a70527432635964456f66677361 6c51  # member_id "cV3KQsZpRt2cYdEofgsalQ"
        00                              #     rack_id null
        0000000c                        #     member_epoch 12
        07 6d792d617070                 #     client_id "my-app"
        0f 2f3139322e3136382e312e313030 #     client_host "/192.168.1.100"
        03                              #     subscribed_topic_names: 2
          07 6f7264657273               #       "orders"
          09 7061796d656e7473           #       "payments"
                                        #     assignment: a struct that cannot be null has no presence byte
          02                            #       topic_partitions: 1
            550e8400e29b41d4a716446655440000  #   topic_id
            07 6f7264657273             #         topic_name "orders"
            04 00000001 00000002 00000003  #      partitions 1, 2, 3
            00                          #         no tags of the topic
          00                            #       no tags of the assignment
        00                              #     no tags of the member
      80000000                          #   authorized_operations: not asked for
      00                                #   no tags of the group
    00                                  # no tags
""")  # fmt: skip
SHARE_GROUP_DESCRIBE_VALUE = {
    "throttleTimeMs": 0,
    "groups": [
        {
            "errorCode": 0,
            "errorMessage": None,
            "groupId": "order-processors",
            "groupState": "Stable",
            "groupEpoch": 12,
            "assignmentEpoch": 12,
            "assignorName": "simple",
            "members": [
                {
                    "memberId": "cV3KQsZpRt2cYdEofgsalQ",
                    "rackId": None,
                    "memberEpoch": 12,
                    "clientId": "my-app",
                    "clientHost": "/192.168.1.100",
                    "subscribedTopicNames": ["orders", "payments"],
                    "assignment": {
                        "topicPartitions": [{"topicId": TOPIC_ID, "topicName": "orders", "partitions": [1, 2, 3]}]
                    },
                }
            ],
            "authorizedOperations": -2147483648,
        }
    ],
}

STREAMS_GROUP_HEARTBEAT = hexes("""
    00000000                            # throttle_time_ms 0
    0000                                # error_code 0
    00                                  # error_message null
    02 6d                               # member_id "m"
    0000000c                            # member_epoch 12
    00001388                            # heartbeat_interval_ms 5000
    00002710                            # acceptable_recovery_lag 10000: an int32 in v0
    0000ea60                            # task_offset_interval_ms 60000
    02                                  # status: 1
      01                                #   status_code 1, missing source topics
      07 6f7264657273                   #   status_detail "orders"
      00                                #   no tags
    02                                  # active_tasks: 1
      02 30                             #   subtopology_id "0"
      03 00000000 00000002              #   partitions 0, 2
      00                                #   no tags
    01                                  # standby_tasks: none
    00                                  # warmup_tasks: null, unchanged
    00000003                            # endpoint_information_epoch 3
    02                                  # partitions_by_user_endpoint: 1
      0a 6c6f63616c686f7374 2384        #   user_endpoint: host "localhost", port 9092
      00                                #     no tags of the endpoint
      02                                #   active_partitions: 1
        07 6f7264657273                 #     topic "orders"
        02 00000000                     #     partitions 0
        00                              #     no tags
      01                                #   standby_partitions: none
      00                                #   no tags
    00                                  # no tags
""")
STREAMS_GROUP_HEARTBEAT_VALUE = {
    "throttleTimeMs": 0,
    "errorCode": 0,
    "errorMessage": None,
    "memberId": "m",
    "memberEpoch": 12,
    "heartbeatIntervalMs": 5000,
    # 4.4's name; 4.1 to 4.3 call it acceptableRecoveryLag (protocol note 29)
    "acceptableRecoveryLagLegacy": 10000,
    "taskOffsetIntervalMs": 60000,
    "status": [{"statusCode": 1, "statusDetail": "orders"}],
    "activeTasks": [{"subtopologyId": "0", "partitions": [0, 2]}],
    "standbyTasks": [],
    "warmupTasks": None,
    "endpointInformationEpoch": 3,
    "partitionsByUserEndpoint": [
        {
            "userEndpoint": {"host": "localhost", "port": 9092},
            "activePartitions": [{"topic": "orders", "partitions": [0]}],
            "standbyPartitions": [],
        }
    ],
}

SHARE_FETCH = hexes("""
    11 6f726465722d70726f636573736f7273 # group_id "order-processors"
    17 6356334b51735a70527432635964456f66677361 6c51  # member_id
    0000000c                            # share_session_epoch 12
    00000000                            # max_wait_ms 0: a renewal waits for nothing
    00000000                            # min_bytes 0
    00000000                            # max_bytes 0
    00000000                            # max_records 0
    00000000                            # batch_size 0
    01                                  # share_acquire_mode 1, record-limit
    01                                  # is_renew_ack true
    02                                  # topics: 1
      550e8400e29b41d4a716446655440000  #   topic_id
      02                                #   partitions: 1
        00000003                        #     partition_index 3
        02                              #     acknowledgement_batches: 1
          0000000000024b6e              #       first_offset 150382
          0000000000024b70              #       last_offset 150384
          04 04 00 01                   #       acknowledge_types: 3 of int8: renew, gap, accept
          00                            #       no tags
        00                              #     no tags
      00                                #   no tags
    02                                  # forgotten_topics_data: 1
      550e8400e29b41d4a716446655440000  #   topic_id
      04 00000001 00000002 00000003     #   partitions 1, 2, 3
      00                                #   no tags
    00                                  # no tags
""")
SHARE_FETCH_VALUE = {
    "groupId": "order-processors",
    "memberId": "cV3KQsZpRt2cYdEofgsalQ",
    "shareSessionEpoch": 12,
    "maxWaitMs": 0,
    "minBytes": 0,
    "maxBytes": 0,
    "maxRecords": 0,
    "batchSize": 0,
    "shareAcquireMode": 1,
    "isRenewAck": True,
    "topics": [
        {
            "topicId": TOPIC_ID,
            "partitions": [
                {
                    "partitionIndex": 3,
                    "acknowledgementBatches": [
                        {"firstOffset": 150382, "lastOffset": 150384, "acknowledgeTypes": [4, 0, 1]}
                    ],
                }
            ],
        }
    ],
    "forgottenTopicsData": [{"topicId": TOPIC_ID, "partitions": [1, 2, 3]}],
}

DESCRIBE_QUORUM = hexes("""
    0000                                # error_code 0
    02                                  # topics: 1
      13 5f5f636c75737465725f6d65746164617461  # topic_name "__cluster_metadata"
      02                                #   partitions: 1
        00000000                        #     partition_index 0
        0000                            #     error_code 0
        00000001                        #     leader_id 1
        00000011                        #     leader_epoch 17
        0000000000045839                #     high_watermark 284729
        03                              #     current_voters: 2
          00000001                      #       replica_id 1, the leader
          000000000004583a              #       log_end_offset 284730
          0000019c5a3c1000              #       last_fetch_timestamp
          0000019c5a3c1000              #       last_caught_up_timestamp
          00                            #       no tags
          00000002                      #       replica_id 2
          0000000000045839              #       log_end_offset 284729
          0000019c5a3c0f00              #       last_fetch_timestamp
          0000019c5a3c0e00              #       last_caught_up_timestamp
          00                            #       no tags
        02                              #     observers: 1
          00000004                      #       replica_id 4
          ffffffffffffffff              #       log_end_offset -1: has not fetched from this leader
          ffffffffffffffff              #       last_fetch_timestamp -1
          ffffffffffffffff              #       last_caught_up_timestamp -1
          00                            #       no tags
        00                              #     no tags of the partition
      00                                #   no tags of the topic
    00                                  # no tags
""")
DESCRIBE_QUORUM_VALUE = {
    "errorCode": 0,
    "topics": [
        {
            "topicName": "__cluster_metadata",
            "partitions": [
                {
                    "partitionIndex": 0,
                    "errorCode": 0,
                    "leaderId": 1,
                    "leaderEpoch": 17,
                    "highWatermark": 284729,
                    "currentVoters": [
                        {
                            "replicaId": 1,
                            "logEndOffset": 284730,
                            "lastFetchTimestamp": 0x019C5A3C1000,
                            "lastCaughtUpTimestamp": 0x019C5A3C1000,
                        },
                        {
                            "replicaId": 2,
                            "logEndOffset": 284729,
                            "lastFetchTimestamp": 0x019C5A3C0F00,
                            "lastCaughtUpTimestamp": 0x019C5A3C0E00,
                        },
                    ],
                    "observers": [
                        {
                            "replicaId": 4,
                            "logEndOffset": -1,
                            "lastFetchTimestamp": -1,
                            "lastCaughtUpTimestamp": -1,
                        }
                    ],
                }
            ],
        }
    ],
}

MESSAGES = [
    pytest.param(*row, id=f"{row[0]}-v{row[1]}")
    for row in (
        ("ShareGroupDescribeResponse", 1, SHARE_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE_VALUE),
        ("StreamsGroupHeartbeatResponse", 0, STREAMS_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT_VALUE),
        ("ShareFetchRequest", 2, SHARE_FETCH, SHARE_FETCH_VALUE),
        ("DescribeQuorumResponse", 1, DESCRIBE_QUORUM, DESCRIBE_QUORUM_VALUE),
    )
]


@pytest.mark.parametrize(("name", "version", "data", "value"), MESSAGES)
def test_decodes_to_the_value(name: str, version: int, data: bytes, value: dict[str, Any]) -> None:
    decoded = kafkascope.decode(name, version, data)
    assert decoded.value == value
    assert decoded.exact
    assert decoded.reasons == ()
    assert decoded.unknown_tags == ()


@pytest.mark.parametrize(("name", "version", "data", "value"), MESSAGES)
def test_encodes_to_the_bytes(name: str, version: int, data: bytes, value: dict[str, Any]) -> None:
    assert kafkascope.encode(name, version, value) == data


@pytest.mark.parametrize(("name", "version", "data", "value"), MESSAGES)
def test_spans_name_every_byte(name: str, version: int, data: bytes, value: dict[str, Any]) -> None:
    decoded = kafkascope.decode(name, version, data, spans=True)
    assert decoded.value == value
    assert b"".join(data[span.start : span.end] for span in decoded.spans) == data


def test_releases_before_4_4_call_the_streams_lag_by_its_old_name() -> None:
    # protocol note 29
    value = kafkascope.decode("StreamsGroupHeartbeatResponse", 0, STREAMS_GROUP_HEARTBEAT, release="4.3").value
    assert value["acceptableRecoveryLag"] == 10000
    assert "acceptableRecoveryLagLegacy" not in value


# Examples in the definitions' spelling with dashed uuids, as documentation prints them.
EXAMPLES: list[tuple[str, int, dict[str, Any]]] = [
    (
        "ShareGroupDescribeResponse",
        1,
        {
            "ThrottleTimeMs": 0,
            "Groups": [
                {
                    "ErrorCode": 0,
                    "ErrorMessage": None,
                    "GroupId": "order-processors",
                    "GroupState": "Stable",
                    "GroupEpoch": 12,
                    "AssignmentEpoch": 12,
                    "AssignorName": "simple",
                    "Members": [
                        {
                            "MemberId": "consumer-1-abc123",
                            "RackId": None,
                            "MemberEpoch": 12,
                            "ClientId": "my-app-producer",
                            "ClientHost": "192.168.1.100",
                            "SubscribedTopicNames": ["value-1", "value-2"],
                            "Assignment": {
                                "TopicPartitions": [
                                    {
                                        "TopicId": "550e8400-e29b-41d4-a716-446655440000",
                                        "TopicName": "orders",
                                        "Partitions": [1, 2, 3],
                                    }
                                ]
                            },
                        }
                    ],
                    "AuthorizedOperations": -2147483648,
                }
            ],
        },
    ),
    (
        "StreamsGroupHeartbeatResponse",
        0,
        {
            "ThrottleTimeMs": 0,
            "ErrorCode": 0,
            "ErrorMessage": None,
            "MemberId": "consumer-1-abc123",
            "MemberEpoch": 12,
            "HeartbeatIntervalMs": 3000,
            # v0's own name until 4.3, and an alias since
            "AcceptableRecoveryLag": 0,
            "TaskOffsetIntervalMs": 150382,
            "Status": [{"StatusCode": 1, "StatusDetail": ""}],
            "ActiveTasks": [{"SubtopologyId": "abc-123", "Partitions": [1, 2, 3]}],
            "StandbyTasks": [{"SubtopologyId": "abc-123", "Partitions": [1, 2, 3]}],
            "WarmupTasks": [{"SubtopologyId": "abc-123", "Partitions": [1, 2, 3]}],
            "EndpointInformationEpoch": 12,
            "PartitionsByUserEndpoint": [
                {
                    "UserEndpoint": {"Host": "broker-1.kafka.local", "Port": 9092},
                    "ActivePartitions": [{"Topic": "orders", "Partitions": [1, 2, 3]}],
                    "StandbyPartitions": [{"Topic": "orders", "Partitions": [1, 2, 3]}],
                }
            ],
        },
    ),
    (
        "ShareFetchRequest",
        2,
        {
            "GroupId": "order-processors",
            "MemberId": "consumer-1-abc123",
            "ShareSessionEpoch": 12,
            # IsRenewAck: a broker refuses any of these but 0
            "MaxWaitMs": 0,
            "MinBytes": 0,
            "MaxBytes": 0,
            "MaxRecords": 0,
            "BatchSize": 0,
            "ShareAcquireMode": 1,
            "IsRenewAck": True,
            "Topics": [
                {
                    "TopicId": "550e8400-e29b-41d4-a716-446655440000",
                    "Partitions": [
                        {
                            "PartitionIndex": 3,
                            "AcknowledgementBatches": [
                                {"FirstOffset": 150382, "LastOffset": 150382, "AcknowledgeTypes": [4]}
                            ],
                        }
                    ],
                }
            ],
            "ForgottenTopicsData": [
                {"TopicId": "550e8400-e29b-41d4-a716-446655440000", "Partitions": [1, 2, 3]}
            ],
        },
    ),
    (
        "DescribeQuorumResponse",
        1,
        {
            "ErrorCode": 0,
            "Topics": [
                {
                    "TopicName": "__cluster_metadata",
                    "Partitions": [
                        {
                            "PartitionIndex": 0,
                            "ErrorCode": 0,
                            "LeaderId": 1,
                            "LeaderEpoch": 17,
                            "HighWatermark": 284729,
                            "CurrentVoters": [
                                {
                                    "ReplicaId": 1,
                                    "LogEndOffset": 284730,
                                    "LastFetchTimestamp": 0,
                                    "LastCaughtUpTimestamp": 0,
                                }
                            ],
                            "Observers": [
                                {
                                    "ReplicaId": 4,
                                    "LogEndOffset": 150382,
                                    "LastFetchTimestamp": 0,
                                    "LastCaughtUpTimestamp": 0,
                                }
                            ],
                        }
                    ],
                }
            ],
        },
    ),
]  # fmt: skip


def camel_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[:1].lower() + name[1:]: camel_keys(item) for name, item in value.items()}
    if isinstance(value, list):
        return [camel_keys(item) for item in value]
    return value


def kafka_uuids(value: Any) -> Any:
    """Dashed uuids of the examples in Kafka's own form: VQ6EAOKbQdSnFkRmVUQAAA."""
    if isinstance(value, dict):
        return {name: kafka_uuids(item) for name, item in value.items()}
    if isinstance(value, list):
        return [kafka_uuids(item) for item in value]
    return "VQ6EAOKbQdSnFkRmVUQAAA" if value == str(TOPIC_ID) else value


@pytest.mark.parametrize(("name", "version", "example"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_examples_in_the_definitions_spelling_encode_and_come_back(
    name: str, version: int, example: dict[str, Any]
) -> None:
    value = kafkascope.from_json(name, version, example)
    data = kafkascope.encode(name, version, value)
    decoded = kafkascope.decode(name, version, data)
    assert decoded.exact
    # 4.3's names are the example's: AcceptableRecoveryLag
    written = kafkascope.to_json(name, version, kafkascope.decode(name, version, data, "4.3").value, "4.3")
    assert written == kafka_uuids(camel_keys(example))


def test_share_fetch_example_without_member_is_written_as_null() -> None:
    _, _, example = EXAMPLES[2]
    value = kafkascope.from_json("ShareFetchRequest", 2, {**example, "MemberId": None})
    data = kafkascope.encode("ShareFetchRequest", 2, value)
    assert data[17:18] == hexes("00")  # member_id null, behind 17 bytes of group_id
