"""Reports what an ingest did, as lines or as one JSON object: what was read, what was lost and why, where it's stored,
what to do next."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kafkascope.cli.read.account_words import odd_statuses, other_protocols
from kafkascope.cli.spark.session import timings
from kafkascope.cli.terminal import folded, width
from kafkascope.formatting import count, join_names, number, size
from kafkascope.times import iso, moment_of, readable

if TYPE_CHECKING:
    from kafkascope.lake.upkeep.tidy import Tidied
    from kafkascope.pipeline.ingestion.ingest import Ingested

# Most files of each kind to name; a folder may have thousands.
_MOST_NAMED = 10
_LOG_BATCHES = "log_batches"


def account_lines(
    done: "Ingested", where: str, marts: Mapping[str, int] | None, severities: Mapping[str, int] | None,
    seconds: Mapping[str, float], *, built: Sequence[str] = (), following: bool = False,
) -> list[str]:  # fmt: skip
    """`built` reports which rows of the marts were rebuilt. The next command is printed unless the ingest goes on by
    itself."""
    lines = read_lines(done) if done.new else []
    if done.known:
        lines.append(f"{count(len(done.known), 'file')} already in the lake: nothing added from {_them(done.known)}")
    lines += [
        f"{uri} begins before files that were ingested earlier, so it's read on its own: ingest the files of a"
        " recording oldest first, or all together"
        for uri in done.apart[:_MOST_NAMED]
    ]
    if done.bad:
        lines += [f"not read: {why}" for _, why in sorted(done.bad.items())[:_MOST_NAMED]]
        if len(done.bad) > _MOST_NAMED:
            lines.append(f"not read: {number(len(done.bad) - _MOST_NAMED)} more; --json names them all")
    if done.new:
        lines.append(f"{where} has {count(sum(done.rows.values()), 'row')} more in {count(len(done.rows), 'table')}")
    if done.tidied is not None and done.tidied.deleted_files:
        lines.append(f"{_deleted(done.tidied)} deleted, which no table needs any more")
    if severities is not None:
        lines += [*built, f"marts: {findings_text(severities)}"]
    if seconds and (done.new or marts is not None):
        lines.append(f"took {timings(dict(seconds))}")
    if marts is not None:
        lines.append(f"next: kafkascope report {shlex.quote(where)}")
    elif done.new and not following:
        lines.append(f"next: kafkascope marts {shlex.quote(where)}")
    return lines


def _deleted(tidied: "Tidied") -> str:
    return f"{count(tidied.deleted_files, 'file')} of {size(tidied.deleted_bytes)}"


def findings_text(severities: Mapping[str, int]) -> str:
    if not sum(severities.values()):
        return "no findings"
    nouns = {"critical": ("critical", "critical"), "warning": ("warning", None), "info": ("note", None)}
    parts = [count(severities[severity], *noun) for severity, noun in nouns.items() if severities.get(severity)]
    return f"{count(sum(severities.values()), 'finding')}: {', '.join(parts)}"


def print_lines(lines: list[str]) -> None:
    for line in lines:
        for part in folded(line, sys.stdout, width()):
            print(part)
    sys.stdout.flush()


def read_lines(done: "Ingested") -> list[str]:
    accounts = done.accounts.values()
    packets, log_lines = (sum(getattr(account, name) for account in accounts) for name in ("packets", "log_lines"))
    plain = sum(account.frames for account in accounts if not account.packets and not account.log_lines)
    contents = [count(packets, "packet")] if packets else []
    contents += [count(log_lines, "log line")] if log_lines else []
    contents += [count(plain, "plain frame")] if plain else []
    recorded = bool(contents)
    batches = done.rows.get(_LOG_BATCHES, 0)
    contents += [count(batches, "batch", "batches")] if batches else []
    exchanges = [count(done.exchanges, "exchange")] if recorded or not batches else []
    read = f"{count(len(done.new), 'file')} ({size(done.bytes)}) read: {join_names(contents) or 'nothing'}"
    lines = [", ".join([read, *exchanges]) + _span(done)]
    lines += odd_statuses(done.statuses)
    lost, places, pending = (
        sum(getattr(account, name) for account in accounts) for name in ("lost_bytes", "lost_places", "pending_bytes")
    )
    streams = join_names(["Kafka streams"] * (recorded or not batches) + ["segments"] * bool(batches))
    if places:
        rest = f", {size(pending)} of it unless the next file has the rest" if pending else ""
        lines.append(f"  lost: {size(lost)} in {count(places, 'place')} of {streams}{rest}")
    if done.problems:
        trouble = [f"{kind} ({number(problems)})" for kind, problems in sorted(done.problems.items())]
        lines.append(f"  problems in the files: {', '.join(trouble)}")
    if done.quarantined:
        lines.append(
            f"  {count(done.quarantined, 'row')} in the table quarantine: frames that could not be read, and why"
        )
    return lines + other_protocols(done.protocols, "ingest")


def _span(done: "Ingested") -> str:
    first, last = _ends(done)
    if first is None or last is None:
        return ""
    later = f"{last:%H:%M:%S}" if first.date() == last.date() else readable(last)
    return f", {readable(first)} – {later} UTC"


def _ends(done: "Ingested") -> tuple[datetime | None, datetime | None]:
    firsts = [account.first_ns for account in done.accounts.values() if account.first_ns is not None]
    lasts = [account.last_ns for account in done.accounts.values() if account.last_ns is not None]
    if not firsts or not lasts:
        return None, None
    return moment_of(min(firsts) // 1000), moment_of(max(lasts) // 1000)


def _them(uris: list[str]) -> str:
    return uris[0] if len(uris) == 1 else "them"


def account_json(
    done: "Ingested", lake: str, marts: Mapping[str, int] | None, severities: Mapping[str, int] | None,
    seconds: Mapping[str, float], *, built: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """`ingest_id`, `marts` and `findings` are null if there was nothing to do."""
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
        "first_at": first and iso(first),
        "last_at": last and iso(last),
        "statuses": done.statuses,
        "problems": done.problems,
        "quarantined": done.quarantined,
        "protocols": {
            name: {"connections": connections, "bytes": length}
            for name, (connections, length) in done.protocols.items()
        },
        "rows": done.rows,
        "deleted_files": done.tidied.deleted_files if done.tidied else 0,
        "deleted_bytes": done.tidied.deleted_bytes if done.tidied else 0,
        "built": [*built],
        "marts": marts,
        "findings": severities,
        "seconds": {step: round(duration, 3) for step, duration in seconds.items()},
    }
