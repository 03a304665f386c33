"""Counts a share group's records per time step: by outcome, redeliveries by partition, and what each member held.
The number of steps is bounded."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.health.share.events import Outcome
from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import batches
from kafkascope.report.summaries.buckets import Buckets
from kafkascope.report.summaries.scope import Scope, both, of_groups

OUTCOMES: tuple[str, ...] = get_args(Outcome)
_COLUMNS = (
    "group_id topic topic_id partition member_id client_id outcome delivery_count first_offset last_offset acquired_at"
    " outcome_at"
).split()

Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Pictures:
    """Counts of one group. `ended` is outcome × step, `again` partition × step, `held` member × outcome × step. `held`
    counts the records that a member held at any time of the step, by their later outcome."""

    buckets: Buckets
    places: Sequence[str]
    members: Sequence[tuple[str, str | None]]
    ended: Ints = field(init=False)
    again: Ints = field(init=False)
    held: Ints = field(init=False)
    _changes: Ints = field(init=False)

    def __post_init__(self) -> None:
        steps, outcomes = self.buckets.count, len(OUTCOMES)
        self.ended = np.zeros((outcomes, steps), np.int64)
        self.again = np.zeros((len(self.places), steps), np.int64)
        self.held = np.zeros((len(self.members), outcomes, steps), np.int64)
        # Records acquired in a step, less those that ended before it; one more step, for the last to end.
        self._changes = np.zeros((len(self.members), outcomes, steps + 1), np.int64)

    def add(self, rows: pa.Table) -> None:
        outcome = _codes(rows["outcome"], OUTCOMES)
        rows, outcome = rows.filter(pa.array(outcome >= 0)), outcome[outcome >= 0]
        if not len(rows):
            return
        records = _ints(pc.add(pc.subtract(rows["last_offset"], rows["first_offset"]), 1), 0)
        acquired, acquired_in = self._steps(pc.coalesce(rows["acquired_at"], rows["outcome_at"]), 0)
        ended, ended_in = self._steps(rows["outcome_at"], self.buckets.count - 1)
        has_ended = rows["outcome_at"].is_valid().to_numpy()
        # Records still held have no end: they count where they began.
        step, inside = np.where(has_ended, ended, acquired), np.where(has_ended, ended_in, acquired_in)
        self._sum(self.ended, (outcome, step), records, inside)
        places = pc.binary_join_element_wise(
            pc.coalesce(rows["topic"], rows["topic_id"], ""), rows["partition"].cast(pa.string()), "-"
        )
        place = _codes(places, self.places)
        again = pc.greater(pc.fill_null(rows["delivery_count"], 1), 1).to_numpy()
        self._sum(self.again, (place, acquired), records, (place >= 0) & again & acquired_in)
        member = _codes(
            _member_keys(rows["member_id"], rows["client_id"]), [_member_key(*member) for member in self.members]
        )
        self._sum(self._changes, (member, outcome, acquired), records, member >= 0)
        self._sum(self._changes, (member, outcome, np.maximum(ended, acquired) + 1), -records, member >= 0)

    def finish(self) -> None:
        self.held = self._changes[:, :, :-1].cumsum(axis=2)

    def _steps(self, times: pa.ChunkedArray, otherwise: int) -> tuple[Ints, _Flags]:
        """The step of each time, or the nearest one, and whether the time is inside."""
        step = (_ints(times, self.buckets.start(otherwise)) - self.buckets.first_at) // self.buckets.step_us
        return np.clip(step, 0, self.buckets.count - 1), (step >= 0) & (step < self.buckets.count)

    @staticmethod
    def _sum(into: Ints, at: tuple[Ints, ...], records: Ints, chosen: _Flags) -> None:
        np.add.at(into, tuple(index[chosen] for index in at), records[chosen])


def _member_key(member_id: str, client_id: str | None) -> str:
    return f"{member_id}\0{client_id or ''}"


def _member_keys(member_ids: pa.ChunkedArray, client_ids: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(pc.fill_null(member_ids, ""), pc.fill_null(client_ids, ""), "\0")


def _codes(values: pa.ChunkedArray, vocabulary: Sequence[str]) -> Ints:
    """Positions in `known`, -1 for unknown values."""
    return _ints(pc.index_in(values, value_set=pa.array(vocabulary, pa.string())), -1)


def _ints(values: pa.ChunkedArray, otherwise: int) -> Ints:
    integers: Ints = pc.fill_null(values.cast(pa.int64()), otherwise).to_numpy()
    return integers


def draw(lake: Lake, scope: Scope, pictures: dict[str, Pictures]) -> None:
    """Counts all groups in one pass."""
    if not pictures:
        return
    where = both(of_groups(pictures), scope.over("acquired_at", "outcome_at"))
    for batch in batches(lake, "share_deliveries", _COLUMNS, where):
        table = pa.Table.from_batches([batch])
        for group_id in pc.unique(table["group_id"]).to_pylist():
            pictures[group_id].add(table.filter(pc.equal(table["group_id"], group_id)))
    for picture in pictures.values():
        picture.finish()
