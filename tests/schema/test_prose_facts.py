"""What our prose says of Kafka's behaviour, where it was wrong once; each row names the code that decides."""

import pytest

from kafkascope.schema.catalog import message
from kafkascope.schema.errors.error_codes import cause_and_remedy
from kafkascope.schema.prose import paragraphs, sentence


def about(place: str) -> str:
    """The prose of a message, a field by its full place, or an error's cause."""
    name, *path = place.split(".")
    if name.isupper():
        return cause_and_remedy(name)[0]
    if not path:
        return " ".join(paragraphs(message(name)))
    text = sentence(message(name), tuple(path))
    assert text, place
    return text


@pytest.mark.parametrize(
    ("place", "says", "says_not"),
    [
        # ClusterControlManager.unregisterController
        ("UnregisterControllerRequest", "CONTROLLER_ID_NOT_REGISTERED", "BROKER_ID_NOT_REGISTERED"),
        # QuorumController.unregisterController of 4.4: nodeId == controllerId
        ("UnregisterControllerRequest", "INVALID_REQUEST", None),
        # KafkaApis.handleShareAcknowledgeRequest: releaseSession's result is only logged
        ("ShareAcknowledgeResponse.Responses", "isn't listed", "also those that were released"),
        # GroupMetadataManager: the record keeps topics until the share coordinator has dropped their state; only
        # shareGroupBuildPartitionDeleteRequest and sharePartitionsEligibleForOffsetDeletion try again
        ("ShareGroupStatePartitionMetadataValue.DeletingTopics", "until the next such deletion succeeds", "Retried"),
        ("ShareGroupDescribeResponse", "target assignment", "know no target"),
        # Partition.readRecords: beyond the log end, not beyond the high watermark
        ("OFFSET_OUT_OF_RANGE", "past the log end", "or above the high watermark"),
        # ShareCoordinatorShard: *_UNINITIALIZED_SHARE_PARTITION is INVALID_REQUEST
        ("UNKNOWN_TOPIC_OR_PARTITION", "DeleteShareGroupOffsets", "Share state calls"),
        ("ReadShareGroupStateResponse.Results.Partitions.ErrorCode", "INVALID_REQUEST since 4.1", None),
        ("WriteShareGroupStateResponse.Results.Partitions.ErrorCode", "INVALID_REQUEST since 4.1", None),
        # ConsumerGroup.validateMemberEpoch and validateOffsetCommit
        ("STALE_MEMBER_EPOCH", "older or newer", "older than the member's"),
        # createAssignmentEpochValidator is in ConsumerGroup since 4.3 and in StreamsGroup since 4.2
        ("STALE_MEMBER_EPOCH", "Since 4.3 (streams groups: 4.2)", None),
        # SharePartition.fetchPersisterError
        ("ShareFetchResponse", "gets NOT_LEADER_OR_FOLLOWER, even if the leader is still the same", None),
        ("FENCED_STATE_EPOCH", "a member gets NOT_LEADER_OR_FOLLOWER", None),
        # SharePartition.initiateDLQAndArchive of 4.4 (KIP-1191)
        ("ShareAcknowledgeRequest", "errors.deadletterqueue.topic.name", None),
        ("WriteShareGroupStateRequest", "it turns to 3 first", None),
        ("WriteShareGroupStateRequest.Topics.Partitions.StateBatches.DeliveryState", "3 archiving", None),
        # KRaft: ReplicatedLog.endOffset against the candidate's, before a vote is granted
        ("DescribeQuorumResponse", "a voter that lags behind a majority can't become leader", None),
        # GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures of 4.3 and 4.4
        ("StreamsGroupHeartbeatRequest", "Topic patterns and a changed topology are rejected up to 4.4", None),
        ("StreamsGroupHeartbeatRequest.Topology.Subtopologies.SourceTopicRegex", "up to 4.4", None),
        ("StreamsGroupHeartbeatResponse.WarmupTasks", "No assignor up to 4.4", None),
    ],
)
def test_a_corrected_fact_stays_corrected(place: str, says: str, says_not: str | None) -> None:
    words = about(place)
    assert says in words
    assert says_not is None or says_not not in words
