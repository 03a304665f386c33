"""Calls and clients in, their part of the page out."""

from collections.abc import Sequence

from kafkascope.report.charts.figure import empty, table
from kafkascope.report.charts.latency import latency_figure
from kafkascope.report.html.icons import badge
from kafkascope.report.html.markup import Child, Html, el
from kafkascope.report.summaries.apis import ApiLatency, Apis
from kafkascope.report.summaries.clients import Clients, Software
from kafkascope.report.words import interval, lasting, number, size


def apis_section(apis: Apis, clients: Clients) -> Html:
    calls = [one for one in apis.latency if not one.long_poll]
    polls = [one for one in apis.latency if one.long_poll]
    return el(
        "section",
        el("h2", "APIs and clients", id="apis"),
        latency_figure(apis.latency, _latency("Calls by API", calls, apis.latency_left_out)),
        el(
            "section",
            el("h3", "Long polls"),
            el("p", "Their answer may wait by design, so a long time is no trouble by itself.", class_="note"),
            _latency("Long polls by API", polls, 0) if polls else empty("No long poll was recorded."),
        ),
        _errors(apis),
        _throttling(apis),
        _clients(clients),
        aria_labelledby="apis",
    )


def _latency(caption: str, latency: Sequence[ApiLatency], left_out: int) -> Html:
    rows = [
        (
            one.api,
            number(one.calls),
            number(one.errors),
            number(one.unanswered),
            lasting(one.p50_us),
            lasting(one.p95_us),
            lasting(one.p99_us),
            lasting(one.max_us),
            size(one.bytes),
        )
        for one in latency
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


def _errors(apis: Apis) -> Html:
    rows: list[Sequence[Child]] = [
        (
            one.error,
            one.api,
            number(one.calls),
            ", ".join(client or "no client id" for client in one.clients)
            + (f" and {one.clients_left_out} more" if one.clients_left_out else ""),
            interval(one.first_at, one.last_at, 1_000_000),
            el("code", (one.first_exchange_id or "")[:12]),
        )
        for one in apis.errors
    ]
    head = ("error", "API", "answers #", "clients, most first", "when (UTC)", "first exchange")
    told = table("Answers with an error", head, rows, apis.errors_left_out, "pairs of API and error")
    return el("section", el("h3", "Errors"), told if rows else empty("No answer had an error."))


def _throttling(apis: Apis) -> Html:
    rows = [
        (
            one.client_id or "no client id",
            one.api,
            number(one.throttled),
            number(one.calls),
            lasting(1000 * one.throttle_ms),
            lasting(1000 * one.max_throttle_ms),
        )
        for one in apis.throttling
    ]
    head = ("client", "API", "throttled #", "of calls #", "together #", "longest #")
    told = table("Clients that were told to wait", head, rows, apis.throttling_left_out, "pairs of client and API")
    return el("section", el("h3", "Throttling"), told if rows else empty("No answer told a client to wait."))


def _clients(clients: Clients) -> Html:
    rows: list[Sequence[Child]] = [
        (
            one.client_software or "did not say",
            _ready(one, clients.newest_release),
            number(one.calls),
            number(one.apis),
            ", ".join(name or "no client id" for name in one.client_ids)
            + (f" and {one.client_ids_left_out} more" if one.client_ids_left_out else ""),
            f"{one.needs_release} or newer" if one.needs_release else "unknown",
        )
        for one in clients.software
    ]
    newest = clients.newest_release
    head = ("software", f"ready for {newest}", "calls #", "APIs #", "client ids, most calls first", "brokers it needs")
    told = table("Client software", head, rows, clients.left_out, "kinds of client software")
    note = f"Ready: every API version that the client used is served by Kafka {newest}, the newest release known here."
    return el(
        "section",
        el("h3", "Clients and the next upgrade"),
        el("p", note, class_="note") if rows else None,
        told if rows else empty("No request of a client was recorded."),
    )


def _ready(one: Software, newest: str) -> Html:
    if one.ready:
        return badge("healthy", "ready")
    gone = ", ".join(f"{drop.api} v{drop.api_version}" for drop in one.dropped)
    more = f" and {one.dropped_left_out} more" if one.dropped_left_out else ""
    until = f", served until {one.until_release}" if one.until_release else ""
    return el("div", badge("warning", "not ready"), f" {newest} lacks {gone}{more}{until}")
