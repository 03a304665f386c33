"""Builds ShareFetch and ShareAcknowledge requests as the codec takes them, and fits them to the version that a broker
serves."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from kafkascope.client.share.values import AcknowledgeRange, FetchLimits, SharePartition

FETCH_API, ACKNOWLEDGE_API = "ShareFetch", "ShareAcknowledge"
# Fields that came with version 2 (KIP-1206, KIP-1222), and the value that means the same as leaving it out.
_SINCE_2: dict[str, dict[str, Any]] = {
    FETCH_API: {"shareAcquireMode": 0, "isRenewAck": False},
    ACKNOWLEDGE_API: {"isRenewAck": False},
}
# A range of one type takes 18 bytes, an offset in a list of types takes one.
_WORTH_A_LIST = 16
# Types of one batch: what a broker has to keep in one piece.
_MOST_TYPES = 4_096

Acknowledgements = Mapping[SharePartition, list[AcknowledgeRange]]


def fetch_request(
    group: str,
    member_id: str,
    epoch: int,
    limits: FetchLimits,
    added: Iterable[SharePartition],
    forgotten: Iterable[SharePartition],
    acknowledged: Acknowledgements,
) -> dict[str, Any]:
    """A fetch of all partitions of the session. `added` are new to it, `forgotten` leave it."""
    batches = {partition: _batches(ranges) for partition, ranges in acknowledged.items()}
    for partition in added:
        batches.setdefault(partition, [])
    return {
        "groupId": group,
        "memberId": member_id,
        "shareSessionEpoch": epoch,
        "maxWaitMs": round(limits.max_wait * 1000),
        "minBytes": limits.min_bytes,
        "maxBytes": limits.max_bytes,
        "maxRecords": limits.max_records,
        "batchSize": limits.max_records,
        "shareAcquireMode": int(limits.mode),
        "isRenewAck": False,
        "topics": _topics(batches),
        "forgottenTopicsData": [
            {"topicId": topic_id, "partitions": numbers} for topic_id, numbers in _by_topic(forgotten).items()
        ],
    }


def acknowledge_request(group: str, member_id: str, epoch: int, acknowledged: Acknowledgements) -> dict[str, Any]:
    renews = any(part.type == 4 for ranges in acknowledged.values() for part in ranges)
    return {
        "groupId": group,
        "memberId": member_id,
        "shareSessionEpoch": epoch,
        "isRenewAck": renews,
        "topics": _topics({partition: _batches(ranges) for partition, ranges in acknowledged.items()}),
    }


def for_version(api: str, value: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The request without the fields that version 1 lacks; all others are served from version 1 on."""
    left_out = _SINCE_2[api] if version < 2 and api in _SINCE_2 else {}
    return {name: content for name, content in value.items() if name not in left_out}


def needs_version_2(api: str, value: Mapping[str, Any]) -> bool:
    return any(value[name] != default for name, default in _SINCE_2.get(api, {}).items())


def _batches(ranges: list[AcknowledgeRange]) -> list[dict[str, Any]]:
    """Short neighbouring ranges go as one batch with a type for each offset."""
    batches: list[dict[str, Any]] = []
    short = False
    for first, last, kind in ranges:
        size = last - first + 1
        previous = batches[-1] if batches else None
        if (
            short
            and size <= _WORTH_A_LIST
            and previous is not None
            and previous["lastOffset"] == first - 1
            and len(types := _all_types(previous)) + size <= _MOST_TYPES
        ):
            previous["acknowledgeTypes"] = types + [int(kind)] * size
            previous["lastOffset"] = last
            continue
        batches.append({"firstOffset": first, "lastOffset": last, "acknowledgeTypes": [int(kind)]})
        short = size <= _WORTH_A_LIST
    return batches


def _all_types(batch: Mapping[str, Any]) -> list[int]:
    types: list[int] = batch["acknowledgeTypes"]
    return types if len(types) > 1 else types * (batch["lastOffset"] - batch["firstOffset"] + 1)


def _topics(batches: Mapping[SharePartition, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [
        {
            "topicId": topic_id,
            "partitions": [
                {"partitionIndex": number, "acknowledgementBatches": batches[SharePartition(topic_id, number)]}
                for number in numbers
            ],
        }
        for topic_id, numbers in _by_topic(batches).items()
    ]


def _by_topic(partitions: Iterable[SharePartition]) -> dict[UUID, list[int]]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, number in partitions:
        topics.setdefault(topic_id, []).append(number)
    return topics
