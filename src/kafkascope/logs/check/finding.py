"""Defines what a check finds, and how bad each kind is."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kafkascope.limits import MAX_LISTED_FINDINGS


class Severity(StrEnum):
    """Critical: records are lost or no longer those that were written. Warning: the broker rebuilds it when it starts,
    or has lost track of a producer. Info: normal on a running broker and after a crash."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


SEVERITY_OF = {
    "crc": Severity.CRITICAL,
    "bad header": Severity.CRITICAL,
    "unreadable batch": Severity.CRITICAL,
    "torn tail": Severity.CRITICAL,
    "unfinished tail": Severity.INFO,
    "zeros": Severity.INFO,
    "offset goes back": Severity.CRITICAL,
    "offset outside segment": Severity.CRITICAL,
    "segments overlap": Severity.CRITICAL,
    "log ends too early": Severity.CRITICAL,
    "leader epoch goes back": Severity.WARNING,
    "leader epochs disagree": Severity.WARNING,
    "sequence gap": Severity.WARNING,
    "producer epoch goes back": Severity.WARNING,
    "missing index": Severity.WARNING,
    "offset index": Severity.WARNING,
    "time index": Severity.WARNING,
    "transaction index": Severity.WARNING,
    "producer snapshot": Severity.WARNING,
    "small file": Severity.WARNING,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` is a key of `SEVERITY_OF`. `position` and `offset` are null where it isn't about one place."""

    check: str
    file: str
    position: int | None
    offset: int | None
    detail: str

    @property
    def severity(self) -> Severity:
        return SEVERITY_OF[self.check]


class FindingList:
    """The findings of one file: of each kind the first ones, and how many more there are."""

    __slots__ = ("_counts", "_file", "_listed")

    def __init__(self, file: str) -> None:
        self._file = file
        self._listed: list[Finding] = []
        self._counts: Counter[str] = Counter()

    def add(self, check: str, detail: str, *, position: int | None = None, offset: int | None = None) -> None:
        self._counts[check] += 1
        if self._counts[check] <= MAX_LISTED_FINDINGS:
            self._listed.append(Finding(check, self._file, position, offset, detail))

    def take(self) -> Iterator[Finding]:
        yield from self._listed
        for check, number in self._counts.items():
            if number > MAX_LISTED_FINDINGS:
                yield Finding(check, self._file, None, None, f"{number - MAX_LISTED_FINDINGS} more of this kind")
