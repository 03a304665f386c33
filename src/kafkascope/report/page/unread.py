"""Renders the section on recordings and on bytes that could not be read."""

from kafkascope.formatting import count
from kafkascope.markup import Html, el
from kafkascope.report.charts.figure import empty, table, tiles
from kafkascope.report.summaries.unread import Unread
from kafkascope.report.words import interval, number, share, size

_PROTOCOLS = {
    "kafka": "Kafka",
    "tls": "TLS: encrypted, not read",
    "http": "HTTP",
    "other": "another protocol",
    "unknown": "too few bytes to tell",
}


def unread_section(unread: Unread) -> Html:
    total = unread.total
    return el(
        "section",
        el("h2", "What could not be read", id="unread"),
        tiles(
            (
                ("recordings", number(unread.recordings), f"{size(total.bytes)}, {count(total.packets, 'packet')}"),
                ("lost", size(total.lost_bytes), f"at {count(total.lost_places, 'place')}, of {size(total.tcp_bytes)}"),
                ("encrypted", share(total.tls_bytes, total.tcp_bytes), f"{size(total.tls_bytes)} of TLS"),
                ("quarantine", number(total.quarantined), "frames that could not be decoded"),
            )
        ),
        _captures(unread),
        _protocols(unread),
        _quarantine(unread),
        aria_labelledby="unread",
    )


def _captures(unread: Unread) -> Html:
    rows = [
        (
            capture.capture_uri,
            capture.kind or "",
            size(capture.bytes),
            interval(capture.first_at, capture.last_at, 1_000_000) if capture.first_at is not None else "–",
            number(capture.exchanges),
            size(capture.lost_bytes),
            share(capture.tls_bytes, capture.tcp_bytes),
            number(capture.quarantined),
        )
        for capture in unread.captures
    ]
    head = ("recording", "kind", "size #", "times (UTC)", "exchanges #", "lost #", "TLS #", "quarantine #")
    captures = table("Recordings", head, rows, unread.captures_left_out, "recordings with less trouble")
    return el("section", el("h3", "Recordings"), captures if rows else empty("No recording overlaps this time."))


def _protocols(unread: Unread) -> Html:
    rows = [
        (_PROTOCOLS.get(protocol.protocol, protocol.protocol), number(protocol.connections), size(protocol.bytes))
        for protocol in unread.protocols
    ]
    protocols = table("Connections by protocol", ("protocol", "connections #", "bytes #"), rows)
    return el("section", el("h3", "Connections"), protocols if rows else empty("No connection was recorded."))


def _quarantine(unread: Unread) -> Html:
    rows = [
        (
            reason.kind,
            reason.message or "",
            "" if reason.api_version is None else f"v{reason.api_version}",
            reason.detail,
            number(reason.rows),
            size(reason.bytes),
        )
        for reason in unread.quarantine
    ]
    head = ("kind", "message", "version", "why", "times #", "bytes #")
    reasons = table("Quarantine", head, rows, unread.quarantine_left_out, "rows of quarantine")
    return el("section", el("h3", "Quarantine"), reasons if rows else empty("Every frame could be decoded."))
