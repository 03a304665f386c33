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
    return [one for text in request_logs(name).values() for one in read(BytesIO(text.encode()))]


def both(name: str) -> Both:
    found = Both()
    in_log = _by_identity(_outer(one) for one in logged(name))
    for identity, seen in _by_identity(_unwrapped(one) for one in captured(name)).items():
        lines = in_log.pop(identity, [])
        while seen and lines:
            found.pairs.append((seen.pop(0), lines.pop(0)))
        for one in seen:
            found.only[_why_not_logged(name, one.exchange)].append(one.exchange)
        if lines:
            in_log[identity] = lines
    for lines in in_log.values():
        for one in lines:
            found.only[_why_not_captured(name, one.exchange)].append(one.exchange)
    return found


def _why_not_logged(name: str, one: Exchange) -> str:
    ports = _ports(name)
    node, listener = ports[_port(one.broker_address)]
    if one.api in LOGIN:
        return "login"
    if one.api == "ApiVersions" and listener == "SASL" and _before_login(name, one):
        return "ApiVersions before login"
    # the note is written just after the deed
    gone = [event["at"] for event in truth(name) if event["event"] in ENDS and event["node"] == node]
    if one.status == "unanswered" and not _answered_later(name, one) and any(_time(one) <= at for at in gone):
        return "unanswered by a node that was killed or stopped"
    return "unexplained"


def _why_not_captured(name: str, one: Exchange) -> str:
    _, listener = _ports(name)[_port(one.broker_address)]
    return "within TLS" if listener == "TLS" else "unexplained"


def _answered_later(name: str, one: Exchange) -> bool:
    same = (other for other in captured(name) if other.connection_id == one.connection_id)
    return any(other.status == "answered" and _time(other) > _time(one) for other in same)


def _before_login(name: str, one: Exchange) -> bool:
    """No SaslHandshake on its connection yet."""
    first = next(e for e in captured(name) if e.connection_id == one.connection_id and e.api == "SaslHandshake")
    return _time(one) < _time(first)


def _time(one: Exchange) -> float:
    """Of the request, in microseconds since 1970, as the truth has it."""
    assert one.request_at is not None
    return one.request_at.timestamp() * 1e6


def _ports(name: str) -> dict[int, tuple[int, str]]:
    told = recording(name)["ports"]
    return {port: (int(node), listener) for node, ports in told.items() for listener, port in ports.items()}


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _by_identity(seen: Iterable[Seen]) -> dict[tuple[Any, ...], list[Seen]]:
    """In the order of time: clients whose requests a broker forwards on one connection can share correlation ids."""
    found: dict[tuple[Any, ...], list[Seen]] = defaultdict(list)
    for one in seen:
        found[one.identity].append(one)
    return found


def _unwrapped(one: Exchange) -> Seen:
    inner = one.inner()
    if not inner:
        return _outer(one)
    asked = inner[0]
    header = (asked.api, asked.version, asked.correlation_id, asked.header.value["clientId"])
    return Seen(one, (one.client_address, one.broker_address, *header), *(_body(frame) for frame in [*inner, None][:2]))


def _outer(one: Exchange) -> Seen:
    header = (one.api, one.api_version, one.correlation_id, one.client_id)
    bodies = [_body(frame) for frame in (one.decode_request(), one.decode_response())]
    return Seen(one, (one.client_address, one.broker_address, *header), *bodies)


def _body(frame: DecodedFrame | None) -> Any:
    return _without_records(frame.body.value) if frame is not None and frame.body is not None else None


def _without_records(value: Any) -> Any:
    """The log has the size of record data alone, and no size where there is none."""
    if isinstance(value, dict):
        return {name: None if name == "records" else _without_records(item) for name, item in value.items()}
    return [_without_records(item) for item in value] if isinstance(value, list) else value
