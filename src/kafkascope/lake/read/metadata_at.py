"""Returns the metadata of a cluster at a time or at an offset of the metadata log, from the mart of that name."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.capture.exchanges.exchange_columns import TIME
from kafkascope.errors import InputError, UsageError
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.times import iso

_MART = "metadata_at"


@dataclass(frozen=True, slots=True)
class PartitionState:
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """`topics` are ids by name, `partitions` by topic and number, `configs` by kind and name of the resource and name
    of the setting, with None for a hidden value. `acls` counts them by resource type; `brokers` says `active`,
    `fenced` or `shutting down`."""

    cluster_id: str | None
    topics: dict[str, str] = field(default_factory=dict)
    partitions: dict[tuple[str, int], PartitionState] = field(default_factory=dict)
    configs: dict[tuple[str, str, str], str | None] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    acls: dict[str, int] = field(default_factory=dict)
    brokers: dict[int, str] = field(default_factory=dict)


def metadata_at(
    lake: Lake, *, at: datetime | None = None, offset: int | None = None, cluster_id: str | None = None
) -> ClusterMetadata:
    """As of the end of the log, unless `at` or `offset` is given: the state after all records up to that one. `at`
    without a zone is UTC. A lake of several clusters needs `cluster_id`."""
    if at is not None and offset is not None:
        raise UsageError("metadata_at: give a time or an offset, not both")
    rows = dataset(lake, _MART).to_table(filter=_held(at, offset)).to_pylist()
    clusters = {row["cluster_id"] for row in rows}
    if cluster_id is None and len(clusters) > 1:
        names = ", ".join(sorted(name or "an unknown one" for name in clusters))
        raise UsageError(f"metadata_at: this lake has several clusters, name one: {names}")
    chosen = [row for row in rows if cluster_id is None or row["cluster_id"] == cluster_id]
    if not chosen:
        raise InputError(f"{lake.uri}: no metadata is known {_moment(at, offset)}")
    metadata = ClusterMetadata(chosen[0]["cluster_id"])
    for row in chosen:
        _add(metadata, row)
    return metadata


def _held(at: datetime | None, offset: int | None) -> pc.Expression:
    low, high = pc.field("from_offset"), pc.field("to_offset")
    if offset is not None:
        return (low <= offset) & (high.is_null() | (high > offset))
    if at is None:
        return high.is_null()
    moment = pa.scalar(at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC), TIME)
    return (pc.field("from_at") <= moment) & (high.is_null() | (pc.field("to_at") > moment))


def _moment(at: datetime | None, offset: int | None) -> str:
    return f"at offset {offset}" if offset is not None else "at the end" if at is None else f"at {iso(at)}"


def _add(metadata: ClusterMetadata, row: dict[str, Any]) -> None:
    kind = row["kind"]
    if kind == "topic":
        metadata.topics[row["topic"]] = row["topic_id"]
    elif kind == "partition":
        state = PartitionState(row["leader"], row["leader_epoch"], tuple(row["replicas"]), tuple(row["isr"]))
        metadata.partitions[row["topic"], row["partition"]] = state
    elif kind == "config":
        metadata.configs[row["resource_type"], row["resource"], row["name"]] = row["value"]
    elif kind == "feature":
        metadata.features[row["name"]] = int(row["value"])
    elif kind == "acls":
        metadata.acls[row["resource_type"]] = int(row["value"])
    elif kind == "broker":
        metadata.brokers[int(row["name"])] = row["value"]
