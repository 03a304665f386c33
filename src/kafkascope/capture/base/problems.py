"""Collects the problems of one batch in a bounded list, however much is broken."""

from dataclasses import replace

from kafkascope.capture.base.flow import Problem
from kafkascope.limits import MAX_PROBLEMS


def counted(kind: str, count: int, fault: str, place: int, offset: int, lost_bytes: int) -> Problem:
    """One problem for `count` packets that have the same fault."""
    return Problem(kind, f"{count} packet{'' if count == 1 else 's'} {fault}", place, offset, lost_bytes, count)


def merged(first: Problem, second: Problem) -> Problem | None:
    """One problem for two that count packets with the same fault, None where they don't."""
    if not (first.packets and second.packets):
        return None
    fault, other_fault = (problem.detail.split(" ", 2)[-1] for problem in (first, second))
    if fault != other_fault:
        return None
    packets = first.packets + second.packets
    return counted(first.kind, packets, fault, first.place, first.offset, first.lost_bytes + second.lost_bytes)


class Problems:
    def __init__(self) -> None:
        self._kept: dict[str, list[Problem]] = {}
        # By kind, the problems beyond the limit: how many, and their lost bytes.
        self._more: dict[str, list[int]] = {}

    def add(self, kind: str, detail: str, offset: int, lost_bytes: int = 0, place: int = -1) -> None:
        if not self._is_full(kind, lost_bytes):
            self.keep(Problem(kind, detail, place, offset, lost_bytes))

    def keep(self, problem: Problem) -> None:
        if not self._is_full(problem.kind, problem.lost_bytes):
            self._kept.setdefault(problem.kind, []).append(problem)

    def _is_full(self, kind: str, lost_bytes: int) -> bool:
        """If the kind has no room left; a problem of such a kind is only counted."""
        rows = self._kept.get(kind)
        if rows is None or len(rows) < MAX_PROBLEMS:
            return False
        more = self._more.setdefault(kind, [0, 0])
        more[0] += 1
        more[1] += lost_bytes
        return True

    def take(self) -> tuple[Problem, ...]:
        for kind, (more, lost) in self._more.items():
            last = self._kept[kind][-1]
            detail = f"{last.detail}; and {more} more of this kind"
            self._kept[kind][-1] = replace(last, detail=detail, lost_bytes=last.lost_bytes + lost)
        taken = sorted((row for rows in self._kept.values() for row in rows), key=lambda row: row.offset)
        self._kept, self._more = {}, {}
        return tuple(taken)
