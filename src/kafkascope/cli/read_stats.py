"""Statistics of a recording in, tables or JSON out."""

from typing import TYPE_CHECKING, Any

from kafkascope.cli.read_summary import shortened
from kafkascope.cli.read_units import latency, number, size
from kafkascope.cli.terminal import heading, paint, table

if TYPE_CHECKING:
    from kafkascope.capture.stats import Stats, Tally

# Connections and clients beyond these are not for reading; --json has all.
MOST_ROWS = 20
_HEAD = ("calls", "sent", "received", "errors", "no answer", "p50", "p90", "p99", "slowest")


def print_stats(stats: "Stats") -> None:
    heading("APIs")
    rows = sorted(stats.apis.items(), key=lambda item: (item[0][1], -item[1].calls))
    _table([(f"{api}{' (waits)' if waits else ''}", tally) for (api, waits), tally in rows], "API", None)
    if any(waits for _, waits in stats.apis):
        print(paint("  (waits): answers of long polls may wait by design, so their times are waits.", "dim"))
    heading("Clients")
    _table(
        [(shortened(name, 40) or "(none)", tally) for name, tally in _busiest(stats.clients)],
        "client id",
        len(stats.clients),
    )
    heading("Connections")
    ends = [(f"{client} → {broker}", tally) for (client, broker, _), tally in _busiest(stats.connections)]
    _table(ends, "client → broker", len(stats.connections))
    if stats.errors:
        heading("Errors")
        table([(number(count), api or "?", error) for (api, error), count in stats.errors.most_common()],
              ("count", "API", "error"))  # fmt: skip


def _busiest(tallies: "dict[Any, Tally]") -> "list[tuple[Any, Tally]]":
    return sorted(tallies.items(), key=lambda item: (-item[1].calls, str(item[0])))[:MOST_ROWS]


def _table(rows: "list[tuple[str, Tally]]", title: str, total: int | None) -> None:
    cells = [(name, *_cells(tally)) for name, tally in rows]
    every = [(title, *_HEAD), *cells]
    widths = [max(len(row[column]) for row in every) for column in range(len(_HEAD) + 1)]
    for index, row in enumerate(every):
        line = "  ".join(
            cell.ljust(widths[column]) if column == 0 else cell.rjust(widths[column]) for column, cell in enumerate(row)
        )
        print(f"  {paint(line, 'dim') if index == 0 else line}".rstrip())
    if total is not None and total > len(rows):
        print(paint(f"  and {number(total - len(rows))} more; --json has all", "dim"))


def _cells(tally: "Tally") -> tuple[str, ...]:
    return (
        number(tally.calls),
        size(tally.request_bytes) if tally.request_bytes else "",
        size(tally.response_bytes) if tally.response_bytes else "",
        number(tally.errors) if tally.errors else "",
        number(tally.unanswered) if tally.unanswered else "",
        *(latency(tally.percentile(percent)) for percent in (50, 90, 99)),
        latency(tally.slowest_us) if tally.buckets else "",
    )


def stats_json(stats: "Stats") -> dict[str, Any]:
    return {
        "apis": [{"api": api, "long_poll": waits, **_json(tally)} for (api, waits), tally in stats.apis.items()],
        "clients": [{"client_id": name or None, **_json(tally)} for name, tally in stats.clients.items()],
        "connections": [
            {"client_address": client, "broker_address": broker, "connection_id": connection, **_json(tally)}
            for (client, broker, connection), tally in stats.connections.items()
        ],
        "errors": [{"api": api, "error": error, "count": count} for (api, error), count in stats.errors.items()],
    }


def _json(tally: "Tally") -> dict[str, Any]:
    return {
        "calls": tally.calls,
        "request_bytes": tally.request_bytes,
        "response_bytes": tally.response_bytes,
        "errors": tally.errors,
        "unanswered": tally.unanswered,
        "p50_us": tally.percentile(50),
        "p90_us": tally.percentile(90),
        "p99_us": tally.percentile(99),
        "slowest_us": tally.slowest_us if tally.buckets else None,
    }
