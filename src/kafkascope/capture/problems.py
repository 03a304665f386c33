"""What could not be read, collected for one batch: a bounded list, however much is broken."""

from dataclasses import replace

from kafkascope.capture.flow import Problem
from kafkascope.limits import MAX_PROBLEMS


def counted(kind: str, count: int, said: str, place: int, offset: int, lost_bytes: int) -> Problem:
    """Packets that have the same fault."""
    return Problem(kind, f"{count} packet{'' if count == 1 else 's'} {said}", place, offset, lost_bytes, count)


def joined(one: Problem, other: Problem) -> Problem | None:
    """Two that count packets with the same fault as one, None where they are not that."""
    said, told = (problem.detail.split(" ", 2)[-1] for problem in (one, other))
    if not (one.packets and other.packets and said == told):
        return None
    both = one.packets + other.packets
    return counted(one.kind, both, said, one.place, one.offset, one.lost_bytes + other.lost_bytes)


class Problems:
    def __init__(self) -> None:
        self._found: dict[str, list[Problem]] = {}
        self._more: dict[str, int] = {}

    def add(self, kind: str, detail: str, offset: int, lost_bytes: int = 0, place: int = -1) -> None:
        self.keep(Problem(kind, detail, place, offset, lost_bytes))

    def keep(self, problem: Problem) -> None:
        rows = self._found.setdefault(problem.kind, [])
        if len(rows) < MAX_PROBLEMS:
            rows.append(problem)
            return
        rows[-1] = replace(rows[-1], lost_bytes=rows[-1].lost_bytes + problem.lost_bytes)
        self._more[problem.kind] = self._more.get(problem.kind, 0) + 1

    def take(self) -> tuple[Problem, ...]:
        for kind, more in self._more.items():
            last = self._found[kind][-1]
            self._found[kind][-1] = replace(last, detail=f"{last.detail}; and {more} more of this kind")
        taken = sorted((row for rows in self._found.values() for row in rows), key=lambda row: row.offset)
        self._found, self._more = {}, {}
        return tuple(taken)
