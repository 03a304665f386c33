"""Statistics of a recording in, tables or JSON out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.cli.read_summary import cut_middle
from kafkascope.cli.read_units import latency, number, size
from kafkascope.cli.terminal import cells, heading, padded, paint, remark, table, width

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkascope.capture.stats import Stats, Tally

# Connections and clients beyond these are not for reading; --json has all.
MOST_ROWS = 20
# Names are cut in the middle where they do not fit, but not to less than this.
LEAST_NAME = 22
# Two ends of IPv4.
LEAST_ENDS = 45


@dataclass(frozen=True, slots=True)
class Column:
    """`weight` says what goes first where there is no room; what is needed in no row is not there at all."""

    head: str
    weight: int
    cell: "Callable[[Tally], str]"


def _percentile(percent: int) -> "Callable[[Tally], str]":
    return lambda tally: latency(tally.percentile(percent))


COLUMNS = (
    Column("calls", 11, lambda tally: number(tally.calls)),
    Column("sent", 4, lambda tally: size(tally.request_bytes) if tally.request_bytes else ""),
    Column("received", 5, lambda tally: size(tally.response_bytes) if tally.response_bytes else ""),
    Column("errors", 10, lambda tally: number(tally.errors) if tally.errors else ""),
    Column("no answer", 9, lambda tally: number(tally.unanswered) if tally.unanswered else ""),
    Column("p50", 8, _percentile(50)),
    Column("p90", 1, _percentile(90)),
    Column("p99", 7, _percentile(99)),
    Column("slowest", 3, lambda tally: latency(tally.slowest_us) if tally.buckets else ""),
)


def print_stats(stats: "Stats") -> None:
    heading("APIs")
    rows = sorted(stats.apis.items(), key=lambda item: (item[0][1], -item[1].calls))
    _table([(f"{api}{' (waits)' if waits else ''}", tally) for (api, waits), tally in rows], "API")
    if any(waits for _, waits in stats.apis):
        remark("(waits): answers of long polls may wait by design, so their times are waits.", "  ")
    heading("Clients")
    _table(_busiest({name: (name or "(none)", tally) for name, tally in stats.clients.items()}), "client id")
    heading("Connections")
    ends = {key: (f"{key[0]} → {key[1]}", tally) for key, tally in stats.connections.items()}
    _table(_busiest(ends), "client → broker", LEAST_ENDS)
    if stats.errors:
        heading("Errors")
        _errors([(number(count), api or "?", error) for (api, error), count in stats.errors.most_common()])


def _busiest(tallies: "dict[Any, tuple[str, Tally]]") -> "list[tuple[str, Tally]]":
    """The rows with the most calls, and one for all others together."""
    from kafkascope.capture.stats import Tally

    rows = sorted(tallies.values(), key=lambda row: (-row[1].calls, row[0]))
    if len(rows) <= MOST_ROWS + 1:
        return rows
    rest = Tally()
    for _, tally in rows[MOST_ROWS:]:
        rest.add(tally)
    return [*rows[:MOST_ROWS], (f"{number(len(rows) - MOST_ROWS)} others (--json has all)", rest)]


def _table(rows: "list[tuple[str, Tally]]", title: str, least: int = LEAST_NAME) -> None:
    every = [(column, [column.head, *(column.cell(tally) for _, tally in rows)]) for column in COLUMNS]
    shown = [(column, told) for column, told in every if any(told[1:])]
    names = [title, *(name for name, _ in rows)]
    longest = max(map(cells, names))

    def needed() -> int:
        return 2 + sum(2 + max(map(len, told)) for _, told in shown)

    while needed() + min(longest, least) > width() and len(shown) > 1:
        shown.remove(min(shown, key=lambda one: one[0].weight))
    room = min(longest, width() - needed())
    for index, name in enumerate(names):
        numbers = "".join(f"  {told[index]:>{max(map(len, told))}}" for _, told in shown)
        line = f"  {padded(cut_middle(name, room), room)}{numbers}".rstrip()
        print(paint(line, "dim") if index == 0 else line)


def _errors(rows: list[tuple[str, str, str]]) -> None:
    longest = max(len("count"), *(len(count) for count, _, _ in rows))
    table([(count.rjust(longest), api, error) for count, api, error in rows], ("count".rjust(longest), "API", "error"))


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
