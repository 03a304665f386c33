"""Prints statistics of a recording as tables or JSON."""

from collections.abc import Callable
from heapq import nsmallest
from typing import Any

from kafkascope.capture.query.stats import Stats
from kafkascope.capture.query.tallies import PERCENTILES, Tallies, Tally
from kafkascope.cli.tables import grid, table
from kafkascope.cli.terminal import heading, remark
from kafkascope.formatting import latency, number, printable, size

# Most connections and clients to print; --json has all.
MOST_ROWS = 20
# Names that don't fit are cut in the middle, but not to less than this.
LEAST_NAME = 22
# Two IPv4 addresses with ports.
LEAST_ENDS = 45

_COLUMNS = ("calls", "sent", "received", "errors", "no response", "p50", "p90", "p99", "slowest")
# In a narrow window these are left out, in this order.
_DROPPED = ("p90", "slowest", "sent", "received", "p99", "p50", "no response", "errors")


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
    body = [(printable(name), *_row(tally)) for name, tally in rows]
    grid([title, *_COLUMNS], body, ",".join(_COLUMNS), dropped=_DROPPED, least=least)


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
