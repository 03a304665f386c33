"""What could not be read, collected for one batch: a bounded list, however much is broken."""

from dataclasses import replace

from kafkascope.capture.flow import Problem
from kafkascope.limits import MAX_PROBLEMS


class Problems:
    def __init__(self) -> None:
        self._found: dict[str, list[Problem]] = {}
        self._more: dict[str, int] = {}

    def add(self, kind: str, detail: str, offset: int, lost_bytes: int = 0, place: int = -1) -> None:
        rows = self._found.setdefault(kind, [])
        if len(rows) < MAX_PROBLEMS:
            rows.append(Problem(kind, detail, place, offset, lost_bytes))
            return
        rows[-1] = replace(rows[-1], lost_bytes=rows[-1].lost_bytes + lost_bytes)
        self._more[kind] = self._more.get(kind, 0) + 1

    def take(self) -> tuple[Problem, ...]:
        for kind, more in self._more.items():
            last = self._found[kind][-1]
            self._found[kind][-1] = replace(last, detail=f"{last.detail}; and {more} more of this kind")
        taken = sorted((row for rows in self._found.values() for row in rows), key=lambda row: row.offset)
        self._found, self._more = {}, {}
        return tuple(taken)
