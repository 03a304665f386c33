"""What was read, lost and why, on stderr: a line that moves while a person waits, and an account at the end."""

import sys
import time
from typing import TYPE_CHECKING

from kafkascope.cli.read_units import number, size
from kafkascope.cli.terminal import note, plural

if TYPE_CHECKING:
    from kafkascope.capture.account import Account

# Often enough to see it move.
SECONDS = 0.2
# From here on the account says what to do about TLS.
MUCH_TLS = 0.1
INSTEAD = (
    "TLS cannot be read from a capture. Record on a plain listener, or give the broker's request log instead"
    " (logger kafka.request.logger at DEBUG): kafkascope read kafka-request.log"
)


class Progress:
    """Silent unless a person looks at stderr and nothing else is written to the same terminal."""

    def __init__(self, account: "Account", total: int | None, *, quiet: bool) -> None:
        self._account = account
        self._total = total
        self._on = sys.stderr.isatty() and not quiet
        self._began = self._shown = time.monotonic()

    def step(self) -> None:
        now = time.monotonic()
        if not self._on or now - self._shown < SECONDS:
            return
        self._shown = now
        done = self._account
        share = f" of {size(self._total)}" if self._total else ""
        rate = size(round(done.bytes_read / max(now - self._began, 0.001)))
        print(f"\r\033[K{size(done.bytes_read)}{share}, {number(done.exchanges)} exchanges, {rate}/s", end="",
              file=sys.stderr, flush=True)  # fmt: skip

    def clear(self) -> None:
        if self._on:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def print_account(account: "Account", shown: int | None) -> None:
    """`shown` is how many a filter let through, None where there was none."""
    for line in account_lines(account, shown):
        note(line)


def account_lines(account: "Account", shown: int | None) -> list[str]:
    what = [f"{number(account.packets)} packets"] if account.packets else []
    what += [f"{number(account.log_lines)} log lines"] if account.log_lines else []
    some = "" if shown is None else f", {number(shown)} shown"
    lines = [f"{' and '.join(what) or 'nothing'} read: {number(account.exchanges)} exchanges{some}{_span(account)}"]
    odd = [
        f"{number(count)} {words}"
        for status, words in (
            ("unanswered", "without an answer"),
            ("answer_only", "answers without a request"),
            ("undecoded", "that cannot be read"),
        )
        if (count := account.statuses.get(status, 0))
    ]
    if odd:
        lines.append(f"  {', '.join(odd)}")
    if account.lost_places:
        answers = f", {number(account.lost_answers)} answers with them" if account.lost_answers else ""
        lines.append(
            f"  lost: {size(account.lost_bytes)} in {plural(account.lost_places, 'place')} of Kafka streams{answers}"
        )
    lines += _problems(account)
    if account.log_lines_unread:
        lines.append(f"  {number(account.log_lines_unread)} log lines look like requests and are not in JSON")
    if account.log_lines_without_time:
        lines.append(f"  {number(account.log_lines_without_time)} log lines have no time")
    return lines + _others(account)


def _span(account: "Account") -> str:
    if account.first_ns is None or account.last_ns is None:
        return ""
    seconds = (account.last_ns - account.first_ns) / 1e9
    return f" in {seconds:.1f} s" if seconds < 120 else f" in {seconds / 60:.1f} min"


def _problems(account: "Account") -> list[str]:
    lines = []
    for kind, count in account.problems.most_common():
        lost = f", {size(account.problem_bytes[kind])} lost" if account.problem_bytes[kind] else ""
        first = account.kept[kind][0]
        times = "" if count == 1 else f" (and {count - 1} more)"
        place = f" at packet {first.place}" if first.place >= 0 else ""
        lines.append(f"  {kind}: {first.detail}{place}{times}{lost}")
    return lines


def _others(account: "Account") -> list[str]:
    """What the recording has beside Kafka, by what it is."""
    protocols = account.protocols()
    others = {name: found for name, found in protocols.items() if name != "kafka" and found[1]}
    if not others:
        return []
    words = {"tls": "TLS", "http": "HTTP", "other": "other protocols", "unknown": "not recognised"}
    told = [
        f"{plural(count, 'connection')} {words.get(name, name)} ({size(seen)})"
        for name, (count, seen) in others.items()
    ]
    lines = [f"  left alone: {', '.join(told)}"]
    total = sum(seen for _, seen in protocols.values())
    if "tls" in others and others["tls"][1] >= MUCH_TLS * total:
        lines.append(f"  {INSTEAD}")
    return lines


def nothing_found(account: "Account", names: str) -> str:
    """One line for a recording without Kafka."""
    protocols = {name: found for name, found in account.protocols().items() if found[1]}
    if not protocols:
        what = f"{number(account.packets)} packets, none of a TCP stream with bytes" if account.packets else "no packet"
        return f"{names}: no Kafka in it ({what})"
    words = {
        "tls": "TLS",
        "http": "HTTP",
        "other": "other",
        "unknown": "not recognised",
        "kafka": "Kafka without a whole frame",
    }
    told = ", ".join(f"{count} {words.get(name, name)}" for name, (count, _) in protocols.items())
    hint = f"; {INSTEAD}" if "tls" in protocols else ""
    return f"{names}: no Kafka in it ({told} of {plural(sum(c for c, _ in protocols.values()), 'connection')}){hint}"
