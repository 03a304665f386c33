"""Divides the metadata log of a cluster into runs without a hole, and chooses the snapshot that each starts from."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """Offsets from `base` on, before `end`. `base` is that of `snapshot`, a file; without one it is the start of the
    log."""

    base: int
    end: int
    snapshot: str | None


def runs_of(parts: Iterable[tuple[int, int]], snapshots: Iterable[tuple[int, str]]) -> list[Run]:
    """`parts` are first and end offsets of what was read of segments, of all brokers; `snapshots` their offsets and
    files. A part of the log before its first snapshot says what changed, but not from what: it's left out."""
    runs: list[tuple[int, int]] = []
    for first, end in sorted(parts):
        if runs and first <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
        else:
            runs.append((first, end))
    files = sorted(snapshots)
    chosen: list[Run] = []
    for start, end in runs:
        if start == 0:
            chosen.append(Run(0, end, None))
            continue
        base = next(((offset, file) for offset, file in files if start <= offset <= end), None)
        if base is not None:
            chosen.append(Run(base[0], end, base[1]))
    last_end = max((end for _, end in runs), default=0)
    # A snapshot that is ahead of every log: a disk without its segments.
    later = [(offset, file) for offset, file in files if offset > last_end]
    return chosen + [Run(offset, offset, file) for offset, file in later[-1:]]
