"""`encode`, `example` and `vectors`: Kafka's JSON in, bytes out in any form, and back without a difference."""

import base64
import json
from pathlib import Path

import pytest

from kafkascope.codec.json_form import from_json
from kafkascope.codec.message import decode, encode
from kafkascope.schema.catalog import index
from tests.support.cli import Cli, is_one_line_error, process
from tests.support.hexes import hexes

HEARTBEAT = '{"groupId": "order", "generationId": 12, "memberId": "m-1"}'
BODY = hexes("""
    0005 6f72646572   # group id "order"
    0000 000c         # generation id 12
    0003 6d2d31       # member id "m-1"
""")


def test_json_becomes_the_body_as_hex(cli: Cli) -> None:
    assert cli.out("encode", "HeartbeatRequest:0", HEARTBEAT) == BODY.hex() + "\n"


def test_json_comes_from_a_file_or_standard_input_too(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "heartbeat.json"
    file.write_text(HEARTBEAT)
    for answer in (
        cli.out("encode", "HeartbeatRequest:0", f"@{file}"),
        cli.out("encode", "HeartbeatRequest:0", "-", stdin=HEARTBEAT.encode()),
        cli.out("encode", "HeartbeatRequest:0", stdin=HEARTBEAT.encode()),
    ):
        assert answer == BODY.hex() + "\n"


def test_a_frame_has_length_and_header(cli: Cli) -> None:
    frame = hexes("""
        0000 001d         # 29 bytes follow
        000c 0000         # Heartbeat v0
        0000 002a         # correlation id 42
        0003 617070       # client id "app"
    """) + BODY  # fmt: skip
    arguments = ("HeartbeatRequest:0", HEARTBEAT, "--frame", "--correlation-id", "42", "--client-id", "app")
    assert cli.out("encode", *arguments) == frame.hex() + "\n"


def test_a_frame_of_a_response_has_the_response_header(cli: Cli) -> None:
    out = bytes.fromhex(
        cli.out("encode", "HeartbeatResponse:0", '{"errorCode": 25}', "--frame", "--correlation-id", "9")
    )
    assert out == hexes("0000 0006  0000 0009  0019")


def test_every_output_is_the_same_bytes(cli: Cli) -> None:
    assert base64.b64decode(cli.out("encode", "HeartbeatRequest:0", HEARTBEAT, "--output", "base64")) == BODY
    assert process("encode", "HeartbeatRequest:0", HEARTBEAT, "--output", "raw").stdout == BODY
    document = json.loads(cli.out("encode", "HeartbeatRequest:0", HEARTBEAT, "--json"))
    assert document == {"message": "HeartbeatRequest", "version": 0, "hex": BODY.hex()}
    annotated = cli.out("encode", "HeartbeatRequest:0", HEARTBEAT, "--output", "annotated")
    assert 'groupId = "order"' in annotated
    assert "generationId = 12" in annotated


def test_both_spellings_of_a_field_are_read(cli: Cli) -> None:
    spelled = HEARTBEAT.replace("groupId", "GroupId").replace("generationId", "GenerationId")
    assert cli.out("encode", "HeartbeatRequest:0", spelled) == BODY.hex() + "\n"


def test_missing_fields_take_their_defaults(cli: Cli) -> None:
    value = json.loads(
        cli.out("decode", cli.out("encode", "ShareFetchRequest:2", "{}"), "--as", "ShareFetchRequest:2", "--json")
    )
    assert value["value"]["maxBytes"] == 2147483647
    assert value["value"]["topics"] == []


def test_a_client_id_without_a_frame_is_refused_rather_than_dropped(cli: Cli) -> None:
    answer = cli("encode", "HeartbeatRequest:0", HEARTBEAT, "--client-id", "app")
    assert answer.code == 2
    assert "--frame" in answer.err


def test_a_client_id_where_the_header_has_none_is_refused(cli: Cli) -> None:
    answer = cli("encode", "HeartbeatResponse:0", "{}", "--frame", "--client-id", "app")
    assert answer.code == 2
    assert "has no client id" in answer.err


@pytest.mark.parametrize(
    "name",
    [
        "ShareFetchRequest:2",
        "ShareGroupDescribeResponse:1",
        "StreamsGroupHeartbeatResponse:0",
        "DescribeQuorumResponse:1",
        "FetchResponse:4",
        "ProduceRequest:0",
        "ApiVersionsResponse:4",
        "RegisterBrokerRecord:3",
        "OffsetCommitValue:4",
        "SnapshotHeaderRecord:0",
        "RequestHeader:2",
    ],
)
def test_an_example_goes_round(cli: Cli, name: str) -> None:
    value = json.loads(cli.out("example", name))
    body = cli.out("encode", name, json.dumps(value)).strip()
    document = json.loads(cli.out("decode", body, "--as", name, "--json")) if body else {"value": {}, "exact": True}
    assert (document["value"], document["exact"]) == (value, True)


def test_an_example_as_hex_is_the_whole_frame(cli: Cli) -> None:
    document = json.loads(cli.out("example", "ShareFetchRequest:2", "--json"))
    assert cli.out("example", "ShareFetchRequest:2", "--hex").strip() == document["hex"]
    assert document["hex"].startswith("00000099004e0002")
    assert "shareAcquireMode = 0 (batch-optimized)" in cli.out("example", "ShareFetchRequest:2", "--annotated")


def test_an_example_of_a_quorum_keeps_kafkas_rules(cli: Cli) -> None:
    value = json.loads(cli.out("example", "DescribeQuorumResponse:1"))
    (topic,) = value["topics"]
    (partition,) = topic["partitions"]
    voters = {voter["replicaId"]: voter for voter in partition["currentVoters"]}
    assert topic["topicName"] == "__cluster_metadata"
    assert partition["highWatermark"] <= voters[partition["leaderId"]]["logEndOffset"]


def test_vectors_are_json_and_decode_back(cli: Cli, tmp_path: Path) -> None:
    answer = cli("vectors", str(tmp_path / "new" / "folder"), "--only", "ShareFetch", "--only", "TopicRecord")
    assert (answer.code, answer.out) == (0, "")
    files = {file.stem: file for file in (tmp_path / "new" / "folder").iterdir()}
    assert files.keys() == {"ShareFetchRequest", "ShareFetchResponse", "TopicRecord"}
    rows = json.loads(files["ShareFetchRequest"].read_text())
    assert {row["version"] for row in rows} == {0, 1, 2}
    assert {"example", "default", "least", "most", "unknown tags"} <= {row["case"] for row in rows}
    for row in [row for file in files.values() for row in json.loads(file.read_text())]:
        value = from_json(row["message"], row["version"], row["json"], row.get("release"))
        data = bytes.fromhex(row["hex"])
        assert encode(row["message"], row["version"], value, row.get("release")) == data
        assert decode(row["message"], row["version"], data, row.get("release")).exact


def test_vectors_are_of_what_is_asked_for_once(cli: Cli, tmp_path: Path) -> None:
    def write_vectors(*only: str) -> tuple[int, int]:
        flags = [flag for name in only for flag in ("--only", name)]
        document = json.loads(cli.out("vectors", str(tmp_path), *flags, "--json"))
        return document["messages"], document["vectors"]

    assert write_vectors("78", "ShareFetchRequest", "sharefetch:1") == write_vectors("ShareFetch")
    whole, single = write_vectors("ShareFetchRequest"), write_vectors("ShareFetchRequest:1")
    assert single[0] == whole[0] == 1
    assert 0 < single[1] < whole[1]
    assert {row["version"] for row in json.loads((tmp_path / "ShareFetchRequest.json").read_text())} == {1}
    assert write_vectors("ShareFetchRequest:1", "ShareFetchRequest:1", "ShareFetchRequest:2")[1] < whole[1]
    assert write_vectors("ShareFetchRequest:1", "ShareFetchRequest") == whole


def test_vectors_of_all_messages_are_counted(cli: Cli, tmp_path: Path) -> None:
    document = json.loads(cli.out("vectors", str(tmp_path), "--json"))
    assert document["messages"] == len(index()) == len(list(tmp_path.iterdir()))
    assert document["vectors"] > 8000


@pytest.mark.parametrize(
    ("name", "value", "place", "message"),
    [
        ("HeartbeatRequest:0", '{"generationId": "x"}', "generationId", "expected int32"),
        ("HeartbeatRequest:0", '{"generationId": true}', "generationId", "expected int32"),
        ("HeartbeatRequest:0", '{"generationId": 1.5}', "generationId", "expected int32"),
        ("HeartbeatRequest:0", '{"generationId": NaN}', "generationId", "expected int32"),
        ("HeartbeatRequest:0", '{"generationId": null}', "generationId", "null"),
        ("HeartbeatRequest:0", '{"generationId": 2147483648}', "generationId", "doesn't fit int32"),
        ("HeartbeatRequest:0", '{"groupId": "\\ud800"}', "groupId", "surrogate"),
        ("HeartbeatRequest:0", '{"generationIdd": 1}', "generationIdd", "did you mean generationId"),
        ("ShareFetchRequest:2", '{"topics": [{"partitions": [{"partitionIndex": "0"}]}]}',
         "topics[0].partitions[0].partitionIndex", "expected int32"),
        ("ShareFetchRequest:2", '{"topics": {}}', "topics", "list"),
        ("ShareFetchRequest:2", '{"topics": [7]}', "topics[0]", "object"),
        ("ShareFetchRequest:2", '{"topics": [{"topicId": "short"}]}', "topics[0].topicId", "uuid"),
        ("ShareFetchRequest:0", '{"isRenewAck": true}', "isRenewAck", "no such field"),
        ("SaslAuthenticateRequest:0", '{"authBytes": "%%"}', "authBytes", "base64"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named_by_its_place(
    cli: Cli, name: str, value: str, place: str, message: str
) -> None:
    answer = cli("encode", name, value)
    assert (answer.code, answer.out) == (3, "")
    assert is_one_line_error(answer.err)
    assert f", {place}: " in answer.err
    assert message in answer.err


@pytest.mark.parametrize("value", ["[1]", "null", "7", '"text"'])
def test_json_that_is_no_object_is_refused(cli: Cli, value: str) -> None:
    answer = cli("encode", "HeartbeatRequest:0", value)
    assert answer.code == 3
    assert "expected an object" in answer.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"groupId": ', "line 1, column 13"),
        (b"{'groupId': 1}", "line 1, column 2"),
        (b"", "empty"),
        (b"   \n", "empty"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b"\xff{}", "isn't UTF-8"),
        (b"\xff\xfe{", "isn't UTF-16"),
        (b'{"generationId": ' + b"9" * 5000 + b"}", "kafkascope: "),
    ],
    ids=["cut", "quotes", "empty", "blank", "deep list", "deep object", "isn't UTF-8", "isn't UTF-16", "huge number"],
)
def test_broken_json_is_one_line_with_its_place(cli: Cli, tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "value.json"
    file.write_bytes(text)
    answer = cli("encode", "HeartbeatRequest:0", f"@{file}")
    assert (answer.code, answer.out) == (3, "")
    assert is_one_line_error(answer.err)
    assert message in answer.err


@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16"])
def test_json_with_a_byte_order_mark_is_read(cli: Cli, tmp_path: Path, coding: str) -> None:
    file = tmp_path / "value.json"
    file.write_bytes(HEARTBEAT.encode(coding))
    assert cli.out("encode", "HeartbeatRequest:0", f"@{file}") == BODY.hex() + "\n"


@pytest.mark.parametrize("text", ['{"groupId": "a", "groupId": "b"}', '{"x": [{"groupId": 1, "groupId": 1}]}'])
def test_a_key_that_stands_twice_is_refused(cli: Cli, text: str) -> None:
    answer = cli("encode", "HeartbeatRequest:0", text)
    assert (answer.code, answer.out) == (3, "")
    assert is_one_line_error(answer.err)
    assert "groupId occurs twice in one object" in answer.err
