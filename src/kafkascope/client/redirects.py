"""Finds the error code in a response that asks to retry, elsewhere or later; None if the response is final."""

from collections.abc import Iterator, Mapping
from typing import Any

from kafkascope.client.targets import AnyBroker, Controller, Coordinator, Leader, Target

LEADER_NOT_AVAILABLE = 5
_NOT_LEADER_OR_FOLLOWER = 6
_COORDINATOR_LOAD_IN_PROGRESS = 14
_COORDINATOR_NOT_AVAILABLE = 15
_NOT_COORDINATOR = 16
_NOT_CONTROLLER = 41
_OFFSET_NOT_AVAILABLE = 78

COORDINATOR_CODES = frozenset((_COORDINATOR_LOAD_IN_PROGRESS, _COORDINATOR_NOT_AVAILABLE, _NOT_COORDINATOR))
# UNKNOWN_TOPIC_OR_PARTITION and UNKNOWN_TOPIC_ID: the leader that Metadata named hasn't received the metadata yet.
UNKNOWN_TOPICS = frozenset((3, 100))
_LEADER_CODES = frozenset((LEADER_NOT_AVAILABLE, _NOT_LEADER_OR_FOLLOWER, _OFFSET_NOT_AVAILABLE)) | UNKNOWN_TOPICS
# The right node, but not ready yet: a coordinator that reads its log, a leader that was just elected (KIP-207).
LATER_CODES = frozenset((_COORDINATOR_LOAD_IN_PROGRESS, _OFFSET_NOT_AVAILABLE))
_CONTROLLER_CODES = frozenset((_NOT_CONTROLLER, _NOT_LEADER_OR_FOLLOWER))
# Served only by the quorum's leader; other nodes return the same errors as for any partition (KIP-595).
_QUORUM_APIS = frozenset("DescribeQuorum AddRaftVoter RemoveRaftVoter UpdateRaftVoter FetchSnapshot".split())


def code_to_follow(api: str, target: Target, value: Mapping[str, Any]) -> int | None:
    """Only if all elements of a level have it: in a request about several groups or partitions, those on this node have
    their results, and the others' codes are data."""
    codes = _codes(api, target)
    if not codes:
        return None
    levels: dict[int, list[int]] = {}
    for depth, code in _error_codes(value, 0):
        levels.setdefault(depth, []).append(code)
    for level in levels.values():
        if all(code in codes for code in level):
            return level[0]
    return None


def _codes(api: str, target: Target) -> frozenset[int]:
    if isinstance(target, Leader):
        return _LEADER_CODES
    if isinstance(target, Coordinator):
        return COORDINATOR_CODES
    if isinstance(target, Controller) or (isinstance(target, AnyBroker) and api in _QUORUM_APIS):
        return _CONTROLLER_CODES
    return frozenset()


def _error_codes(value: Any, depth: int) -> Iterator[tuple[int, int]]:
    if isinstance(value, Mapping):
        code = value.get("errorCode")
        if isinstance(code, int):
            yield depth, code
        for item in value.values():
            if isinstance(item, Mapping | list):
                yield from _error_codes(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            if not isinstance(item, Mapping | list):
                break
            yield from _error_codes(item, depth)
