"""What a lake has of each log, by offset and leader epoch: so a segment that grew goes on where it ended, and one that
was compacted, or read from another disk of its broker, brings nothing twice."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.lake.home import Lake
from kafkascope.lake.log_tables import LOG_SEGMENTS
from kafkascope.lake.place import readable
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.logs.files import SEGMENT
from kafkascope.pipeline.disks.log_inputs import log_key

_COLUMNS = [
    "capture_uri",
    "cluster_id",
    "broker",
    "topic",
    "topic_id",
    "partition",
    "kind",
    "base_offset",
    "first_offset",
    "end_offset",
    "leader_epoch",
    "start_position",
    "end_position",
]


@dataclass(frozen=True, slots=True, order=True)
class Known:
    """Offsets from `first` up to `end`, of leaders up to `epoch`: a later leader may have reused them."""

    first: int
    end: int
    epoch: int


@dataclass(frozen=True, slots=True)
class KnownLog:
    """`ends` maps the base offset of a segment to (offset, position) where it was read to, and the latest leader epoch
    in it."""

    known: tuple[Known, ...] = ()
    ends: Mapping[int, tuple[int, int, int]] | None = None

    def from_offset(self, base_offset: int) -> tuple[Known, ...]:
        return tuple(part for part in self.known if part.end > base_offset)


KnownLogs = dict[str, KnownLog]


def known_logs(lake: Lake) -> KnownLogs:
    if not lake.has(LOG_SEGMENTS):
        return {}
    with readable(lake.table(LOG_SEGMENTS).uri):
        rows = dataset(lake, LOG_SEGMENTS).to_table(columns=_COLUMNS).to_pylist()
    by_log: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        # A lake is untrusted input, and a file in which nothing was new says nothing.
        if row["kind"] == SEGMENT and row["end_offset"] is not None and row["first_offset"] is not None:
            key = log_key(
                row["capture_uri"] or "", row["cluster_id"], row["broker"], row["topic"], row["topic_id"],
                row["partition"],
            )  # fmt: skip
            by_log.setdefault(key, []).append(row)
    return {key: _known_log(rows) for key, rows in by_log.items()}


def _known_log(rows: list[dict[str, Any]]) -> KnownLog:
    parts = []
    ends: dict[int, tuple[int, int, int]] = {}
    for row in rows:
        base, end = row["base_offset"], row["end_offset"]
        # All of a segment before its first new batch was known, or has been compacted away.
        epoch = -1 if row["leader_epoch"] is None else row["leader_epoch"]
        first = row["first_offset"] if base is None or row["start_position"] else min(base, row["first_offset"])
        parts.append(Known(first, end, epoch))
        if base is not None and row["end_position"] is not None:
            offset, position, latest = ends.get(base, (0, 0, -1))
            ends[base] = (*max((offset, position), (end, row["end_position"])), max(latest, epoch))
    return KnownLog(merged(parts), ends)


def merged(parts: Iterable[Known]) -> tuple[Known, ...]:
    """Neighbours of the same epoch as one."""
    whole: list[Known] = []
    for part in sorted(parts):
        last = whole[-1] if whole else None
        if last is not None and last.epoch == part.epoch and part.first <= last.end:
            whole[-1] = Known(last.first, max(last.end, part.end), last.epoch)
        else:
            whole.append(part)
    return tuple(whole)


def is_new(
    known: Iterable[Known], last_offsets: npt.NDArray[np.int64], epochs: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which of the batches, by their last offsets, no earlier ingest has read."""
    new = np.ones(len(last_offsets), np.bool_)
    for part in known:
        new &= (last_offsets < part.first) | (last_offsets >= part.end) | (epochs > part.epoch)
    return new
