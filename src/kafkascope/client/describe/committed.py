"""A group's id in, its committed offsets out, in whichever layout the broker's version has them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import FAILURES, Gap, first, gap, no_answer
from kafkascope.client.describe.offsets import Offset
from kafkascope.client.describe.values import Place, known

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

# From version 10 on topics go by id, and those that were deleted since have a name no more.
LAST_WITH_NAMES = 9
FIRST_WITH_GROUPS = 8


def committed_in(value: Mapping[str, Any]) -> tuple[dict[Place, Offset], int, list[tuple[Place, int]]]:
    """An OffsetFetch answer of version 2 to 9: offsets with their leader epoch, the group's error code, partitions
    with an error."""
    part = first(value["groups"], "OffsetFetch") if "groups" in value else value
    found: dict[Place, Offset] = {}
    errors = []
    for topic in part["topics"]:
        for one in topic["partitions"]:
            place = (topic["name"], one["partitionIndex"])
            if one["errorCode"]:
                errors.append((place, one["errorCode"]))
            elif one["committedOffset"] >= 0:
                found[place] = Offset(one["committedOffset"], known(one.get("committedLeaderEpoch", -1)))
    return found, part["errorCode"], errors


async def committed_of(cluster: "Cluster", group_id: str) -> tuple[dict[Place, Offset], list[Gap]]:
    """All that the group has committed, as far as it may be seen: topics without Describe are left out by brokers."""
    from kafkascope.client.describe.asking import group_target, serves, settled

    versions = await serves(cluster, "OffsetFetch")
    version = min(LAST_WITH_NAMES, versions[1] if versions else LAST_WITH_NAMES)
    asked: dict[str, Any] = {"groupId": group_id, "topics": None}
    if version >= FIRST_WITH_GROUPS:
        asked = {"groups": [{"groupId": group_id, "topics": None}]}

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        code = committed_in(value)[1]
        return gap("committed offsets", "OffsetFetch", code, group_id) if code else None

    target = group_target(group_id)
    try:
        with cluster.part():
            answer, lack = await settled(cluster, "OffsetFetch", asked, verdict, to=target, version=version)
    except FAILURES as error:
        return {}, [no_answer("committed offsets", "OffsetFetch", error)]
    if lack is not None:
        return {}, [lack]
    found, _, errors = committed_in(answer.value)
    return found, [
        gap(f"the committed offset of {topic}-{partition}", "OffsetFetch", code, topic)
        for (topic, partition), code in errors
    ]
