"""Lets `foreachBatch` release or reject records of its batch: a file per batch in a folder, which the driver's half of
the source reads before it acknowledges. A batch that runs again replaces its file.

    def land(rows, batch_id):
        with batch_outcomes("/checkpoints/orders-outcomes", batch_id) as outcomes:
            ...
            outcomes.release(rows.where("value IS NULL"))
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafkascope.client.share.values import SharePartition
from kafkascope.codec.json_form import parse_uuid
from kafkascope.errors import InputError, UsageError
from kafkascope.lake.place import Place, filesystem_errors, place_of
from kafkascope.pipeline.share.batch_offset import BatchOffset, Sets
from kafkascope.pipeline.share.ranges import OffsetSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MARK = "kafkascope-share"
_SUFFIX = ".json"
_RELEASE, _REJECT = "release", "reject"
_COLUMNS = ("topic_id", "partition", "offset", "_delivery_count")
# A batch's records, each for itself: a batch has 10,000 ranges at most, and a line of its file takes 60 bytes.
_MOST_BYTES = 64_000_000


class Outcomes:
    """Collects what happens to records of one batch; those that it doesn't name are accepted."""

    def __init__(self) -> None:
        self._rows: dict[str, list[list[Any]]] = {_RELEASE: [], _REJECT: []}

    def release(self, rows: "DataFrame") -> None:
        """These may be delivered again, to this query or to another member. They don't belong in the sink."""
        self._add(_RELEASE, rows)

    def reject(self, rows: "DataFrame") -> None:
        """Nobody gets these again."""
        self._add(_REJECT, rows)

    def to_json(self) -> str:
        return json.dumps(self._rows, separators=(",", ":"))

    def _add(self, kind: str, rows: "DataFrame") -> None:
        missing = [name for name in _COLUMNS if name not in rows.columns]
        if missing:
            raise UsageError(f"records to {kind} need the columns {', '.join(_COLUMNS)}; {missing[0]} is missing")
        self._rows[kind] += [list(row) for row in rows.select(*_COLUMNS).collect()]


@contextmanager
def batch_outcomes(folder: str, batch_id: int) -> Iterator[Outcomes]:
    """For each batch, also those without a failing record: it removes what an earlier run of the batch has left. If the
    block raises, nothing is written. `folder` is that of the source's option `outcomes`."""
    place = place_of(folder)
    if not place.child(_MARK).exists():
        raise UsageError(f"{folder}: no query has this folder as its option outcomes, so nothing would be acknowledged")
    outcomes = Outcomes()
    place.child(f"{batch_id}{_SUFFIX}").delete()
    yield outcomes
    place.child(f"{batch_id}{_SUFFIX}").write(outcomes.to_json().encode())


def prepare_folder(folder: str) -> None:
    """By the query, before its first batch."""
    place_of(folder).child(_MARK).create(b"")


def read_outcomes(folder: str, batch: BatchOffset) -> tuple[Sets, Sets]:
    """What is released and rejected of this batch. Files of earlier batches aren't needed any more and are deleted."""
    counts = _delivery_counts(batch)
    release, reject = Sets(), Sets()
    place = place_of(folder)
    for info in place.inside():
        if not info.base_name.endswith(_SUFFIX):
            continue
        file = place.child(info.base_name)
        known = False
        for kind, rows in _read(file).items():
            sets = release if kind == _RELEASE else reject
            for topic_id, number, offset, count in rows:
                partition = SharePartition(parse_uuid(topic_id), number)
                if _has(counts.get(partition, ()), offset, count):
                    known = True
                    sets.setdefault(partition, OffsetSet()).add(offset, offset)
        if not known:
            file.delete()
    return release, reject


def _delivery_counts(batch: BatchOffset) -> dict[SharePartition, list[tuple[int, int, int]]]:
    counts: dict[SharePartition, list[tuple[int, int, int]]] = {}
    for entry in batch.records:
        counts.setdefault(entry.partition, []).extend(
            (part.first, part.last, part.delivery_count) for part in entry.ranges
        )
    return counts


def _has(ranges: Iterable[tuple[int, int, int]], offset: int, count: int) -> bool:
    return any(first <= offset <= last and count == own for first, last, own in ranges)


def _read(file: Place) -> Mapping[str, list[list[Any]]]:
    with filesystem_errors(file.uri), file.filesystem.open_input_stream(file.path) as stream:
        content = bytes(stream.read(_MOST_BYTES))
    try:
        value = json.loads(content)
        return {kind: [[str(a), int(b), int(c), int(d)] for a, b, c, d in value[kind]] for kind in (_RELEASE, _REJECT)}
    except (ValueError, TypeError, KeyError):
        raise InputError(f"{file.uri}: not a file of batch_outcomes; is it another program's?") from None
