"""Prints one aligned line per exchange: time, client, broker, API, latency, sizes, and a summary."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkascope.cli.read.summary import summary
from kafkascope.cli.terminal import cells, cut, cut_middle, padded, paint, width
from kafkascope.formatting import latency, printable, size

if TYPE_CHECKING:
    from datetime import datetime

    from kafkascope.capture.exchanges.exchange import Exchange

_STATUS = {
    "unanswered": "no response",
    "no_answer_expected": "",
    "answer_only": "response only",
    "undecoded": "cannot be read",
}
LATENCY_LETTERS = 7
SIZE_LETTERS = 8
# Longest IPv4 address with a port.
ADDRESS_LETTERS = 15

Cell = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that fit. `id_digits` are enough for `--exchange`, which takes the start of an id."""

    least: int
    id_digits: int
    time_digits: int
    client_letters: int
    api_letters: int
    ends: bool  # broker and sizes
    address: bool  # of the client, beside its id


# In a pipe lines have any length.
PIPE = Layout(0, 10, 6, 20, 100, ends=True, address=False)
LAYOUTS = (
    Layout(180, 10, 6, 20, 28, ends=True, address=True),
    Layout(150, 10, 6, 20, 28, ends=True, address=False),
    Layout(100, 10, 3, 20, 28, ends=False, address=False),
    Layout(0, 8, 3, 10, 20, ends=False, address=False),
)


class Lines:
    """Columns are as wide as the cells so far, so that lines are aligned and the first one appears at once."""

    def __init__(self) -> None:
        self._day = ""
        self._client = self._broker = self._api = len("client")
        self._cut = width() if sys.stdout.isatty() else None
        self._layout = PIPE if self._cut is None else next(widths for widths in LAYOUTS if self._cut >= widths.least)

    def show(self, exchanges: "list[Exchange]") -> None:
        for exchange in exchanges:
            self._client = max(self._client, cells(self._named(exchange)))
            self._broker = max(self._broker, cells(exchange.broker_address))
            self._api = max(self._api, len(self._called(exchange)))
        for exchange in exchanges:
            self._show(exchange)

    def _show(self, exchange: "Exchange") -> None:
        at = exchange.request_at or exchange.response_at
        layout = self._layout
        sized = layout.ends and not (exchange.request_bytes is None and exchange.response_bytes is None)
        self._head(at, sized)
        row = [
            (exchange.exchange_id[: layout.id_digits], ("dim",)),
            ((at.strftime("%H:%M:%S.%f") if at else "").ljust(15)[: 9 + layout.time_digits], ()),
            (padded(self._named(exchange), self._client), ("cyan",)),
            ("→" if layout.ends else "", ("dim",)),
            (padded(exchange.broker_address, self._broker) if layout.ends else "", ("dim",)),
            (self._called(exchange).ljust(self._api), _api_style(exchange)),
            (latency(exchange.latency_us).rjust(LATENCY_LETTERS), _latency_style(exchange)),
            (size(exchange.request_bytes).rjust(SIZE_LETTERS) if sized else "", ("dim",)),
            (size(exchange.response_bytes).rjust(SIZE_LETTERS) if sized else "", ("dim",)),
            *_remarks(exchange),
            (summary(exchange), ()),
        ]
        print(self._fit([(text, style) for text, style in row if text]))

    def _head(self, at: "datetime | None", sized: bool) -> None:
        """Prints the day above its lines; a line without a time belongs to the day before it."""
        day = at.strftime("%Y-%m-%d UTC") if at else self._day or "no time"
        if day == self._day:
            return
        self._day = day
        layout = self._layout
        row = [
            day.ljust(layout.id_digits + 10 + layout.time_digits),
            "client".ljust(self._client),
            *(["→", "broker".ljust(self._broker)] if layout.ends else []),
            "API".ljust(self._api),
            "latency".rjust(LATENCY_LETTERS),
            *(["request".rjust(SIZE_LETTERS), "response".rjust(SIZE_LETTERS)] if sized else []),
        ]
        print(self._fit([(cell, ("dim",)) for cell in row]))

    def _named(self, exchange: "Exchange") -> str:
        if not exchange.client_id:
            address = exchange.client_address
            return address if self._layout.ends else cut_middle(address, ADDRESS_LETTERS)
        name = cut_middle(exchange.client_id, self._layout.client_letters)
        return f"{name} {exchange.client_address}" if self._layout.address else name

    def _called(self, exchange: "Exchange") -> str:
        version = "" if exchange.api_version is None else f" v{exchange.api_version}"
        name = exchange.api or ("?" if exchange.api_key is None else f"key {exchange.api_key}")
        room = self._layout.api_letters - len(version)
        return (name if len(name) <= room else f"{name[: room - 1]}…") + version

    def _fit(self, row: list[Cell]) -> str:
        """On a terminal it's one line, whatever characters the wire put into its cells."""
        room = self._cut
        parts = []
        for cell, style in row:
            text = printable(cell)
            if room is not None:
                taken = cells(text)
                if taken > room:
                    parts.append(paint(f"{cut(text, room - 1)}…", *style))
                    break
                room -= taken + 1
            parts.append(paint(text, *style))
            if room is not None and room <= 0:
                break
        return " ".join(parts).rstrip()


def _remarks(exchange: "Exchange") -> list[Cell]:
    remarks: list[Cell] = []
    if exchange.error:
        remarks.append((exchange.error, ("red", "bold")))
    if _STATUS.get(exchange.status):
        why = exchange.problem if exchange.status == "undecoded" else None
        remarks.append((_STATUS[exchange.status] + (f": {why}" if why else ""), ("yellow",)))
    if exchange.throttle_ms:
        remarks.append((f"throttled {exchange.throttle_ms} ms", ("yellow",)))
    return remarks


def _api_style(exchange: "Exchange") -> tuple[str, ...]:
    return ("red",) if exchange.error or exchange.status == "undecoded" else ("green",)


def _latency_style(exchange: "Exchange") -> tuple[str, ...]:
    """Highlights slow exchanges, but not long polls, which wait by design."""
    if exchange.long_poll or exchange.latency_us is None:
        return ("dim",)
    return ("yellow", "bold") if exchange.latency_us >= 100_000 else ()
