"""`show`: the page of one version has every byte explained, the overview has all versions, near misses are helped."""

import json
import re

import pytest

from kafkascope.codec.annotations.frame import example_header
from kafkascope.codec.frame import decode_frame
from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import decode
from kafkascope.schema.catalog import index
from tests.support.cli import Cli
from tests.support.pairs import CHUNKS, chunk_of, every_pair


def section(page: str, title: str) -> str:
    """The lines below a heading, up to the next one."""
    return re.split(r"\n\n(?=\S)", page.split(f"\n{title}\n", 1)[1], maxsplit=1)[0]


@pytest.fixture
def page(cli: Cli) -> str:
    return cli.out("show", "ShareFetchRequest:2")


def test_a_page_begins_with_what_it_is(page: str) -> None:
    assert page.startswith("ShareFetchRequest v2\nAPI key 78 · Kafka 4.2+ · flexible\n")
    assert "Fetches records for a share group" in page
    assert re.search(r"^needs +Read on Group; Read on Topic$", page, re.MULTILINE)
    assert re.search(r"^KIPs +KIP-932, KIP-1206, KIP-1222$", page, re.MULTILINE)


def test_the_size_is_the_frames_prefix_and_no_header_field(page: str) -> None:
    wire = section(page, "On the wire").splitlines()
    assert [line.split() for line in wire[1:4]] == [
        ["Frame"],
        ["0", "4", "message_size", "int32,", "counts", "the", "bytes", "after", "it"],
        ["Request", "header", "v2"],
    ]


def test_the_client_id_of_the_header_is_classic(page: str) -> None:
    wire = section(page, "On the wire")
    assert re.search(r"^  12 +2\+ +ClientId +string: int16 length, null is -1, UTF-8$", wire, re.MULTILINE)
    # the body is behind a client id of any length, at least 15 bytes into the frame
    assert re.search(r"^  ≥14 +1\+ +tags +tag section", wire, re.MULTILINE)
    assert re.search(r"^  ≥15 +1\+ +GroupId +compact string", wire, re.MULTILINE)


def test_containers_have_counts_and_nested_structs_stand_under_their_parents(page: str) -> None:
    wire = section(page, "On the wire")
    rows = [re.match(r"  ≥?\d+ +\d+\+? +(tags of \w+|\w+) ", line) for line in wire.splitlines()]
    names = [(row.start(1), row[1]) for row in rows if row]
    containers = [name for _, name in names]
    at = containers.index("Topics")
    assert containers[at : at + 9] == [
        "Topics", "TopicId", "Partitions", "PartitionIndex", "AcknowledgementBatches",
        "FirstOffset", "LastOffset", "AcknowledgeTypes", "tags of AcknowledgementBatches",
    ]  # fmt: skip
    deep = {name: column for column, name in names[at : at + 9]}
    assert deep["Topics"] < deep["TopicId"] == deep["Partitions"] < deep["PartitionIndex"] < deep["FirstOffset"]
    assert "compact array of FetchTopic: uvarint count+1" in wire
    assert "tags of Partitions" in wire
    assert "tags of Topics" in wire


def test_errors_stand_by_the_field_that_carries_them(page: str) -> None:
    errors = section(page, "Errors in the response")
    groups = re.split(r"\n(?=  in )", errors)
    acknowledge = [group for group in groups if "INVALID_RECORD_STATE" in group]
    assert len(acknowledge) == 1
    assert acknowledge[0].lstrip().startswith("in Responses.Partitions.AcknowledgeErrorCode:")
    assert "definition: Kafka's definition file" in errors


def test_every_field_has_its_sentence_and_its_values(page: str) -> None:
    fields = section(page, "Fields")
    assert "Topics.Partitions.AcknowledgementBatches.AcknowledgeTypes  int8[]" in fields
    assert "0 Gap, 1 Accept, 2 Release, 3 Reject, 4 Renew" in fields
    assert re.search(r"IsRenewAck  bool, KIP-1222\n +True when", fields)


def test_the_schema_is_typed_json(cli: Cli, page: str) -> None:
    schema = cli.out("show", "ShareFetchRequest:2", "--schema")
    assert '"GroupId": string?' in schema
    assert '"AcknowledgeTypes": [int8]' in schema
    assert schema.strip() in page


def test_the_example_is_json_and_its_bytes_say_the_same(page: str) -> None:
    example = json.loads(section(page, "Example"))
    assert example["topics"][0]["partitions"][0]["partitionIndex"] == 0
    rows = re.findall(
        r"^[0-9a-f]{6}  ((?:[0-9a-f]{2} ?)+)(?:  |$)", page.split("\nBytes of the example\n")[1], re.MULTILINE
    )
    data = bytes.fromhex("".join(rows))
    frame = decode_frame(data)
    assert frame.exact
    assert frame.body is not None
    assert to_json("ShareFetchRequest", 2, frame.body.value) == example


def test_a_tagged_field_stands_in_the_tag_section(cli: Cli) -> None:
    wire = section(cli.out("show", "FetchRequest:17"), "On the wire")
    at = wire.index("\n", wire.index("RackId"))
    assert re.search(r"tags .*\n.* ClusterId +tag 0: compact string", wire[at:])


def test_a_record_has_no_frame_and_no_header(cli: Cli) -> None:
    wire = section(cli.out("show", "TopicRecord:0"), "On the wire")
    assert "message_size" not in wire
    assert "header" not in wire


def test_the_api_versions_response_has_header_v0_in_flexible_versions_too(cli: Cli) -> None:
    assert "Response header v0" in cli.out("show", "ApiVersionsResponse:4")
    assert "Response header v1" in cli.out("show", "DescribeQuorumResponse:1")


def test_an_overview_has_versions_releases_and_fields(cli: Cli) -> None:
    out = cli.out("show", "ShareFetch")
    assert out.startswith("ShareFetch  API key 78 · share groups\n")
    assert re.search(r"^  0 +3\.9-4\.0 +flexible +932 +unstable in 3\.9-4\.0$", out, re.MULTILINE)
    assert re.search(r"^  IsRenewAck +bool +2\+$", out, re.MULTILINE)
    assert "\nShareFetchResponse\n" in out


@pytest.mark.parametrize("name", ["78", "sharefetch", "SHARE_FETCH", "share-fetch"])
def test_an_api_goes_by_key_and_any_spelling(cli: Cli, name: str) -> None:
    assert cli.out("show", name) == cli.out("show", "ShareFetch")


def test_a_version_may_have_a_v(cli: Cli) -> None:
    assert cli.out("show", "sharefetchrequest:v2") == cli.out("show", "ShareFetchRequest:2")


def test_an_earlier_name_is_found_and_said(cli: Cli) -> None:
    assert cli.out("show", "ListClientMetricsResources").startswith("ListConfigResources ")
    assert "called ListClientMetricsResourcesRequest in 3.9" in cli.out(
        "show", "ListConfigResourcesRequest:0", "--release", "3.9"
    )


def test_a_release_shows_its_own_layout(cli: Cli) -> None:
    newest = cli.out("show", "StreamsGroupHeartbeatResponse:0", "--schema")
    older = cli.out("show", "StreamsGroupHeartbeatResponse:0", "--schema", "--release", "4.3.1")
    assert '"AcceptableRecoveryLagLegacy": int32' in newest
    assert '"AcceptableRecoveryLag": int32' in older


def test_a_near_miss_is_suggested(cli: Cli) -> None:
    answer = cli("show", "ShareFetchRequst")
    assert (answer.code, answer.out) == (1, "")
    assert "unknown message or API ShareFetchRequst; did you mean ShareFetchRequest" in answer.err


def test_a_page_as_json(cli: Cli) -> None:
    document = json.loads(cli.out("show", "ShareFetchRequest:2", "--json"))
    assert document["message"]["name"] == "ShareFetchRequest"
    assert document["version"]["since"] == "4.2"
    acknowledge = [error for error in document["errors"] if error["name"] == "INVALID_RECORD_STATE"]
    assert acknowledge[0]["fields"] == ["Responses.Partitions.AcknowledgeErrorCode"]
    client = next(row for row in document["wire"] if row["path"] == "ClientId")
    assert (client["part"], client["offset"], client["exactOffset"]) == ("Request header v2", 12, True)
    frame = decode_frame(bytes.fromhex(document["exampleHex"]))
    assert frame.body is not None
    assert to_json("ShareFetchRequest", 2, frame.body.value) == document["example"]
    assert frame.header.value["clientId"] == example_header("ShareFetchRequest", 2)["clientId"]


def test_an_overview_as_json(cli: Cli) -> None:
    document = json.loads(cli.out("show", "ShareFetch", "--json"))
    assert [message["name"] for message in document["messages"]] == ["ShareFetchRequest", "ShareFetchResponse"]
    assert document["api"]["key"] == 78


def test_both_directions_of_a_version_are_one_json(cli: Cli) -> None:
    document = json.loads(cli.out("show", "ShareFetch:2", "--json"))
    assert "ShareFetchRequest" in json.dumps(document)
    assert "ShareFetchResponse" in json.dumps(document)


def test_both_directions_of_a_version_are_two_pages(cli: Cli) -> None:
    out = cli.out("show", "ShareFetch:2")
    assert out.startswith("ShareFetchRequest v2\n")
    assert "\n\nShareFetchResponse v2\n" in out


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_page_can_be_printed_and_its_example_reads_back(cli: Cli, chunk: int) -> None:
    for name, version in chunk_of(every_pair(), chunk):
        page = cli.out("show", f"{name}:{version}")
        assert page.startswith(f"{name} v{version}\n")
        document = json.loads(cli.out("example", f"{name}:{version}", "--json"))
        raw = bytes.fromhex(document["hex"])
        if index()[name].kind in ("request", "response"):
            request_key = None if name.endswith("Request") else (name.removesuffix("Response"), version)
            body = decode_frame(raw, response_to=request_key).body
        else:
            body = decode(name, version, raw)
        assert body is not None and body.exact
        assert to_json(name, version, body.value) == document["value"]
