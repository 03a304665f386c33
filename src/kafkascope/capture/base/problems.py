"""What could not be read, collected for one batch: a bounded list, however much is broken."""

from dataclasses import replace

from kafkascope.capture.base.flow import Problem
from kafkascope.limits import MAX_PROBLEMS


def counted(kind: str, count: int, said: str, place: int, offset: int, lost_bytes: int) -> Problem:
    """Packets that have the same fault."""
    return Problem(kind, f"{count} packet{'' if count == 1 else 's'} {said}", place, offset, lost_bytes, count)


def joined(one: Problem, other: Problem) -> Problem | None:
    """Two that count packets with the same fault as one, None where they are not that."""
    if not (one.packets and other.packets):
        return None
    fault, same = (problem.detail.split(" ", 2)[-1] for problem in (one, other))
    if fault != same:
        return None
    both = one.packets + other.packets
    return counted(one.kind, both, fault, one.place, one.offset, one.lost_bytes + other.lost_bytes)


class Problems:
    def __init__(self) -> None:
        self._found: dict[str, list[Problem]] = {}
        # Those that the list has no room for: how many, and their bytes.
        self._more: dict[str, list[int]] = {}

    def add(self, kind: str, detail: str, offset: int, lost_bytes: int = 0, place: int = -1) -> None:
        if not self._is_full(kind, lost_bytes):
            self.keep(Problem(kind, detail, place, offset, lost_bytes))

    def keep(self, problem: Problem) -> None:
        if not self._is_full(problem.kind, problem.lost_bytes):
            self._found.setdefault(problem.kind, []).append(problem)

    def _is_full(self, kind: str, lost_bytes: int) -> bool:
        """Whether it is only counted."""
        rows = self._found.get(kind)
        if rows is None or len(rows) < MAX_PROBLEMS:
            return False
        more = self._more.setdefault(kind, [0, 0])
        more[0] += 1
        more[1] += lost_bytes
        return True

    def take(self) -> tuple[Problem, ...]:
        for kind, (more, lost) in self._more.items():
            last = self._found[kind][-1]
            detail = f"{last.detail}; and {more} more of this kind"
            self._found[kind][-1] = replace(last, detail=detail, lost_bytes=last.lost_bytes + lost)
        taken = sorted((row for rows in self._found.values() for row in rows), key=lambda row: row.offset)
        self._found, self._more = {}, {}
        return tuple(taken)
