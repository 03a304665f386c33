"""The group and member that an exchange is about, against the codec's own reading of both bodies."""

import pytest

from kafkascope.capture.exchanges.bodies import decode_request, decode_response
from kafkascope.capture.exchanges.facts import ids_of
from kafkascope.capture.frames.scan_program import (
    Fact,
)
from kafkascope.codec.frame import encode_frame
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import sample
from tests.support.frames import Wire


def _ids(wire: Wire) -> list[tuple[str | None, str | None]]:
    return [(exchange.group_id, exchange.member_id) for exchange in wire.exchanges()]


def test_the_request_names_them_or_the_response_does() -> None:
    wire = Wire()
    wire.ask("JoinGroup", 4, {"groupId": "orders"}, correlation=1)
    members = [{"memberId": "a-1"}, {"memberId": "a-2"}]
    wire.answer("JoinGroup", 4, {"memberId": "a-1", "members": members}, correlation=1)
    wire.ask("Heartbeat", 4, {"groupId": "orders", "memberId": "a-1"}, correlation=2)
    wire.answer("Heartbeat", 4, correlation=2)
    wire.ask("Metadata", 9, correlation=3).answer("Metadata", 9, correlation=3)
    assert _ids(wire) == [("orders", "a-1"), ("orders", "a-1"), (None, None)]


def test_of_several_there_is_none() -> None:
    wire = Wire()
    for correlation, groups in enumerate((["a", "b"], ["a", "a"], ["a"]), 1):
        wire.ask("DescribeGroups", 5, {"groups": groups}, correlation=correlation)
        described = [{"groupId": group, "members": [{"memberId": "m"}]} for group in groups]
        wire.answer("DescribeGroups", 5, {"groups": described}, correlation=correlation)
    assert _ids(wire) == [(None, None), ("a", None), ("a", None)]


def test_a_list_in_a_response_names_none() -> None:
    wire = Wire().ask("ListGroups", 4).answer("ListGroups", 4, {"groups": [{"groupId": "orders"}]})
    assert _ids(wire) == [(None, None)]


@pytest.mark.parametrize(("key_type", "group"), [(0, "orders"), (1, None), (2, None)])
@pytest.mark.parametrize("version", [1, 3, 4, 6])
def test_a_coordinator_is_wanted_for_a_group_or_for_something_else(version: int, key_type: int, group: object) -> None:
    keys = {"coordinatorKeys": ["orders"]} if version >= 4 else {"key": "orders"}
    wire = Wire().ask("FindCoordinator", version, {"keyType": key_type} | keys).answer("FindCoordinator", version)
    assert _ids(wire) == [(group, None)]


def test_what_kafka_writes_otherwise_has_them_too_and_text_of_any_kind() -> None:
    wire = Wire()
    for correlation, group in enumerate(("plain", "größer", "plain"), 1):
        header = {"correlationId": correlation, "clientId": "app"}
        request = encode_frame("HeartbeatRequest", 4, {"groupId": group, "memberId": "m"}, header, length=False)
        # A tag that nobody knows at the end of the first: the careful codec reads it.
        request = request[:-1] + bytes.fromhex("01 63 00") if correlation == 1 else request
        wire.raw(request, 0).answer("Heartbeat", 4, correlation=correlation)
    wire.raw(bytes.fromhex("000c 0000 00000004 0003 617070 0002 c328 00000001 0001 6d"), 0)  # group "\xc3("
    assert _ids(wire) == [("plain", "m"), ("größer", "m"), ("plain", "m"), ("\ufffd(", "m")]


def test_the_kernel_names_what_the_codec_names_in_every_version_of_every_api() -> None:
    wire = Wire()
    for key, api in apis().items():
        if api in ("Produce", "Envelope"):
            continue
        for version in message(f"{api}Request").all_versions():
            for case in range(8):
                header = {"correlationId": case} | ({} if (key, version) == (7, 0) else {"clientId": None})
                for side, kind in enumerate(("Request", "Response")):
                    value = sample(layout(f"{api}{kind}", version), case)
                    if api == "ApiVersions" and side:
                        value["errorCode"] = 0
                    head = header if side == 0 else {"correlationId": case}
                    wire.raw(encode_frame(f"{api}{kind}", version, value, head, length=False), side)
    exchanges = wire.exchanges()
    wrong = []
    for exchange in exchanges:
        request, response = decode_request(exchange.request_frame or b""), None
        assert request is not None and exchange.api_key is not None and exchange.api_version is not None
        response = decode_response(exchange.response_frame or b"", exchange.api_key, exchange.api_version)
        assert response is not None
        ids = ids_of(response) | ids_of(request)
        if (exchange.group_id, exchange.member_id) != (ids.get(Fact.GROUP_AT), ids.get(Fact.MEMBER_AT)):
            wrong.append((exchange.api, exchange.api_version, exchange.group_id, exchange.member_id, ids))
    assert sum(exchange.group_id is not None for exchange in exchanges) > 400
    assert not wrong, wrong[:5]
