"""Names the files of a log directory by Kafka's own rules, without opening them.

A file that Kafka has put aside (deleted, swapped, cleaned, half downloaded) keeps its kind and gets a reason to be left
alone."""

import re
from dataclasses import dataclass

SEGMENT = "segment"
SNAPSHOT = "snapshot"
OFFSET_INDEX = "offset index"
TIME_INDEX = "time index"
TRANSACTION_INDEX = "transaction index"
PRODUCER_SNAPSHOT = "producer snapshot"
LEADER_EPOCHS = "leader epochs"
OFFSET_CHECKPOINT = "offsets"
PARTITION_METADATA = "partition metadata"
META_PROPERTIES = "meta properties"
QUORUM_STATE = "quorum state"
CLEAN_SHUTDOWN = "clean shutdown"
UNKNOWN_FILE = "unknown"
# Files of record batches, and those small enough to be shown beside them.
OF_BATCHES = (SEGMENT, SNAPSHOT)
INDEXES = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
SMALL_FILES = (LEADER_EPOCHS, OFFSET_CHECKPOINT, PARTITION_METADATA, META_PROPERTIES, QUORUM_STATE, CLEAN_SHUTDOWN)

_ENDINGS = {
    ".log": SEGMENT,
    ".checkpoint": SNAPSHOT,
    ".index": OFFSET_INDEX,
    ".timeindex": TIME_INDEX,
    ".txnindex": TRANSACTION_INDEX,
    ".snapshot": PRODUCER_SNAPSHOT,
}
_WHOLE_NAMES = {
    "leader-epoch-checkpoint": LEADER_EPOCHS,
    "recovery-point-offset-checkpoint": OFFSET_CHECKPOINT,
    "replication-offset-checkpoint": OFFSET_CHECKPOINT,
    "log-start-offset-checkpoint": OFFSET_CHECKPOINT,
    "cleaner-offset-checkpoint": OFFSET_CHECKPOINT,
    "partition.metadata": PARTITION_METADATA,
    "meta.properties": META_PROPERTIES,
    "quorum-state": QUORUM_STATE,
    ".kafka_cleanshutdown": CLEAN_SHUTDOWN,
    "bootstrap.checkpoint": SNAPSHOT,
}
_LOCK = ".lock"
FOREIGN = "not a file of a Kafka log"
# What Kafka appends to a name: LogFileUtils, and Snapshots and CheckpointFile for the last two.
_ASIDE = {
    ".deleted": "deleted: the broker removes it",
    ".swap": "a swap file: the broker renames it when a compaction is complete",
    ".cleaned": "a cleaned file: a compaction is still writing it",
    ".part": "a snapshot that is still being received",
    ".tmp": "a checkpoint that is still being written",
}
_FOLDERS_ASIDE = {
    "delete": "its topic is deleted: the broker removes it",
    "future": "a copy that is moving to this disk",
    "stray": "the broker that has it is no longer a replica",
}
# 20 digits of base offset; a metadata snapshot also has its epoch.
_START = re.compile(r"(\d{20})(?:-(\d{10}))?")
_PARTITION = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,10})")
_PARTITION_ASIDE = re.compile(r"(?P<topic>\S+)-(?P<partition>\d{1,10})\.\S+-(?P<aside>delete|future|stray)")


@dataclass(frozen=True, slots=True)
class Name:
    """What a file's name says. `left_alone` is why its content isn't read; None for a file in use."""

    kind: str
    base_offset: int | None = None
    epoch: int | None = None
    left_alone: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """What a folder's name says."""

    topic: str
    partition: int
    left_alone: str | None = None


def name_of(name: str) -> Name:
    left_alone = None
    for ending, reason in _ASIDE.items():
        if name.endswith(ending):
            name, left_alone = name.removesuffix(ending), reason
            break
    if name == _LOCK:
        return Name(UNKNOWN_FILE, left_alone="a broker's lock on its disk")
    if (kind := _WHOLE_NAMES.get(name)) is not None:
        return Name(kind, left_alone=left_alone)
    stem, dot, ending = name.rpartition(".")
    kind = _ENDINGS.get(dot + ending)
    start = _START.fullmatch(stem)
    if kind is None or start is None or (start[2] is not None) != (kind == SNAPSHOT):
        return Name(UNKNOWN_FILE, left_alone=left_alone or FOREIGN)
    return Name(kind, int(start[1]), None if start[2] is None else int(start[2]), left_alone)


def partition_of(name: str) -> Partition | None:
    """None for a folder that isn't a partition's."""
    match = _PARTITION_ASIDE.fullmatch(name)
    if match is not None:
        return Partition(match["topic"], int(match["partition"]), _FOLDERS_ASIDE[match["aside"]])
    match = _PARTITION.fullmatch(name)
    return None if match is None else Partition(match["topic"], int(match["partition"]))
