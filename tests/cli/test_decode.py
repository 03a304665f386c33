"""`decode`: requests tell what they are, responses need --as in any dress, records when asked, what is not exact."""

import json
import re
from base64 import b64decode

import pytest

from kafkascope.codec import walk
from kafkascope.codec.frame import encode_frame
from kafkascope.codec.identify.identify import identify
from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import encode_records
from kafkascope.schema.catalog import index
from kafkascope.schema.layouts.examples import example
from tests.support.cli import Cli
from tests.support.hexes import hexes
from tests.support.pairs import CHUNKS, chunk_of, every_pair

HEARTBEAT = hexes("""
    0000 001d               # 29 bytes follow
    000c 0000               # Heartbeat v0
    0000 0007               # correlation id 7
    0003 617070             # client id "app"
    0005 6f72646572         # group id "order"
    0000 000c               # generation id 12
    0003 6d2d31             # member id "m-1"
""")
PAIRS = [(name, version) for name, version in every_pair() if index()[name].kind in ("request", "response")]


def header(name: str) -> dict[str, object]:
    """A correlation id that starts with no API key."""
    return {"correlationId": 0x4B4B4B4B} | ({"clientId": "app"} if name == "request" else {})


def test_a_request_says_itself_what_it_is(cli: Cli) -> None:
    out = cli.out("decode", HEARTBEAT.hex())
    assert out.startswith("HeartbeatRequest v0  correlation id 7 · client id app · 33 bytes with length\n")
    assert re.search(r"^000018  00 00 00 0c +generationId = 12$", out, re.MULTILINE)
    assert json.loads(out.split("\nJSON\n")[1]) == {"groupId": "order", "generationId": 12, "memberId": "m-1"}


@pytest.mark.parametrize("columns", ["40", "80", "100"])
def test_every_byte_is_named_once(cli: Cli, columns: str) -> None:
    frame = bytes.fromhex(cli.out("example", "ShareFetchRequest:2", "--hex"))
    out = cli.out("decode", frame.hex(), COLUMNS=columns)
    rows = re.findall(r"^([0-9a-f]{6})  ((?:[0-9a-f]{2} ?)+)(?:  |$)", out, re.MULTILINE)
    at = 0
    for offset, written in rows:
        assert int(offset, 16) == at
        at += len(bytes.fromhex(written))
    assert at == len(frame)


def test_labels_stay_beside_their_bytes_at_80_columns(cli: Cli) -> None:
    out = cli.out("decode", cli.out("example", "ShareFetchRequest:2", "--hex").strip(), COLUMNS="80")
    assert re.search(r"^00006f  02 +acknowledgementBatches count 1 ", out, re.MULTILINE)
    rows = out.split("\nJSON\n")[0].splitlines()[3:]
    assert [row for row in rows if row[:33].strip() and not re.match(r"[0-9a-f]{6}  ", row)] == []


def test_a_request_without_its_length_is_read_too(cli: Cli) -> None:
    assert "29 bytes without length" in cli.out("decode", HEARTBEAT[4:].hex())


def test_a_request_as_json(cli: Cli) -> None:
    document = json.loads(cli.out("decode", HEARTBEAT.hex(), "--json"))
    assert document == {
        "message": "HeartbeatRequest",
        "version": 0,
        "apiKey": 12,
        "header": {"requestApiKey": 12, "requestApiVersion": 0, "correlationId": 7, "clientId": "app"},
        "value": {"groupId": "order", "generationId": 12, "memberId": "m-1"},
        "exact": True,
        "reasons": [],
    }


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_body_headed_body_and_frame_are_told_apart(chunk: int) -> None:
    """For every request and response: with --as each dress is read exactly and as what it is; requests need none."""
    wrong = []
    for name, version in chunk_of(PAIRS, chunk):
        value = example(name, version)
        kind = index()[name].kind
        fields = header(kind) if (name, version) != ("ControlledShutdownRequest", 0) else {"correlationId": 9}
        frame = encode_frame(name, version, value, fields)
        for dress, data in {"body": encode(name, version, value), "headed": frame[4:], "frame": frame}.items():
            if not data:
                continue
            identified = identify(data, f"{name}:{version}", None)
            seen = "body" if identified.frame is None else "headed" if identified.frame.length is None else "frame"
            if seen != dress or not identified.exact:
                wrong.append((name, version, dress, seen))
            if kind == "request" and dress != "body":
                alone = identify(data, None, None).frame
                if alone is None or alone.name != name or alone.version != version:
                    wrong.append((name, version, dress, "alone"))
    assert wrong == []


@pytest.mark.parametrize(
    ("cut", "message"), [(0, "bytes with length"), (4, "bytes without length"), (9, "only the body")]
)
def test_a_response_is_read_in_every_dress(cli: Cli, cut: int, message: str) -> None:
    frame = bytes.fromhex(cli.out("example", "DescribeQuorumResponse:1", "--hex"))
    out = cli.out("decode", frame[cut:].hex(), "--as", "DescribeQuorumResponse:1")
    assert message in out.splitlines()[0]
    assert json.loads(out.split("\nJSON\n")[1]) == json.loads(cli.out("example", "DescribeQuorumResponse:1"))


def test_bytes_that_are_a_body_and_a_headed_body_are_taken_for_a_body(cli: Cli) -> None:
    both = hexes("""
        0000                # error code 0        or correlation id 0 …
        0000 0002           # two mechanisms      … error code 2, and no …
        0000 0000           # both without name   … mechanism
    """)
    document = json.loads(cli.out("decode", both.hex(), "--as", "SaslHandshakeResponse:0", "--json"))
    assert document["value"] == {"errorCode": 0, "mechanisms": ["", ""]}
    assert "header" not in document


def test_a_response_without_as_is_helped(cli: Cli) -> None:
    frame = cli.out("example", "DescribeQuorumResponse:1", "--hex").strip()
    answer = cli("decode", frame)
    assert (answer.code, answer.out) == (2, "")
    assert "a response or a bare body needs --as NAME:VERSION" in answer.err
    assert "responses that fit: DescribeQuorumResponse:1" in answer.err


@pytest.mark.parametrize(
    "name", ["FetchResponse:0", "ListOffsetsResponse:0", "OffsetFetchResponse:1", "ProduceResponse:8"]
)
def test_a_response_whose_correlation_id_looks_like_a_request_is_not_taken_for_one(cli: Cli, name: str) -> None:
    # correlation id 7 reads as API key 0, version 7: the first requests of any connection have such ids
    frame = cli.out("example", name, "--hex").strip()
    answer = cli("decode", frame)
    assert answer.code == 2, answer.out[:60]
    assert "--as" in answer.err


def test_a_record_is_read_with_as(cli: Cli) -> None:
    document = json.loads(cli.out("example", "TopicRecord:0", "--json"))
    out = json.loads(cli.out("decode", document["hex"], "--as", "TopicRecord:0", "--json"))
    assert out["value"] == document["value"]


def test_a_release_reads_its_own_layout(cli: Cli) -> None:
    # ReadShareGroupStateSummaryResponse v0 of 3.9 has no leader epoch
    value = '{"results": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": [{"partition": 1, "startOffset": 5}]}]}'
    older = cli.out("encode", "ReadShareGroupStateSummaryResponse:0", value, "--release", "3.9").strip()
    newer = cli.out("encode", "ReadShareGroupStateSummaryResponse:0", value).strip()
    assert len(newer) - len(older) == 8
    document = json.loads(
        cli.out("decode", older, "--as", "ReadShareGroupStateSummaryResponse:0", "--release", "3.9", "--json")
    )
    assert "leaderEpoch" not in document["value"]["results"][0]["partitions"][0]


def test_record_contents_are_shown_only_when_asked_for(cli: Cli) -> None:
    frame = cli.out("example", "FetchResponse:17", "--hex").strip()
    closed = cli.out("decode", frame, "--as", "FetchResponse:17")
    assert "Records in responses[0].partitions[0].records" in closed
    assert "offsets 1041-1041" in closed
    assert "order-1001" not in closed.split("\nRecords in")[1].split("\nJSON")[0]
    opened = cli.out("decode", frame, "--as", "FetchResponse:17", "--records")
    assert 'key "order-1001"  value "{"orderId":1001,"total":49.9}"' in opened


def test_records_as_json(cli: Cli) -> None:
    frame = cli.out("example", "ProduceRequest:9", "--hex").strip()
    assert "records" not in json.loads(cli.out("decode", frame, "--json"))
    (records,) = json.loads(cli.out("decode", frame, "--json", "--records"))["records"]
    assert records["path"] == "topicData[0].partitionData[0].records"
    (batch,) = records["batches"]
    assert (batch["magic"], batch["crcOk"], b64decode(batch["records"][0]["key"])) == (2, True, b"order-1001")


def test_records_that_cannot_be_read_do_not_stop_the_message(cli: Cli) -> None:
    value = example("ProduceRequest", 9)
    value["topicData"][0]["partitionData"][0]["records"] = b"\x00" * 30
    frame = encode_frame("ProduceRequest", 9, value).hex()
    assert "cannot be read" in cli("decode", frame, "--records").out
    document = json.loads(cli("decode", frame, "--records", "--json").out)
    assert document["records"][0]["error"]
    assert document["value"]["topicData"][0]["name"] == "orders"


def test_a_wrong_checksum_is_said(cli: Cli) -> None:
    value = example("ProduceRequest", 9)
    inside = value["topicData"][0]["partitionData"][0]
    inside["records"] = inside["records"][:-1] + b"\x01"
    assert "the checksum is wrong" in cli("decode", encode_frame("ProduceRequest", 9, value).hex()).out


def test_an_empty_batch_list_has_no_records(cli: Cli) -> None:
    value = example("ProduceRequest", 9)
    value["topicData"][0]["partitionData"][0]["records"] = encode_records([])
    out = cli.out("decode", encode_frame("ProduceRequest", 9, value).hex())
    assert "Records in" not in out


def test_trailing_bytes_make_it_inexact_and_exit_1(cli: Cli) -> None:
    answer = cli("decode", (HEARTBEAT[4:] + b"\xaa\xbb").hex())
    assert (answer.code, answer.err) == (1, "")
    assert "not exact: " in answer.out
    assert "2 bytes" in answer.out
    document = json.loads(cli("decode", (HEARTBEAT[4:] + b"\xaa\xbb").hex(), "--json").out)
    assert (document["exact"], len(document["reasons"])) == (False, 1)


def test_a_version_newer_than_the_catalog_is_data(cli: Cli) -> None:
    frame = hexes("""
        000c 0063           # Heartbeat v99
        0000 0007           # correlation id 7
        ffff                # no client id
        00                  # no tags
        0102                # whatever 99 may have
    """)
    answer = cli("decode", frame.hex())
    assert answer.code == 1
    assert "HeartbeatRequest v99 isn't in the catalog; 2 bytes left unread (offset 11)" in answer.out
    assert json.loads(cli("decode", frame.hex(), "--json").out)["version"] == 99


def test_unknown_tags_are_kept_and_named(cli: Cli) -> None:
    value = {"groupId": "g", "_unknownTaggedFields": [{"tag": 40, "data": b"\x01\x02"}]}
    frame = encode_frame("HeartbeatRequest", 4, value).hex()
    out = cli.out("decode", frame)
    assert "unknown tag" in out
    assert json.loads(cli.out("decode", frame, "--json"))["value"]["_unknownTaggedFields"] == [
        {"tag": 40, "data": "AQI="}
    ]


def test_an_error_code_and_a_coded_value_are_named(cli: Cli) -> None:
    value = json.loads(cli.out("example", "ShareFetchResponse:2"))
    value["responses"][0]["partitions"][0]["acknowledgeErrorCode"] = 121
    body = cli.out("encode", "ShareFetchResponse:2", json.dumps(value)).strip()
    out = cli.out("decode", body, "--as", "ShareFetchResponse:2", COLUMNS="140")
    assert "acknowledgeErrorCode = 121 (INVALID_RECORD_STATE)" in out


def test_long_fields_are_cut_unless_all_is_asked_for(cli: Cli) -> None:
    body = encode("SaslAuthenticateRequest", 0, {"authBytes": b"\x07" * 5000}).hex()
    cut = cli.out("decode", body, "--as", "SaslAuthenticateRequest:0")
    assert "904 more bytes (--full shows all)" in cut
    whole = cli.out("decode", body, "--as", "SaslAuthenticateRequest:0", "--full")
    assert "more bytes" not in whole
    assert whole.count("07 07") > cut.count("07 07")


def test_a_tag_that_stands_twice_shows_what_its_bytes_say_each_time(cli: Cli) -> None:
    body = hexes("""
        0000                        # error code 0
        01                          # no API keys
        0000 0000                   # throttle time 0
        04                          # four tags
        00 11 03                    # supported features: two
        03 6161 0001 0002 00        # aa
        03 6262 0001 0002 00        # bb
        00 09 02                    # again: one
        03 6363 0003 0004 00        # cc
        07 01 aa                    # a tag that is not known
        07 02 bbcc                  # again, and longer
    """)
    answer = cli("decode", "--as", "ApiVersionsResponse:3", body.hex())
    assert (answer.code, answer.err) == (1, "")
    assert re.findall(r'name = "(..)"', answer.out) == ["aa", "bb", "cc"]
    assert re.findall(r"minVersion = (\d)", answer.out) == ["1", "1", "3"]
    assert re.findall(r"tag7 = (\d bytes) \(unknown tag\)", answer.out) == ["1 bytes", "2 bytes"]
    assert "not exact: body: tag 0 is repeated (offset 27)" in answer.out


def test_a_client_id_does_not_steer_the_terminal(cli: Cli) -> None:
    frame = encode_frame("HeartbeatRequest", 0, {}, {"clientId": "a\x1b[31m\n\x9b"})
    first = cli.out("decode", frame.hex()).splitlines()[0]
    assert "client id a�[31m�� · " in first


def test_json_names_no_bytes_and_so_has_no_limit_on_them(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = encode_frame("HeartbeatResponse", 4, {}).hex()
    record = encode("TopicRecord", 0, {"name": "orders"}).hex()
    monkeypatch.setattr(walk, "MAX_SPANS", 2)
    for arguments in (
        ["--as", "HeartbeatResponse:4", answer],
        ["--as", "TopicRecord:0", record],
        [HEARTBEAT.hex()],
    ):
        assert json.loads(cli.out("decode", *arguments, "--json"))["exact"]
    result = cli("decode", "--as", "TopicRecord:0", record)
    assert (result.code, result.out) == (3, "")
    assert "more than 2 spans; decode without them, on the command line with --json" in result.err
