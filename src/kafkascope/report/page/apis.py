"""Renders the section on API calls and client software."""

from collections.abc import Sequence

from kafkascope.formatting import name_some
from kafkascope.markup import Child, Html, el
from kafkascope.report.charts.figure import empty, table
from kafkascope.report.charts.latency import latency_figure
from kafkascope.report.html.icons import badge
from kafkascope.report.page.links import Links
from kafkascope.report.summaries.apis import ApiLatency, ApiSummary
from kafkascope.report.summaries.clients import Clients, Software
from kafkascope.report.words import interval, lasting, number, size

_NO_CLIENT_ID = "no client id"


def apis_section(apis: ApiSummary, clients: Clients, links: Links) -> Html:
    calls = [api for api in apis.latency if not api.long_poll]
    polls = [api for api in apis.latency if api.long_poll]
    return el(
        "section",
        el("h2", "APIs and clients", id="apis"),
        links.about("apis"),
        latency_figure(apis.latency, _latency("Calls by API", calls, apis.latency_left_out)),
        el(
            "section",
            el("h3", "Long polls"),
            el("p", "A broker delays these responses by design, so a long time alone isn't a problem.", class_="note"),
            _latency("Long polls by API", polls, 0) if polls else empty("No long poll was recorded."),
        ),
        _errors(apis),
        _throttling(apis),
        _clients(clients, links),
        aria_labelledby="apis",
    )


def _latency(caption: str, latency: Sequence[ApiLatency], left_out: int) -> Html:
    rows: list[Sequence[Child]] = [
        (
            el("code", api.api),
            number(api.calls),
            number(api.errors),
            number(api.unanswered),
            lasting(api.p50_us),
            lasting(api.p95_us),
            lasting(api.p99_us),
            lasting(api.max_us),
            size(api.bytes),
        )
        for api in latency
    ]
    head = (
        "API",
        "calls #",
        "errors #",
        "unanswered #",
        "p50, typical #",
        "p95, worst minute #",
        "p99, worst minute #",
        "slowest #",
        "bytes #",
    )
    return table(caption, head, rows, left_out, "APIs")


def _errors(apis: ApiSummary) -> Html:
    rows: list[Sequence[Child]] = [
        (
            el("code", error.error),
            el("code", error.api),
            number(error.calls),
            _names(error.clients, error.clients_left_out),
            interval(error.first_at, error.last_at, 1_000_000),
            el("code", (error.first_exchange_id or "")[:12]),
        )
        for error in apis.errors
    ]
    head = ("error", "API", "responses #", "clients, most first", "when (UTC)", "first exchange")
    errors = table("Responses with an error", head, rows, apis.errors_left_out, "pairs of API and error")
    return el("section", el("h3", "Errors"), errors if rows else empty("No response had an error."))


def _throttling(apis: ApiSummary) -> Html:
    rows: list[Sequence[Child]] = [
        (
            el("code", client.client_id) if client.client_id else _NO_CLIENT_ID,
            el("code", client.api),
            number(client.throttled),
            number(client.calls),
            lasting(1000 * client.throttle_ms),
            lasting(1000 * client.max_throttle_ms),
        )
        for client in apis.throttling
    ]
    head = ("client", "API", "throttled #", "of calls #", "together #", "longest #")
    throttled = table("Clients that were throttled", head, rows, apis.throttling_left_out, "pairs of client and API")
    return el("section", el("h3", "Throttling"), throttled if rows else empty("No client was throttled."))


def _names(clients: Sequence[str], left_out: int) -> list[Child]:
    words: list[Child] = []
    for client in clients:
        words += [", " if words else "", el("code", client) if client else _NO_CLIENT_ID]
    return [*words, f" and {left_out:,} more" if left_out else ""]


def _clients(clients: Clients, links: Links) -> Html:
    rows: list[Sequence[Child]] = [
        (
            el("code", software.client_software) if software.client_software else "not named",
            _ready(software, clients.newest_release),
            number(software.calls),
            number(software.apis),
            _names(software.client_ids, software.client_ids_left_out),
            f"of Kafka {software.needs_release}" if software.needs_release else "unknown",
        )
        for software in clients.software
    ]
    newest = clients.newest_release
    head = (
        "software",
        f"ready for {newest}",
        "calls #",
        "APIs #",
        "client ids, most calls first",
        "newest versions used",
    )
    clients_table = table("Client software", head, rows, clients.left_out, "kinds of client software")
    note = (
        f"Ready: every API version that the client used is served by Kafka {newest}, the newest release known here. "
        "A client and its broker negotiate the newest version that both have, so the newest versions used show what "
        "was seen, not which brokers the client needs."
    )
    return el(
        "section",
        el("h3", "Clients and the next upgrade", id="clients"),
        links.about("clients"),
        el("p", note, class_="note") if rows else None,
        clients_table if rows else empty("No request of a client was recorded."),
    )


def _ready(software: Software, newest: str) -> Html:
    if software.ready:
        return badge("healthy", "ready")
    gone = name_some((f"{drop.api} v{drop.api_version}" for drop in software.dropped), software.dropped_left_out)
    until = f", served until {software.until_release}" if software.until_release else ""
    return el("div", badge("warning", "not ready"), f" {newest} lacks {gone}{until}")
