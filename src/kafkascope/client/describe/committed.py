"""Fetches the committed offsets of a group with whichever OffsetFetch version the broker has."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import FAILURES, Gap, error_gap, failure_gap, only_row
from kafkascope.client.describe.offsets import Offset
from kafkascope.client.describe.values import TopicPartition, known_or_none

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

# From version 10 on topics have ids, and topics deleted since have no name.
_LAST_WITH_NAMES = 9
_FIRST_WITH_GROUPS = 8


def committed_offsets(
    value: Mapping[str, Any],
) -> tuple[dict[TopicPartition, Offset], int, list[tuple[TopicPartition, int]]]:
    """An OffsetFetch response of version 2 to 9: offsets with their leader epoch, the group's error code, partitions
    with an error."""
    part = only_row(value["groups"], "OffsetFetch") if "groups" in value else value
    offsets: dict[TopicPartition, Offset] = {}
    errors = []
    for topic in part["topics"]:
        for partition in topic["partitions"]:
            place = (topic["name"], partition["partitionIndex"])
            if partition["errorCode"]:
                errors.append((place, partition["errorCode"]))
            elif partition["committedOffset"] >= 0:
                offsets[place] = Offset(
                    partition["committedOffset"], known_or_none(partition.get("committedLeaderEpoch", -1))
                )
    return offsets, part["errorCode"], errors


async def fetch_committed(cluster: "Cluster", group_id: str) -> tuple[dict[TopicPartition, Offset], list[Gap]]:
    """All offsets of the group that may be seen: brokers leave out topics without Describe."""
    from kafkascope.client.describe.calls import call_with_retries, group_target, served_versions

    versions = await served_versions(cluster, "OffsetFetch")
    version = min(_LAST_WITH_NAMES, versions[1] if versions else _LAST_WITH_NAMES)
    request: dict[str, Any] = {"groupId": group_id, "topics": None}
    if version >= _FIRST_WITH_GROUPS:
        request = {"groups": [{"groupId": group_id, "topics": None}]}

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        code = committed_offsets(value)[1]
        return error_gap("committed offsets", "OffsetFetch", code, group_id) if code else None

    target = group_target(group_id)
    try:
        with cluster.part():
            response, gap = await call_with_retries(
                cluster, "OffsetFetch", request, verdict, to=target, version=version
            )
    except FAILURES as error:
        return {}, [failure_gap("committed offsets", "OffsetFetch", error)]
    if gap is not None:
        return {}, [gap]
    offsets, _, errors = committed_offsets(response.value)
    return offsets, [
        error_gap(f"the committed offset of {topic}-{partition}", "OffsetFetch", code, topic)
        for (topic, partition), code in errors
    ]
