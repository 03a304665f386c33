"""Says for one part of the marts from where it is built, and how its files are named: by the segment of their rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kafkascope.lake.active import ActiveFile
from kafkascope.pipeline.mart.increments.checkpoints import BEGINNING, NO_CHANGE

_SEGMENT = re.compile(r"mart-s(\d{1,18})-")
_STATE = re.compile(r"mart-s(\d{1,18})-([a-z]+)-")


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows and events from `since` on are read, a checkpoint or the beginning. State is kept at `marks`, which come
    after it, and stays at `earlier` ones. `run` names the files of this build."""

    part: str
    since: int
    marks: tuple[int, ...]
    run: str
    earlier: tuple[int, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether the part stays as it is."""
        return self.since == NO_CHANGE

    @property
    def starts(self) -> tuple[int, ...]:
        return (self.since, *self.marks)

    @property
    def tail(self) -> int:
        """The start of the last segment, which the next build rebuilds."""
        return self.starts[-1]

    def prefix(self, start: int) -> str:
        """Of the files of a mart whose rows are of the segment that starts there."""
        return f"mart-s{start}-{self.run}"

    def state_prefix(self, mark: int) -> str:
        return f"mart-s{mark}-{self.part}-{self.run}"

    def segment(self, at: str) -> str:
        """SQL: the number of marks up to a time in microseconds; all of them without a time."""
        return f"size(filter({_array(self.marks)}, mark -> {at} IS NULL OR mark <= {at}))"

    def start(self, at: str) -> str:
        """SQL: the start of the segment of a time in microseconds."""
        return f"{_array(self.starts)}[{self.segment(at)}]"

    def mark(self, number: str) -> str:
        return f"{_array(self.marks)}[{number}]"

    def within(self, at: str) -> str:
        """SQL: whether a time is read. Rows without one always are: no state has them."""
        return "true" if self.since == BEGINNING else f"({at} IS NULL OR {at} >= {self.since})"


# Of everything, without a state that a later build could go on from.
EVERY_ROW = Plan("", BEGINNING, (), "")


def _array(times: Sequence[int]) -> str:
    return f"CAST(array({', '.join(map(str, times))}) AS ARRAY<BIGINT>)"


def segment_of(file: ActiveFile) -> int | None:
    """The start of the segment of a mart's file; None for a file that no such build has written."""
    return start_of_segment(file.path)


def start_of_segment(path: str) -> int | None:
    match = _SEGMENT.match(path)
    return None if match is None else int(match[1])


def state_of(file: ActiveFile) -> tuple[str, int] | None:
    """Part and checkpoint of a file of states."""
    match = _STATE.match(file.path)
    return None if match is None else (match[2], int(match[1]))
