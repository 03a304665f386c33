"""The rules of pairing, in plain Python: every frame is compared with all that wait. The kernel must come to the same
pairs in the same order."""

from typing import NamedTuple

import numpy as np

from kafkascope.capture.base.flow import (
    FrameKind,
)
from kafkascope.capture.exchanges.pairing import (
    EARLIEST_NS,
    IN_DOUBT,
    LONGEST_WAIT_NS,
    LOST_BEHIND,
    LOST_WITH,
    ROW_COST,
    PairStatus,
)
from kafkascope.capture.frames.headers import (
    Frame,
    FrameRows,
)


class Outcome(NamedTuple):
    """(request, response, status) of each pair, rows that wait with what was lost meanwhile, answers that were lost."""

    pairs: list[tuple[int, int, int]]
    left: list[tuple[int, int]]
    lost_answers: int


class Model:
    def __init__(self, rows: FrameRows) -> None:
        self._rows = rows.copy()
        self._lists: dict[tuple[int, int], list[int]] = {}
        self._pairs: list[tuple[int, int, int]] = []
        self._lost = 0

    def pair(self, waiting: int, *, most_bytes: int, finish: bool) -> Outcome:
        rows = self._rows
        for index in range(len(rows)):
            kind, connection, side = (
                int(rows[index, column]) for column in (Frame.KIND, Frame.CONNECTION, Frame.RESPONSE)
            )
            mine, others = (self._lists.setdefault((connection, which), []) for which in (side, 1 - side))
            if kind == FrameKind.LOST:
                rows[mine if side == 0 else [], Frame.AFTER_LOSS] |= LOST_BEHIND
                rows[others, Frame.AFTER_LOSS] |= LOST_WITH if side else LOST_BEHIND
            elif kind == FrameKind.ENDED:
                self._alone(others, list(others))
            elif kind in (FrameKind.FRAME, FrameKind.TOKEN) and side == 0 and rows[index, Frame.NO_ANSWER]:
                self._pairs.append((index, -1, PairStatus.NO_ANSWER_EXPECTED))
            elif kind in (FrameKind.FRAME, FrameKind.TOKEN):
                self._meet(index, mine, others, known=index < waiting)
        self._end(most_bytes, finish=finish)
        left = sorted(at for waits in self._lists.values() for at in waits)
        return Outcome(self._pairs, [(at, int(rows[at, Frame.AFTER_LOSS])) for at in left], self._lost)

    def _meet(self, index: int, mine: list[int], others: list[int], *, known: bool) -> None:
        """A frame that wants its other half; one that waited before has looked for it already."""
        rows, row = self._rows, self._rows[index]
        is_response = bool(row[Frame.RESPONSE])
        if not known and not is_response:
            while others and row[Frame.LAST_NS] - rows[others[0], Frame.FIRST_NS] > EARLIEST_NS:
                self._alone(others, others[:1])
        alike = [] if known else [at for at in others if self._is_alike(at, index)]
        if alike and not is_response and rows[alike[0], Frame.AFTER_LOSS] and len(alike) > 1:
            self._alone(others, alike)
            row[Frame.AFTER_LOSS] |= IN_DOUBT
            mine.append(index)
        elif alike and not is_response:
            others.remove(alike[0])
            self._pairs.append((index, alike[0], PairStatus.ANSWERED))
        elif alike:
            self._alone(others, others[: others.index(alike[0])])
            mark = int(rows[alike[0], Frame.AFTER_LOSS])
            if mark and (len(alike) > 1 or mark & IN_DOUBT):
                self._alone(others, alike[:1])
                self._pairs.append((-1, index, PairStatus.ANSWER_ONLY))
            else:
                others.remove(alike[0])
                self._pairs.append((alike[0], index, PairStatus.ANSWERED))
        else:
            if mine and not known and not is_response and rows[mine[-1], Frame.AFTER_LOSS]:
                row[Frame.AFTER_LOSS] |= IN_DOUBT if rows[mine[-1], Frame.CORRELATION] == row[Frame.CORRELATION] else 0
            mine.append(index)

    def _is_alike(self, at: int, index: int) -> bool:
        waits, row = self._rows[at], self._rows[index]
        return bool(
            waits[Frame.KIND] == row[Frame.KIND]
            and (row[Frame.KIND] == FrameKind.TOKEN or waits[Frame.CORRELATION] == row[Frame.CORRELATION])
        )

    def _alone(self, waits: list[int], which: list[int]) -> None:
        for at in which:
            waits.remove(at)
            if self._rows[at, Frame.RESPONSE]:
                self._pairs.append((-1, at, PairStatus.ANSWER_ONLY))
            else:
                self._pairs.append((at, -1, PairStatus.UNANSWERED))
                self._lost += int(self._rows[at, Frame.AFTER_LOSS]) & LOST_WITH

    def _end(self, most_bytes: int, *, finish: bool) -> None:
        """The oldest go while there are too many; at the end of the recording all do."""
        newest = int(self._rows[:, Frame.LAST_NS].max()) if len(self._rows) else 0
        left = sorted((at, waits) for waits in self._lists.values() for at in tuple(waits))
        held = sum(int(self._rows[at, Frame.SIZE]) + ROW_COST for at, _ in left)
        for at, waits in left:
            if finish or held > most_bytes or newest - self._rows[at, Frame.LAST_NS] > LONGEST_WAIT_NS:
                self._alone(waits, [at])
                held -= int(self._rows[at, Frame.SIZE]) + ROW_COST


def paired(rows: FrameRows, waiting: int, *, most_bytes: int, finish: bool) -> Outcome:
    return Model(np.asarray(rows)).pair(waiting, most_bytes=most_bytes, finish=finish)
