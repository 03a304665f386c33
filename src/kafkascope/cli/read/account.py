"""Reports on stderr what was read and lost, and why: a progress line during the work, and a summary at the end."""

import sys
import time
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from kafkascope.cli.progress import bar, pace_text
from kafkascope.cli.read.account_words import PROTOCOL_WORDS, odd_statuses, other_protocols, without_tls
from kafkascope.cli.terminal import folded, note, notes_width, takes_commands
from kafkascope.formatting import count, join_names, number, printable, size, span

if TYPE_CHECKING:
    from kafkascope.capture.exchanges.account import Account
    from kafkascope.capture.exchanges.file_tally import FileTally

# Often enough to show progress, but not between lines that come quickly.
BAR_SECONDS = 0.2
PLAIN_SECONDS = 30
# Fixes for a plain file that is incomplete, and for any recording.
_FOLLOW = "if it's still being written, --follow waits for the rest"
_FIXES = {
    "compression": "copy it again to get the rest",
    "cut headers": "record whole packets: tcpdump -s 0",
    "link type": "record on Ethernet, loopback or with tcpdump -i any",
    "snap length": "record whole packets: tcpdump -s 0",
}


class Progress:
    """A bar that updates itself on the current line of a terminal; a plain line now and then if stderr is a file, or a
    terminal that takes no commands. `total` is the number of bytes to read, None if unknown: then there are no plain
    lines."""

    def __init__(self, account: "Account", total: int | None, *, quiet: bool) -> None:
        self._account = account
        self._total = total
        moves = takes_commands(sys.stderr)
        self._bar = moves and not quiet
        self._plain = not moves and total is not None and not quiet
        self._began = self._shown = self._printed = time.monotonic()
        self._drawn = False

    def step(self, done: int) -> None:
        """`done` bytes of the files have been read."""
        now = time.monotonic()
        if self._plain and now - self._shown >= PLAIN_SECONDS:
            self._shown = now
            note(self._text(done, now))
        if self._bar and now - self._shown >= BAR_SECONDS and now - self._printed >= BAR_SECONDS:
            self._shown = now
            self._drawn = True
            note(f"\r\033[K{self._text(done, now)[: notes_width() - 1]}", end="")

    def clear(self) -> None:
        """Clears the line before anything else is printed."""
        self._printed = time.monotonic()
        if self._drawn:
            self._drawn = False
            note("\r\033[K", end="")

    def _text(self, done: int, now: float) -> str:
        exchanges = count(self._account.exchanges, "exchange")
        if not self._total:
            return f"{number(self._account.packets)} packets, {exchanges}"
        share = min(done / self._total, 1.0)
        pace = pace_text(done, self._total, now - self._began)
        return f"{bar(share)} {share:>4.0%} of {size(self._total)}, {pace}, {exchanges}"


def print_account(
    account: "Account",
    shown: int | None,
    plain_files: Collection[str] = (),
    by_file: "Mapping[str, FileTally] | None" = None,
) -> None:
    """`shown` is the number of exchanges that match the filters, None without filters; `plain_files` can be
    followed."""
    for line in [*account_lines(account, shown, plain_files), *misplaced(by_file or {})]:
        for part in folded(line, sys.stderr, notes_width()):
            note(printable(part))


def account_lines(account: "Account", shown: int | None, plain_files: Collection[str] = ()) -> list[str]:
    contents = [count(account.packets, "packet")] if account.packets else []
    contents += [count(account.log_lines, "log line")] if account.log_lines else []
    files = f" of {account.files} files" if account.files > 1 else ""
    some = "" if shown is None else f", {number(shown)} shown"
    lines = [
        f"{join_names(contents) or 'nothing'}{files} read: {count(account.exchanges, 'exchange')}{_span(account)}{some}"
    ]
    lines += odd_statuses(account.statuses)
    if account.lost_places:
        answers = f", {count(account.lost_answers, 'response')} with them" if account.lost_answers else ""
        lines.append(
            f"  lost: {size(account.lost_bytes)} in {count(account.lost_places, 'place')} of Kafka streams{answers}"
        )
    lines += _problems(account, plain_files)
    if account.log_lines_unread:
        lines.append(f"  {count(account.log_lines_unread, 'log line')} that should be a request but cannot be read")
    if account.log_lines_without_time:
        lines.append(f"  {count(account.log_lines_without_time, 'log line')} without a time")
    return lines + other_protocols(account.protocols())


def misplaced(by_file: "Mapping[str, FileTally]") -> list[str]:
    """The first capture in the wrong order, such as a pipe after newer files. Two of the same time are in order."""
    captures = [(name, tally) for name, tally in by_file.items() if tally.packets and tally.first_ns is not None]
    for (before, capture), (name, other) in pairwise(captures):
        middle = ((capture.first_ns or 0) + (capture.last_ns or 0)) // 2
        if (other.first_ns or 0) < (capture.first_ns or 0) and (other.last_ns or 0) < middle:
            return [f"  {name} is older than {before} before it: give the files of a recording oldest first"]
    return []


def _span(account: "Account") -> str:
    if account.first_ns is None or account.last_ns is None:
        return ""
    return f" in {span((account.last_ns - account.first_ns) / 1e6)}"


def _problems(account: "Account", plain_files: Collection[str] = ()) -> list[str]:
    lines = []
    for kind, problems in account.problems.most_common():
        lost = f", {size(account.problem_bytes[kind])} lost" if account.problem_bytes[kind] else ""
        file, first = account.kept[kind][0]
        more = "" if problems == 1 else f" (and {number(problems - 1)} more)"
        place = f" at byte {number(first.offset)}" if first.offset >= 0 else ""
        name = f" of {file}" if account.files > 1 else ""
        fix = _FIXES.get(kind) or (_FOLLOW if kind == "cut" and file in plain_files else "")
        lines.append(f"  {kind}{place}{name}: {first.detail}{more}{lost}{f'; {fix}' if fix else ''}")
    return lines


def nothing_found(account: "Account", names: str, plain_files: Collection[str] = ()) -> str:
    """The error for a recording without Kafka, in one line."""
    protocols = {name: counts for name, counts in account.protocols().items() if counts[1]}
    if account.log_lines and not account.packets:
        what = f"{count(account.log_lines, 'log line')}, {number(account.log_lines_unread)} that should be a request"
        what = ", ".join([what, *(line.strip() for line in _problems(account, plain_files)[:1])])
        return f"{names}: no readable request in it ({what})"
    if not protocols:
        what = count(account.packets, "packet") if account.packets else "no packet"
        why = [*_problems(account, plain_files), *(["none of a TCP stream with bytes"] if account.packets else [])]
        return f"{names}: no Kafka in it ({', '.join([what, why[0].strip()] if why else [what])})"
    words = {**PROTOCOL_WORDS, "other": "other", "kafka": "Kafka without a whole frame"}
    parts = ", ".join(f"{connections} {words.get(name, name)}" for name, (connections, _) in protocols.items())
    hints = [line.strip() for line in _problems(account, plain_files)[:1]] + [without_tls()] * ("tls" in protocols)
    whole = f"{parts} of {count(sum(c for c, _ in protocols.values()), 'connection')}"
    return "; ".join([f"{names}: no Kafka in it ({whole})", *hints])
