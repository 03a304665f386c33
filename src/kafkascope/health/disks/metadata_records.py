"""Defines what the metadata walk reads: a record of the metadata log or of a snapshot, and its codes as words."""

from typing import Any, NamedTuple

# ConfigResource.Type.
CONFIG_RESOURCES = {2: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
# ResourceType of an ACL.
ACL_RESOURCES = {2: "topic", 3: "group", 4: "cluster", 5: "transactional_id", 6: "delegation_token", 7: "user"}
# PartitionChangeRecord: the leader stays.
SAME_LEADER = -2
NO_LEADER = -1


class MetadataRecord(NamedTuple):
    """`type` is the name of its table, `value` has that table's columns. Records of a snapshot come before those of the
    log from `snapshot_offset` on; `file` is theirs."""

    offset: int
    at_us: int | None
    type: str
    value: dict[str, Any]
    snapshot_offset: int | None = None
    file: str | None = None


def word(words: dict[int, str], code: int | None) -> str | None:
    return None if code is None else words.get(code, str(code))
