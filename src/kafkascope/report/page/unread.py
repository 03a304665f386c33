"""What could not be read in, the last part of the page out."""

from kafkascope.health.findings.words import count
from kafkascope.report.charts.figure import empty, table, tiles
from kafkascope.report.html.markup import Html, el
from kafkascope.report.summaries.unread import Unread
from kafkascope.report.words import interval, number, share, size

PROTOCOLS = {
    "kafka": "Kafka",
    "tls": "TLS: encrypted, not read",
    "http": "HTTP",
    "other": "something else",
    "unknown": "no bytes, or not enough to tell",
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
            one.capture_uri,
            one.kind or "",
            size(one.bytes),
            interval(one.first_at, one.last_at, 1_000_000) if one.first_at is not None else "–",
            number(one.exchanges),
            size(one.lost_bytes),
            share(one.tls_bytes, one.tcp_bytes),
            number(one.quarantined),
        )
        for one in unread.captures
    ]
    head = ("recording", "kind", "size #", "times (UTC)", "exchanges #", "lost #", "TLS #", "quarantine #")
    told = table("Recordings", head, rows, unread.captures_left_out, "recordings with less trouble")
    return el("section", el("h3", "Recordings"), told if rows else empty("No recording reaches into this time."))


def _protocols(unread: Unread) -> Html:
    rows = [
        (PROTOCOLS.get(one.protocol, one.protocol), number(one.connections), size(one.bytes))
        for one in unread.protocols
    ]
    told = table("Connections by what they speak", ("protocol", "connections #", "bytes #"), rows)
    return el("section", el("h3", "Connections"), told if rows else empty("No connection was recorded."))


def _quarantine(unread: Unread) -> Html:
    rows = [
        (
            one.kind,
            one.message or "",
            "" if one.api_version is None else f"v{one.api_version}",
            one.detail,
            number(one.rows),
            size(one.bytes),
        )
        for one in unread.quarantine
    ]
    head = ("kind", "message", "version", "why", "times #", "bytes #")
    told = table("Quarantine", head, rows, unread.quarantine_left_out, "rows of quarantine")
    return el(
        "section", el("h3", "Quarantine"), told if rows else empty("Every frame that was found could be decoded.")
    )
