"""Exchanges in, one aligned and coloured line each out: time, client, broker, API, latency, sizes, what it is about."""

import sys
from typing import TYPE_CHECKING

from kafkascope.cli.read_summary import shortened, summary
from kafkascope.cli.read_units import latency, size
from kafkascope.cli.terminal import paint, width

if TYPE_CHECKING:
    from kafkascope.capture.exchange import Exchange

# Enough of an id to ask for: `--exchange` takes the start of one.
ID_DIGITS = 10
CLIENT_LETTERS = 20
# Here addresses of clients fit beside their ids.
WIDE = 150
_STATUS = {
    "unanswered": "no answer",
    "no_answer_expected": "",
    "answer_only": "answer alone",
    "undecoded": "cannot be read",
}


class Lines:
    """Columns are as wide as what came so far, so that lines stay aligned and the first comes at once."""

    def __init__(self) -> None:
        self._day = ""
        self._client = self._broker = self._api = 0
        self._cut = width() if sys.stdout.isatty() else None

    def show(self, exchanges: "list[Exchange]") -> None:
        for exchange in exchanges:
            self._client = max(self._client, len(self._named(exchange)))
            self._broker = max(self._broker, len(exchange.broker_address))
            self._api = max(self._api, len(_api(exchange)))
        for exchange in exchanges:
            self._show(exchange)

    def _show(self, exchange: "Exchange") -> None:
        at = exchange.request_at or exchange.response_at
        assert at is not None
        day = at.strftime("%Y-%m-%d")
        if day != self._day:
            self._day = day
            print(paint(f"{day} UTC", "dim"))
        sizes = f"{size(exchange.request_bytes):>8} {size(exchange.response_bytes):>8}"
        if exchange.request_bytes is None and exchange.response_bytes is None:
            sizes = ""
        cells = [
            (exchange.exchange_id[:ID_DIGITS], ("dim",)),
            (at.strftime("%H:%M:%S.%f"), ()),
            (self._named(exchange).ljust(self._client), ("cyan",)),
            ("→", ("dim",)),
            (f"{exchange.broker_address:<{self._broker}}", ("dim",)),
            (_api(exchange).ljust(self._api), _api_style(exchange)),
            (f"{latency(exchange.latency_us):>8}", _latency_style(exchange)),
            (sizes, ("dim",)),
            *self._remarks(exchange),
            (summary(exchange), ()),
        ]
        print(self._fit([(text, style) for text, style in cells if text]))

    def _named(self, exchange: "Exchange") -> str:
        name = shortened(exchange.client_id, CLIENT_LETTERS) if exchange.client_id else ""
        if not name:
            return exchange.client_address
        return f"{name} {exchange.client_address}" if width() >= WIDE else name

    def _remarks(self, exchange: "Exchange") -> list[tuple[str, tuple[str, ...]]]:
        found: list[tuple[str, tuple[str, ...]]] = []
        if exchange.error:
            found.append((exchange.error, ("red", "bold")))
        if _STATUS.get(exchange.status):
            found.append((_STATUS[exchange.status], ("yellow",)))
        if exchange.throttle_ms:
            found.append((f"throttled {exchange.throttle_ms} ms", ("yellow",)))
        return found

    def _fit(self, cells: list[tuple[str, tuple[str, ...]]]) -> str:
        """On a terminal a line is one line."""
        room = self._cut
        parts = []
        for text, style in cells:
            if room is not None:
                if len(text) > room:
                    parts.append(paint(f"{text[: max(room - 1, 0)]}…", *style))
                    break
                room -= len(text) + 1
            parts.append(paint(text, *style))
            if room is not None and room <= 0:
                break
        return " ".join(parts).rstrip()


def _api(exchange: "Exchange") -> str:
    version = "" if exchange.api_version is None else f" v{exchange.api_version}"
    return (exchange.api or ("?" if exchange.api_key is None else f"key {exchange.api_key}")) + version


def _api_style(exchange: "Exchange") -> tuple[str, ...]:
    return ("red",) if exchange.error or exchange.status == "undecoded" else ("green",)


def _latency_style(exchange: "Exchange") -> tuple[str, ...]:
    """A long poll waits by design: only what is slow for no such reason stands out."""
    if exchange.long_poll or exchange.latency_us is None:
        return ("dim",)
    return ("yellow", "bold") if exchange.latency_us >= 100_000 else ()
