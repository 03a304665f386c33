"""A recording's name in, its exchanges twice out: as tcpdump saw them and as the request logs have them, in pairs, and
what only one of the two has, by kind."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Any

from kafkascope.capture.exchanges.exchange import Exchange
from kafkascope.capture.reader import read
from kafkascope.codec.frame import DecodedFrame
from tests.captures import capture, recording, request_logs, truth

# Answered by the network thread of a listener with SASL, before the request queue that the log is written behind.
LOGIN = {"SaslHandshake", "SaslAuthenticate", "SaslToken"}
# A recipe's notes of a node that is no more.
ENDS = ("killed", "cut", "stopped")


@dataclass(frozen=True, slots=True)
class Seen:
    """One exchange of one recording, or the request inside an Envelope, which the log has in the Envelope's place."""

    exchange: Exchange
    identity: tuple[Any, ...]
    request: Any
    response: Any


@dataclass(slots=True)
class Both:
    """`pairs` are (captured, logged); `only` is what one of the two has alone, by the reason why."""

    pairs: list[tuple[Seen, Seen]] = field(default_factory=list)
    only: dict[str, list[Exchange]] = field(default_factory=lambda: defaultdict(list))


@cache
def captured(name: str) -> list[Exchange]:
    return list(read(BytesIO(capture(name))))


@cache
def logged(name: str) -> list[Exchange]:
    return [exchange for text in request_logs(name).values() for exchange in read(BytesIO(text.encode()))]


BEGUN = "begun before the recording"


def both(name: str) -> Both:
    both_sides = Both()
    in_log = _by_identity(_outer(exchange) for exchange in logged(name))
    for identity, seen in _by_identity(_unwrapped(exchange) for exchange in captured(name)).items():
        lines = in_log.pop(identity, [])
        while seen and lines:
            both_sides.pairs.append((seen.pop(0), lines.pop(0)))
        for seen_exchange in seen:
            both_sides.only[_why_not_logged(name, seen_exchange.exchange)].append(seen_exchange.exchange)
        if lines:
            in_log[identity] = lines
    for lines in in_log.values():
        for seen_exchange in lines:
            both_sides.only[_why_not_captured(name, seen_exchange.exchange)].append(seen_exchange.exchange)
    return both_sides


def _why_not_logged(name: str, exchange: Exchange) -> str:
    if exchange.status == "answer_only":
        return BEGUN
    ports = _ports(name)
    node, listener = ports[_port(exchange.broker_address)]
    if exchange.api in LOGIN:
        return "login"
    if exchange.api == "ApiVersions" and listener == "SASL" and _before_login(name, exchange):
        return "ApiVersions before login"
    # the note is written just after the deed
    gone = [event["at"] for event in truth(name) if event["event"] in ENDS and event["node"] == node]
    if (
        exchange.status == "unanswered"
        and not _answered_later(name, exchange)
        and any(_time(exchange) <= at for at in gone)
    ):
        return "unanswered by a node that was killed or stopped"
    return "unexplained"


def _why_not_captured(name: str, exchange: Exchange) -> str:
    _, listener = _ports(name)[_port(exchange.broker_address)]
    if listener == "TLS":
        return "within TLS"
    return BEGUN if _time(exchange) < recording(name)["from"] else "unexplained"


def _answered_later(name: str, exchange: Exchange) -> bool:
    same = (other for other in captured(name) if other.connection_id == exchange.connection_id)
    return any(other.status == "answered" and _time(other) > _time(exchange) for other in same)


def _before_login(name: str, exchange: Exchange) -> bool:
    """No SaslHandshake on its connection yet."""
    first = next(e for e in captured(name) if e.connection_id == exchange.connection_id and e.api == "SaslHandshake")
    return _time(exchange) < _time(first)


def _time(exchange: Exchange) -> float:
    """Of the request, in microseconds since 1970, as the truth has it."""
    assert exchange.request_at is not None
    return exchange.request_at.timestamp() * 1e6


def _ports(name: str) -> dict[int, tuple[int, str]]:
    ports_by_node = recording(name)["ports"]
    return {port: (int(node), listener) for node, ports in ports_by_node.items() for listener, port in ports.items()}


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _by_identity(seen: Iterable[Seen]) -> dict[tuple[Any, ...], list[Seen]]:
    """In the order of time: clients whose requests a broker forwards on one connection can share correlation ids."""
    by_identity: dict[tuple[Any, ...], list[Seen]] = defaultdict(list)
    for exchange in seen:
        by_identity[exchange.identity].append(exchange)
    return by_identity


def _unwrapped(exchange: Exchange) -> Seen:
    inner = exchange.inner()
    if not inner:
        return _outer(exchange)
    request = inner[0]
    header = (request.api, request.version, request.correlation_id, request.header.value["clientId"])
    return Seen(
        exchange,
        (exchange.client_address, exchange.broker_address, *header),
        *(_body(frame) for frame in [*inner, None][:2]),
    )


def _outer(exchange: Exchange) -> Seen:
    header = (exchange.api, exchange.api_version, exchange.correlation_id, exchange.client_id)
    bodies = [_body(frame) for frame in (exchange.decode_request(), exchange.decode_response())]
    return Seen(exchange, (exchange.client_address, exchange.broker_address, *header), *bodies)


def _body(frame: DecodedFrame | None) -> Any:
    return _without_records(frame.body.value) if frame is not None and frame.body is not None else None


def _without_records(value: Any) -> Any:
    """The log has the size of record data alone, and no size where there is none."""
    if isinstance(value, dict):
        return {name: None if name == "records" else _without_records(item) for name, item in value.items()}
    return [_without_records(item) for item in value] if isinstance(value, list) else value
