"""What an ingest did in, lines for a person or one object for a program out: what was read, what was lost and why,
where it is now, what to do next."""

import shlex
import sys
import textwrap
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kafkascope.cli.read.account import INSTEAD, MUCH_TLS
from kafkascope.cli.spark.session import took
from kafkascope.cli.terminal import width
from kafkascope.cli.units import number, plural, size

if TYPE_CHECKING:
    from kafkascope.pipeline.ingestion.ingest import Ingested

# Of each kind of file that is told by name; a folder may hold thousands.
MOST_NAMED = 10
_ODD = (
    ("unanswered", "without an answer"),
    ("answer_only", "without a request"),
    ("undecoded", "that cannot be read"),
)
_PROTOCOLS = {"tls": "TLS", "http": "HTTP", "other": "other protocols", "unknown": "not recognised"}


def account_lines(
    done: "Ingested", where: str, marts: Mapping[str, int] | None, severities: Mapping[str, int] | None,
    seconds: Mapping[str, float], *, following: bool = False,
) -> list[str]:  # fmt: skip
    """What is next is told unless the ingest goes on by itself."""
    lines = read_lines(done) if done.new else []
    if done.known:
        lines.append(f"{plural(len(done.known), 'file')} in the lake already: nothing added of {_them(done.known)}")
    lines += [
        f"{uri} begins before what was ingested earlier and is read on its own: of one recording, ingest the oldest"
        " file first, or all together"
        for uri in done.apart[:MOST_NAMED]
    ]
    if done.bad:
        lines += [f"not read: {why}" for _, why in sorted(done.bad.items())[:MOST_NAMED]]
        if len(done.bad) > MOST_NAMED:
            lines.append(f"not read: {number(len(done.bad) - MOST_NAMED)} more; --json names them all")
    if done.new:
        lines.append(f"{where} has {plural(sum(done.rows.values()), 'row')} more in {plural(len(done.rows), 'table')}")
    if severities is not None:
        lines.append(f"marts: {findings_text(severities)}")
    if seconds and (done.new or marts is not None):
        lines.append(f"took {took(dict(seconds))}")
    if marts is not None:
        lines.append(f"next: kafkascope report {shlex.quote(where)}")
    elif done.new and not following:
        lines.append(f"next: kafkascope marts {shlex.quote(where)}")
    return lines


def findings_text(severities: Mapping[str, int]) -> str:
    if not sum(severities.values()):
        return "no findings"
    words = [("critical", "critical"), ("warning", "warning"), ("info", "note")]
    parts = [
        f"{number(count)} {word}" if word == "critical" else plural(count, word)
        for severity, word in words
        if (count := severities.get(severity, 0))
    ]
    return f"{plural(sum(severities.values()), 'finding')}: {', '.join(parts)}"


def print_lines(lines: list[str]) -> None:
    for line in lines:
        folded = [line]
        if sys.stdout.isatty():
            folded = textwrap.wrap(
                line, width(), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
            )
        for part in folded:
            print(part)
    sys.stdout.flush()


def read_lines(done: "Ingested") -> list[str]:
    accounts = done.accounts.values()
    packets, log_lines = (sum(getattr(account, name) for account in accounts) for name in ("packets", "log_lines"))
    plain = sum(account.frames for account in accounts if not account.packets and not account.log_lines)
    what = [plural(packets, "packet")] if packets else []
    what += [plural(log_lines, "log line")] if log_lines else []
    what += [plural(plain, "plain frame")] if plain else []
    read = f"{plural(len(done.new), 'file')} ({size(done.bytes)}) read: {' and '.join(what) or 'nothing'}"
    lines = [f"{read}, {plural(done.exchanges, 'exchange')}{_span(done)}"]
    odd = [f"{number(count)} {words}" for status, words in _ODD if (count := done.statuses.get(status, 0))]
    if odd:
        lines.append(f"  {', '.join(odd)}")
    lost, places, pending = (
        sum(getattr(account, name) for account in accounts) for name in ("lost_bytes", "lost_places", "pending_bytes")
    )
    if places:
        rest = f", {size(pending)} of it unless the next file has the rest" if pending else ""
        lines.append(f"  lost: {size(lost)} in {plural(places, 'place')} of Kafka streams{rest}")
    if done.problems:
        trouble = [f"{kind} ({number(count)})" for kind, count in sorted(done.problems.items())]
        lines.append(f"  trouble in the files: {', '.join(trouble)}")
    if done.quarantined:
        lines.append(f"  {plural(done.quarantined, 'row')} in the table quarantine: what could not be read, and why")
    return lines + _others(done)


def _others(done: "Ingested") -> list[str]:
    others = {name: counts for name, counts in done.protocols.items() if name != "kafka" and counts[1]}
    if not others:
        return []
    parts = [
        f"{plural(count, 'connection')} {_PROTOCOLS.get(name, name)} ({size(seen)})"
        for name, (count, seen) in others.items()
    ]
    lines = [f"  left alone: {', '.join(parts)}"]
    total = sum(seen for _, seen in done.protocols.values())
    if "tls" in others and others["tls"][1] >= MUCH_TLS * total:
        lines.append(f"  {INSTEAD.replace('kafkascope read ', 'kafkascope ingest ')}")
    return lines


def _span(done: "Ingested") -> str:
    first, last = _ends(done)
    if first is None or last is None:
        return ""
    later = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return f", {first:%Y-%m-%d %H:%M:%S} – {later} UTC"


def _ends(done: "Ingested") -> tuple[datetime | None, datetime | None]:
    firsts = [account.first_ns for account in done.accounts.values() if account.first_ns is not None]
    lasts = [account.last_ns for account in done.accounts.values() if account.last_ns is not None]
    if not firsts or not lasts:
        return None, None
    return datetime.fromtimestamp(min(firsts) // 1000 / 1e6, UTC), datetime.fromtimestamp(max(lasts) // 1000 / 1e6, UTC)


def _them(uris: list[str]) -> str:
    return uris[0] if len(uris) == 1 else "them"


def account_json(
    done: "Ingested", lake: str, marts: Mapping[str, int] | None, severities: Mapping[str, int] | None,
    seconds: Mapping[str, float],
) -> dict[str, Any]:  # fmt: skip
    """`ingest_id`, `marts` and `findings` are null where there was nothing to do."""
    accounts = done.accounts.values()
    first, last = _ends(done)
    counts = {
        name: sum(getattr(account, name) for account in accounts)
        for name in (
            "packets",
            "log_lines",
            "frames",
            "lost_bytes",
            "lost_places",
            "pending_frames",
            "pending_bytes",
            "pending_places",
            "pending_tls_bytes",
            "pending_tcp_bytes",
            "tls_bytes",
            "tcp_bytes",
        )
    }
    return {
        "lake": lake,
        "ingest_id": done.ingest_id if done.new else None,
        "new": done.new,
        "known": done.known,
        "apart": done.apart,
        "bad": done.bad,
        "bytes": done.bytes,
        **counts,
        "exchanges": done.exchanges,
        "first_at": first and first.isoformat(),
        "last_at": last and last.isoformat(),
        "statuses": done.statuses,
        "problems": done.problems,
        "quarantined": done.quarantined,
        "protocols": {name: {"connections": count, "bytes": seen} for name, (count, seen) in done.protocols.items()},
        "rows": done.rows,
        "marts": marts,
        "findings": severities,
        "seconds": {step: round(duration, 3) for step, duration in seconds.items()},
    }
