"""Prints statistics of a recording as tables or JSON."""

from collections.abc import Callable
from heapq import nsmallest
from typing import Any

from kafkascope.capture.query.stats import Stats
from kafkascope.capture.query.tallies import PERCENTILES, Tallies, Tally
from kafkascope.cli.read.summary import cut_middle
from kafkascope.cli.tables import table
from kafkascope.cli.terminal import cells, heading, padded, paint, remark, width
from kafkascope.formatting import latency, number, size

# Most connections and clients to print; --json has all.
MOST_ROWS = 20
# Names that don't fit are cut in the middle, but not to less than this.
LEAST_NAME = 22
# Two IPv4 addresses with ports.
LEAST_ENDS = 45


# Heads of columns, and the order in which columns are dropped for lack of room. Empty columns are always dropped.
_COLUMNS = {
    "calls": 11, "sent": 4, "received": 5, "errors": 10, "no response": 9, "p50": 8, "p90": 1, "p99": 7, "slowest": 3,
}  # fmt: skip


def _row(tally: Tally) -> tuple[str, ...]:
    """In the order of the columns."""
    return (
        number(tally.calls),
        size(tally.request_bytes) if tally.request_bytes else "",
        size(tally.response_bytes) if tally.response_bytes else "",
        number(tally.errors) if tally.errors else "",
        number(tally.unanswered) if tally.unanswered else "",
        *map(latency, tally.percentiles),
        latency(tally.slowest_us),
    )


def print_stats(stats: Stats) -> None:
    heading("APIs")
    rows = sorted(zip(stats.apis, stats.apis.summaries(), strict=True), key=lambda row: (row[0][1], -row[1].calls))
    _table([(f"{api}{' (waits)' if waits else ''}", tally) for (api, waits), tally in rows], "API")
    if any(waits for _, waits in stats.apis):
        remark("(waits): a broker delays responses to long polls by design, so their times are waits.", "  ")
    heading("Clients")
    _table(_busiest(stats.clients, lambda name: name or "(none)"), "client id")
    heading("Connections")
    _table(_busiest(stats.connections, lambda key: f"{key[0]} → {key[1]}"), "client → broker", LEAST_ENDS)
    if stats.errors:
        heading("Errors")
        _errors([(number(count), api or "?", error) for (api, error), count in stats.errors.most_common()])


def _busiest(tallies: Tallies, named: Callable[[Any], str]) -> list[tuple[str, Tally]]:
    """The rows with the most calls, and one for all others together."""
    calls = tallies.calls()
    keys = nsmallest(MOST_ROWS + 1, calls, key=lambda key: (-calls[key], named(key)))
    shown = keys if len(calls) <= MOST_ROWS + 1 else keys[:MOST_ROWS]
    others = f"{number(len(calls) - len(shown))} others (--json has all)"
    return list(zip([*map(named, shown), others], tallies.summaries(shown), strict=False))


def _table(rows: list[tuple[str, Tally]], title: str, least: int = LEAST_NAME) -> None:
    columns = zip(_COLUMNS, *(_row(tally) for _, tally in rows), strict=True)
    # Heads and cells, and their widths.
    shown = [(column, max(map(len, column))) for column in columns if any(column[1:])]
    names = [title, *(name for name, _ in rows)]
    longest, window = max(map(cells, names)), width()

    def needed() -> int:
        return 2 + sum(2 + wide for _, wide in shown)

    while needed() + min(longest, least) > window and len(shown) > 1:
        shown.remove(min(shown, key=lambda column: _COLUMNS[column[0][0]]))
    room = min(longest, window - needed())
    aligned = [[cell.rjust(2 + wide) for cell in column] for column, wide in shown]
    lines = [
        f"  {padded(cut_middle(name, room), room)}{''.join(row)}".rstrip()
        for name, row in zip(names, zip(*aligned, strict=True), strict=True)
    ]
    print("\n".join([paint(lines[0], "dim"), *lines[1:]]))


def _errors(rows: list[tuple[str, str, str]]) -> None:
    table(rows, ("count", "API", "error"), right=(0,))


def stats_json(stats: Stats) -> dict[str, Any]:
    apis, clients, connections = (
        list(zip(tallies, map(_json, tallies.summaries()), strict=True))
        for tallies in (stats.apis, stats.clients, stats.connections)
    )
    return {
        "apis": [{"api": api, "long_poll": waits, **figures} for (api, waits), figures in apis],
        "clients": [{"client_id": name or None, **figures} for name, figures in clients],
        "connections": [
            {"client_address": client, "broker_address": broker, "connection_id": connection, **figures}
            for (client, broker, connection), figures in connections
        ],
        "errors": [{"api": api, "error": error, "count": count} for (api, error), count in stats.errors.items()],
    }


def _json(tally: Tally) -> dict[str, Any]:
    return {
        "calls": tally.calls,
        "request_bytes": tally.request_bytes,
        "response_bytes": tally.response_bytes,
        "errors": tally.errors,
        "unanswered": tally.unanswered,
        **{f"p{percent}_us": figure for percent, figure in zip(PERCENTILES, tally.percentiles, strict=True)},
        "slowest_us": tally.slowest_us,
    }
