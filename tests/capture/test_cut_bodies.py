"""Bodies that end inside a field: the kernel leaves them alone, and says of them what the careful codec would."""

from random import Random
from typing import Any

import pytest

from kafkascope.capture.exchanges import facts
from kafkascope.codec.frame import encode_frame
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import sample
from tests.support.frames import Wire

SEED = 1511


def _cut_frames() -> Wire:
    """Of every version of every API a whole exchange, and some whose request or response is cut or has other bytes."""
    random = Random(SEED)
    wire = Wire()
    for key, api in apis().items():
        for version in message(f"{api}Request").all_versions():
            for case in range(6):
                header = {"correlationId": case} | ({} if (key, version) == (7, 0) else {"clientId": None})
                request = encode_frame(
                    f"{api}Request", version, sample(layout(f"{api}Request", version), case), header, length=False
                )
                value = sample(layout(f"{api}Response", version), case)
                if api == "ApiVersions" and case % 2:
                    value["errorCode"] = facts.UNSUPPORTED_VERSION
                answered = encode_frame(f"{api}Response", version, value, {"correlationId": case}, length=False)
                if case in (1, 2):
                    request = request[:10] + _damaged(request[10:], random)
                if case in (2, 3, 4, 5):
                    answered = answered[:4] + _damaged(answered[4:], random)
                wire.raw(request, 0).raw(answered, 1)
    return wire


def _damaged(body: bytes, random: Random) -> bytes:
    if random.random() < 0.3 and body:
        at = random.randrange(len(body))
        return body[:at] + random.randbytes(1) + body[at + 1 :]
    return body[: random.randrange(len(body) + 1)]


def _rows(wire: Wire) -> list[tuple[Any, ...]]:
    return [
        (
            exchange.api,
            exchange.api_version,
            exchange.status,
            exchange.error_code,
            exchange.throttle_ms,
            exchange.max_wait_ms,
            exchange.topics,
            exchange.groups,
        )
        for exchange in wire.exchanges()
    ]


def test_the_codec_says_the_same_of_bodies_that_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = _cut_frames()
    left = _rows(wire)
    cut: list[int] = []
    monkeypatch.setattr(facts, "_leave_cut", lambda _, state, *_more: cut.append(int((state & facts.CUT_SHORT).sum())))
    careful = _rows(wire)
    different = [(row, careful_row) for row, careful_row in zip(left, careful, strict=True) if row != careful_row]
    assert sum(cut) > 1000
    assert not different, f"seed {SEED}, {len(different)} of {len(left)}: {different[:5]}"


def test_bodies_that_are_cut_are_no_work_for_the_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand of them in a recording took a minute."""
    monkeypatch.setattr(facts, "_read_carefully", lambda *_: pytest.fail("the codec was asked"))
    wire = Wire()
    for number in range(100):
        wire.raw(bytes.fromhex("0003 0001") + number.to_bytes(4, "big") + bytes.fromhex("ffff 7fffffff"), 0)
        wire.ask("Heartbeat", 0, correlation=number + 100)
        wire.raw((number + 100).to_bytes(4, "big") + b"\0", 1)
    assert {exchange.status for exchange in wire.exchanges()} == {"undecoded"}
