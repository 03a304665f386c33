"""Prints one exchange in full: its columns, then request and response as a tree beside their bytes, or as JSON. Secrets
are always hidden, record data unless requested."""

from typing import TYPE_CHECKING, Any

from kafkascope.capture.exchanges.redaction import hidden_annotations, hidden_json, may_show_records
from kafkascope.cli.bytes.hex_view import print_hex
from kafkascope.cli.bytes.records_view import print_records
from kafkascope.cli.output import print_json
from kafkascope.cli.read.summary import SOFTWARE_LETTERS
from kafkascope.cli.tables import table
from kafkascope.cli.terminal import heading, paint, prose, shortened
from kafkascope.codec.annotations.frame import annotations_of
from kafkascope.codec.records.records_form import records_json
from kafkascope.errors import DecodeError
from kafkascope.formatting import latency, printable, size
from kafkascope.times import readable

if TYPE_CHECKING:
    from kafkascope.capture.exchanges.exchange import Exchange
    from kafkascope.codec.frame import DecodedFrame


def print_exchange(exchange: "Exchange", *, records: bool, full: bool) -> None:
    version = "" if exchange.api_version is None else f" v{exchange.api_version}"
    api = exchange.api or ("response only" if exchange.api_key is None else f"API key {exchange.api_key}")
    print(paint(f"{api}{version}", "bold") + paint(f"  {exchange.exchange_id}", "dim"))
    table(_facts(exchange), indent="  ")
    readable = True
    for side in ("request", "response"):
        frame_bytes = exchange.request_frame if side == "request" else exchange.response_frame
        if frame_bytes is None:
            continue
        try:
            frame = exchange.decode_request(spans=True) if side == "request" else exchange.decode_response(spans=True)
        except DecodeError as error:
            heading(f"{side.capitalize()}, {size(len(frame_bytes) + 4)}")
            prose(printable(f"cannot be read: {error}"), "  ")
            readable = False
            continue
        if frame is None:
            heading(f"{side.capitalize()}, {size(len(frame_bytes) + 4)}")
            prose("a SASL token, hidden" if exchange.api else "its request is not in the recording", "  ")
            continue
        shown = records and frame.body is not None and may_show_records(frame.body, exchange.topics)
        _print_frame(side.capitalize(), frame, len(frame_bytes).to_bytes(4, "big") + frame_bytes, shown, full)
    for frame, content in _inner(exchange):
        # Forwarded messages have no records.
        _print_frame(f"{frame.kind.capitalize()} inside", frame, content, records=False, full=full)
    if readable and (problem := exchange.problem):
        heading("Inside")
        prose(printable(f"cannot be read: {problem}"), "  ")


def _inner(exchange: "Exchange") -> "list[tuple[DecodedFrame, bytes]]":
    from kafkascope.capture.exchanges.bodies import read_frame
    from kafkascope.capture.exchanges.exchange import inner_frames

    if not exchange.inner():
        return []
    frames = []
    request_key: tuple[int, int] | None = None
    for frame, content in inner_frames(exchange.request_frame, exchange.response_frame):
        frames.append((read_frame(content[4:], request_key, spans=True), content))
        request_key = (frame.api_key, frame.version)
    return frames


def _print_frame(title: str, frame: "DecodedFrame", raw: bytes, records: bool, full: bool) -> None:
    heading(f"{title}: {frame.name or f'API key {frame.api_key}'} v{frame.version}, {size(len(raw))}")
    print()
    annotations = annotations_of(frame, raw, None)
    print_hex(raw, hidden_annotations(frame, annotations, records=records), full=full)
    if frame.body is not None:
        print_records(frame.body, None, contents=records, full=full)
    for reason in frame.reasons:
        prose(printable(f"not exact: {reason}"))


def _facts(exchange: "Exchange") -> list[tuple[str, ...]]:
    def moment(at: Any) -> str:
        return "" if at is None else f"{readable(at, 6)} UTC"

    waits = (
        f", may wait {exchange.max_wait_ms} ms" if exchange.max_wait_ms else ", may wait" if exchange.long_poll else ""
    )
    software = f" ({shortened(exchange.client_software, SOFTWARE_LETTERS)})" if exchange.client_software else ""
    place = "line" if exchange.request_bytes is None and exchange.response_bytes is None else "packet"
    facts = {
        "status": exchange.status,
        "error": f"{exchange.error} ({exchange.error_code})" if exchange.error else "",
        "client": f"{shortened(exchange.client_id or '(no client id)', 80)} at {exchange.client_address}{software}",
        "broker": exchange.broker_address,
        "request at": moment(exchange.request_at),
        "response at": moment(exchange.response_at),
        "latency": f"{latency(exchange.latency_us)}{waits}" if exchange.latency_us is not None else "",
        "throttled": f"{exchange.throttle_ms} ms" if exchange.throttle_ms else "",
        "correlation id": "" if exchange.correlation_id is None else str(exchange.correlation_id),
        "connection": exchange.connection_id,
        "recording": f"{exchange.capture_uri}, {place} {exchange.packet}",
        "groups": ", ".join(shortened(name, 80) for name in exchange.groups),
        "members": ", ".join(shortened(name, 80) for name in exchange.members),
        "topics": ", ".join(shortened(name, 80) for name in exchange.topics),
    }
    return [(name, printable(text)) for name, text in facts.items() if text]


def print_exchange_json(exchange: "Exchange", columns: dict[str, Any], *, records: bool) -> None:
    answer = dict(columns)
    for side in ("request", "response"):
        try:
            body = getattr(exchange, side)
        except DecodeError as error:
            answer[side], answer[f"{side}_problem"] = None, str(error)
            continue
        answer[side] = None if body is None else hidden_json(body)
        if body is not None and records and may_show_records(body, exchange.topics):
            answer[f"{side}_records"] = records_json(body, None)
    print_json(answer)
