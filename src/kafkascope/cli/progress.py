"""Formats the parts of a progress line: a bar, the speed and the time left."""

from kafkascope.formatting import size, span

BAR_LETTERS = 20
# Before this share is done, the time left is a guess.
_FIRST_SHARE = 0.02


def bar(share: float, letters: int = BAR_LETTERS) -> str:
    return f"[{'#' * round(share * letters):.<{letters}}]"


def pace_text(done: int, total: int, seconds: float) -> str:
    """`12 MB/s, 1 min 4 s left`"""
    seconds = max(seconds, 0.001)
    share = min(done / total, 1.0)
    left = f", {span(1000 * max(round(seconds * (1 - share) / share), 1))} left" if _FIRST_SHARE < share < 1 else ""
    return f"{size(round(done / seconds))}/s{left}"
