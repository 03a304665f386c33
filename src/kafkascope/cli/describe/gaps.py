"""Prints what a view lacks and the ACL that would show it; prints nothing for a complete view."""

from collections.abc import Iterable, Sequence

from kafkascope.cli.terminal import heading, note, prose
from kafkascope.client.describe.gaps import LEFT_OUT, NO_ANSWER, NOT_SERVED, UNASKED, Gap
from kafkascope.formatting import first_names

MOST_NAMED = 5


def show_gaps(gaps: Sequence[Gap]) -> None:
    """Gaps with the same reason share a line."""
    if not gaps:
        return
    heading("Not shown")
    reasons: dict[str, list[str]] = {}
    for gap in gaps:
        reasons.setdefault(reason(gap), []).append(gap.what)
    for why, whats in reasons.items():
        prose(f"{first_names(whats, MOST_NAMED)}: {why}", "    ", "  ")


def reason(lack: Gap) -> str:
    if lack.error in (NOT_SERVED, NO_ANSWER, UNASKED):
        return lack.detail or lack.error
    if lack.error == LEFT_OUT:
        return f"{lack.detail}; all are listed with the ACL {lack.needs}"
    what = f"{lack.api} returned {lack.error}"
    if lack.needs:
        return f"{what}; it needs the ACL {lack.needs}"
    return f"{what}; {lack.detail}" if lack.detail else what


def show_refused(refused: Iterable[str]) -> int:
    """Prints to standard error and returns the exit code."""
    code = 0
    for line in refused:
        note(f"kafkascope: {line}")
        code = 1
    return code
