"""Chooses checkpoints: moments at which the state of all marts is kept, so that a build can go on from there. Times are
microseconds since 1970; a checkpoint is a whole minute, since minutes are what windows of marts are."""

from collections.abc import Iterable, Sequence

MINUTE_US = 60_000_000
# The first checkpoint before the end of the recordings: requests under way there are written whole by the next ingest.
LAG_US = 2 * MINUTE_US
# Further ones of the first build, for files that come late.
_AGES_US = (0, 3_600_000_000, 86_400_000_000, 7 * 86_400_000_000)
# Each is four times the one before: from a minute to half a year.
_PERIODS_US = tuple(MINUTE_US << 2 * power for power in range(10))
# Segments of a mart that may be there before some are made one. Each is a file, or several.
MOST_SEGMENTS = 64
_FOLDED = 32
BEGINNING = 0
# After every time.
NO_CHANGE = 1 << 62


def proposed(first_us: int, end_us: int) -> list[int]:
    """Checkpoints of recordings from `first_us` to `end_us`."""
    times = {(end_us - LAG_US - age) // MINUTE_US * MINUTE_US for age in _AGES_US}
    return sorted(at for at in times if at > max(first_us, BEGINNING))


def thinned(times: Iterable[int]) -> list[int]:
    """The newest, and the first of the last two periods of each length: at most twenty. The first of a period stays the
    first while the period is one of these, so some grow old."""
    every = sorted(set(times))
    kept = set(every[-1:])
    for length in _PERIODS_US:
        for period in (every[-1] // length - 1, every[-1] // length) if every else ():
            kept |= {next((at for at in every if at // length == period), every[-1])}
    return sorted(kept)


def start_of(checkpoints: Iterable[int], changed_us: int, starts: Sequence[int]) -> int:
    """The checkpoint to go on from: the last that no change precedes. An earlier one where there are many segments:
    what is walked again then becomes few."""
    usable = [BEGINNING, *(at for at in sorted(checkpoints) if at <= changed_us)]
    if len(starts) > MOST_SEGMENTS:
        while len(usable) > 1 and sum(start >= usable[-1] for start in starts) < _FOLDED:
            usable.pop()
    return usable[-1]
