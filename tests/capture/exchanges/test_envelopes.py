"""What an Envelope holds is read by the kernel; the careful codec, which reads what that leaves, says the same."""

from collections import defaultdict
from random import Random
from typing import Any

import numpy as np
import pytest

from kafkascope.capture.exchanges import facts
from kafkascope.capture.exchanges.envelopes import open_envelopes
from kafkascope.capture.exchanges.exchange import Exchange, to_exchanges
from kafkascope.capture.exchanges.exchanges import Pairer, Recordings
from kafkascope.capture.exchanges.messages import Messages
from kafkascope.capture.exchanges.name_cache import NameCache
from kafkascope.codec.frame import encode_frame
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import sample
from tests.support.frames import URI, Wire, connection

Tables = dict[str, list[dict[str, Any]]]


def put(wire: Wire, request: bytes, response: bytes | None, error: int = 0) -> None:
    value = {"requestData": request, "requestPrincipal": b"", "clientHostAddress": b"\n\0\0\2"}
    wire.ask("Envelope", 0, value, correlation=len(wire.rows))
    wire.answer("Envelope", 0, {"responseData": response, "errorCode": error}, correlation=len(wire.rows) - 1)


def read(wire: Wire) -> tuple[list[Exchange], Tables, int]:
    """Exchanges, tables, and how many envelopes the kernel opened."""
    batch = Pairer([connection(0)], Recordings([URI], [0]), names=True).finish(wire.frames())
    exchanges = list(to_exchanges(batch, NameCache().names(batch)))
    waiting = Messages()
    tables: Tables = defaultdict(list)
    for decoded in (*waiting.add(batch), *waiting.finish()):
        tables[decoded.name] += decoded.table.to_pylist()
    for rows in tables.values():
        rows.sort(key=lambda row: (row["exchange_id"], row["api_version"]))
    opened = 0 if batch.facts.inner is None else len(batch.facts.inner[0].outer)
    return exchanges, dict(tables), opened


def both(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> int:
    """Asserts that the two say the same."""
    exchanges, tables, opened = read(wire)

    def open_none(*args: Any) -> Any:
        inner = open_envelopes(*args)
        return inner.only(np.zeros(len(inner.outer), np.bool_))

    with monkeypatch.context() as patched:
        patched.setattr(facts, "open_envelopes", open_none)
        careful, careful_tables, none = read(wire)
    assert none == 0
    assert exchanges == careful
    assert tables == careful_tables
    return opened


def every_frame(cases: int) -> list[tuple[bytes, bytes]]:
    frames = []
    for key, api in apis().items():
        for version in message(f"{api}Request").all_versions():
            for case in range(cases):
                header = {"correlationId": case} | ({} if (key, version) == (7, 0) else {"clientId": "admin"})
                request = sample(layout(f"{api}Request", version), case)
                response = sample(layout(f"{api}Response", version), case)
                frames.append(
                    (
                        encode_frame(f"{api}Request", version, request, header, length=False),
                        encode_frame(f"{api}Response", version, response, {"correlationId": case}, length=False),
                    )
                )
    return frames


def test_every_version_of_every_api(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire()
    frames = every_frame(4)
    for request, response in frames:
        put(wire, request, response)
    assert both(wire, monkeypatch) > 0.9 * len(frames) > 1_000


def test_what_is_damaged_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off, longer than it is, other bytes, nothing, no answer, or an error of the envelope's own."""
    random = Random(20)
    wire = Wire()
    for request, response in every_frame(2):
        damaged = []
        for frame in (request, response):
            data = bytearray(frame)
            match random.randrange(5):
                case 0:
                    del data[random.randrange(len(data)) :]
                case 1:
                    data += b"\0"
                case 2 | 3:
                    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            damaged.append(bytes(data))
        put(wire, damaged[0], random.choice([damaged[1], damaged[1], None]), random.choice([0, 0, 31]))
    put(wire, b"", b"")
    assert 0 < both(wire, monkeypatch) < len(wire.rows) // 2
    exchanges, *_ = read(wire)
    problems = [(exchange.status, exchange.problem) for exchange in exchanges if exchange.problem is not None]
    assert {status for status, _ in problems} == {"undecoded"} and len(problems) > 100
    assert all("offset" in problem or "bytes" in problem for _, problem in problems)


def test_an_envelope_within_an_envelope_is_one_message_more(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Wire()
    header = {"correlationId": 9, "clientId": "admin"}
    put(inside, encode_frame("HeartbeatRequest", 4, {"groupId": "g"}, header, length=False), None)
    wire = Wire()
    put(wire, inside.rows[0][0], inside.rows[1][0])
    assert both(wire, monkeypatch) == 1
    _, tables, _ = read(wire)
    assert {name: len(rows) for name, rows in tables.items()} == {"EnvelopeRequest": 2, "EnvelopeResponse": 2}
