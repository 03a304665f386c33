"""`call` sends what was meant and shows what came; what changes something goes out only when told so."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest

from kafkascope.cli.live.call_view import print_answer_json
from kafkascope.client import Address, Answer
from kafkascope.codec.frame import decode_frame
from lab.cluster import Cluster
from lab.settings import CONTROLLER
from tests.support.cli import Cli, is_one_line_error, process

NOBODY = "127.0.0.1:9"  # discard: nothing listens there


@pytest.fixture
def topic(cluster: Cluster, cli: Cli) -> str:
    """A topic of three partitions."""
    name = f"call-{uuid4().hex[:8]}"
    request = {"topics": [{"name": name, "numPartitions": 3, "replicationFactor": 1}]}
    cli.out("call", cluster.bootstrap, "CreateTopics", json.dumps(request), "--write", "--json")
    return name


def test_a_dry_run_names_every_byte_and_needs_no_broker(cli: Cli) -> None:
    out = cli.out("call", NOBODY, "DescribeQuorum:1", "--dry-run", "--client-id", "me")
    assert "DescribeQuorumRequest v1" in out
    assert "not sent" in out
    assert 'clientId = "me"' in out
    assert 'topicName = "__cluster_metadata"' in out


def test_a_dry_run_of_a_write_says_what_it_would_do(cli: Cli) -> None:
    out = cli.out("call", NOBODY, "DeleteGroups", '{"groupsNames": ["g"]}', "--dry-run")
    assert out.endswith("DeleteGroups would delete groups: g; add --write to send it\n")


def test_a_dry_run_of_a_login_does_not_show_it(cli: Cli, tmp_path: Path) -> None:
    message = "AGFsaWNlAFMzY3IzdFg="  # PLAIN's alice and S3cr3tX
    (tmp_path / "r").write_text(json.dumps({"authBytes": message}))
    out = cli.out("call", NOBODY, "SaslAuthenticate", f"@{tmp_path}/r", "--dry-run", "--full")
    assert "authBytes are shown as 00" in out
    assert message not in out and "S3cr3tX" not in out and b"S3cr3tX".hex(" ") not in out


def test_one_of_several_answers_as_json_is_one_line_that_steers_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = {"errorCode": 0, "groups": [{"groupId": "a\u2028b\x9b31m", "protocolType": ""}]}
    address = Address("h", 1)
    print_answer_json(Answer("ListGroups", 0, value, 1, address, b"", b"", 0, 0, 0, True, ()), compact=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert r"a\u2028b\u009b31m" in line


def test_a_template_is_taken_back(cli: Cli) -> None:
    template = cli.out("call", NOBODY, "Fetch", "--api-version", "17", "--template")
    assert json.loads(template)["topics"][0]["partitions"][0]["partitionMaxBytes"] == 1_048_576
    assert "FetchRequest v17" in cli.out("call", NOBODY, "Fetch:17", "-", "--dry-run", stdin=template.encode())


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_request_is_read_from_a_file(cli: Cli, tmp_path: Path, coding: str) -> None:
    (tmp_path / "request.json").write_text('{"groups": ["from-a-file"]}', coding)
    assert '"from-a-file"' in cli.out("call", NOBODY, "DescribeGroups", f"@{tmp_path}/request.json", "--dry-run")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("DescribeQuorm",), 1, "unknown message or API DescribeQuorm; did you mean DescribeQuorum"),
        (("",), 2, "the API is missing"),
        ((":3",), 2, "the API is missing"),
        (("Metadata", "@"), 2, "@ needs the name of a file"),
        (("DescribeQuorumResponse",), 2, "DescribeQuorumResponse isn't a request"),
        (("DescribeQuorum:9",), 2, "DescribeQuorumRequest has no version 9; it has 0-2 (v0 in 2.7+; v1 in 3.3+;"),
        (("DescribeQuorum:1", "--api-version", "2"), 2, "leave one out"),
        (("DescribeQuorum", '{"topcs": []}'), 3, "topcs: no such field; did you mean topics?"),
        (("DescribeQuorum", "{"), 3, "not valid JSON"),
        (("DeleteTopics", '{"topicNames": ["a"]}'), 2, "DeleteTopics would delete topics: a; add --write to send it"),
        (("DeleteTopics", '{"topics": [{"topicId": "orders"}]}'), 2, "would delete topics: orders; add --write"),
        (("Metadata", '{"topics": [{"name": "a"}], "allowAutoTopicCreation": true}'), 2, "would create missing topics"),
        (("Metadata", "--to", "leader:orders"), 2, "a partition is TOPIC-NUMBER; write leader:orders-0"),
    ],
)
def test_bad_use_is_said_before_anything_is_dialled(cli: Cli, arguments: tuple[str, ...], code: int, says: str) -> None:
    answer = cli("call", NOBODY, *arguments)
    assert answer.code == code
    assert says in answer.err
    assert is_one_line_error(answer.err)


def test_a_host_that_is_not_there_is_one_line(cli: Cli) -> None:
    answer = cli("call", NOBODY, "Metadata")
    assert answer.code == 4
    assert is_one_line_error(answer.err)
    assert "127.0.0.1:9" in answer.err


@contextmanager
def listening(says: bytes | None) -> Iterator[str]:
    """A port that takes connections and says this to each, or nothing at all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    link, _ = server.accept()
                except OSError:
                    return
                held.append(link)
                if says is not None:
                    link.recv(1024)
                    link.sendall(says)
                    link.close()

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        for link in held:
            link.close()


def test_a_host_that_does_not_answer_is_one_line_within_its_time(cli: Cli) -> None:
    with listening(None) as address:
        answer = cli("call", address, "Metadata", "--timeout", "0.5")
    assert answer.code == 4
    assert is_one_line_error(answer.err)
    assert address in answer.err
    assert "0.5 s" in answer.err


def test_a_port_that_is_not_kafka_is_one_line(cli: Cli) -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        answer = cli("call", address, "Metadata", "--timeout", "1")
    assert answer.code == 4
    assert is_one_line_error(answer.err)
    assert "HTTP" in answer.err


def test_an_answer_shows_who_gave_it_and_what_codes_mean(cluster: Cluster, cli: Cli) -> None:
    out = cli.out("call", cluster.bootstrap, "ApiVersions")
    first, *_ = out.splitlines()
    assert first.startswith("ApiVersionsResponse v4  node 1 · 127.0.0.1:")
    assert first.endswith(" bytes")
    assert '"errorCode": 0,  // NONE' in out
    assert '"apiKey": 78,  // ShareFetch' in out


def test_json_is_kafkas_form_alone(cluster: Cluster, cli: Cli) -> None:
    value = json.loads(cli.out("call", cluster.bootstrap, "DescribeQuorum", "--json"))
    assert value["topics"][0]["partitions"][0]["leaderId"] == 1


def test_raw_is_what_decode_reads(cluster: Cluster, cli: Cli) -> None:
    raw = cli.out("call", cluster.bootstrap, "DescribeCluster:1", "--raw").strip()
    frame = decode_frame(bytes.fromhex(raw), response_to=("DescribeCluster", 1))
    assert frame.exact
    assert frame.length is not None


def test_an_older_version_is_spoken_when_asked_for(cluster: Cluster, cli: Cli) -> None:
    assert "MetadataResponse v5" in cli.out("call", cluster.bootstrap, "Metadata", "--api-version", "5")


def test_the_newest_version_that_has_the_fields_is_spoken(cluster: Cluster, cli: Cli, topic: str) -> None:
    request = {"groupId": "g", "topics": [{"name": topic, "partitionIndexes": [0]}]}
    answer = cli("call", cluster.bootstrap, "OffsetFetch", json.dumps(request), "--write")
    assert answer.out.startswith("OffsetFetchResponse v7"), answer


def test_a_version_that_the_broker_lacks_names_what_it_has_and_who_has_it(cluster: Cluster, cli: Cli) -> None:
    answer = cli("call", cluster.bootstrap, "Fetch", "--api-version", "2")
    assert answer.code == 2
    assert is_one_line_error(answer.err)
    assert "serves Fetch v4-18, not v2, which is in Kafka 0.10.0-3.9" in answer.err


def test_an_api_that_the_broker_lacks_names_who_has_it(cluster: Cluster, cli: Cli) -> None:
    gone = cli("call", cluster.bootstrap, "LeaderAndIsr", "--write")
    assert (gone.code, is_one_line_error(gone.err)) == (1, True)
    assert "doesn't serve LeaderAndIsr; Kafka 0.9-3.9 has it" in gone.err
    of_controllers = cli("call", cluster.bootstrap, "AllocateProducerIds", "--write")
    assert "give one and --bootstrap-controller" in of_controllers.err
    of_brokers = cli("call", cluster.nodes[1].place.address(CONTROLLER[0]), "ListGroups", "--bootstrap-controller")
    assert "this is a controller, but brokers serve it" in of_brokers.err


def test_topics_go_by_name_where_ids_belong_and_answers_name_them(cluster: Cluster, cli: Cli, topic: str) -> None:
    request = {"topics": [{"topicId": topic, "partitions": [{"partition": 2}]}]}
    out = cli.out("call", cluster.bootstrap, "Fetch", json.dumps(request))
    assert f"// {topic}" in out
    shown = cli.out("call", cluster.bootstrap, "Fetch", json.dumps(request), "--dry-run")
    assert "only topics were looked up" in shown


def test_topics_go_by_id_where_names_belong(cluster: Cluster, cli: Cli, topic: str) -> None:
    named = json.dumps({"topics": [{"name": topic}]})
    known = json.loads(cli.out("call", cluster.bootstrap, "Metadata", named, "--json"))["topics"][0]
    request = {"topics": [{"topicId": known["topicId"], "partitions": [{"partitionIndex": 0}]}]}
    answer = json.loads(cli.out("call", cluster.bootstrap, "ListOffsets", json.dumps(request), "--json"))
    assert answer["topics"][0]["name"] == topic


def test_a_topic_that_is_not_there_is_one_line_with_a_suggestion(cluster: Cluster, cli: Cli, topic: str) -> None:
    answer = cli("call", cluster.bootstrap, "Fetch", json.dumps({"topics": [{"topicId": f"{topic}x"}]}))
    assert answer.code == 1
    assert is_one_line_error(answer.err)
    assert f"this cluster has no topic {topic}x; did you mean {topic}" in answer.err


def test_an_error_code_in_the_answer_is_exit_code_1(cluster: Cluster, cli: Cli) -> None:
    request = {"topics": [{"name": "kafkascope-no-such-topic"}]}
    answer = cli("call", cluster.bootstrap, "Metadata", json.dumps(request))
    assert (answer.code, answer.err) == (1, "")
    assert '"errorCode": 3,  // UNKNOWN_TOPIC_OR_PARTITION' in answer.out
    assert "topics[0].errorCode is UNKNOWN_TOPIC_OR_PARTITION (3)." in answer.out


def test_nothing_is_created_by_asking_about_it(cluster: Cluster, cli: Cli) -> None:
    name = f"asked-{uuid4().hex[:8]}"
    cli("call", cluster.bootstrap, "Metadata", json.dumps({"topics": [{"name": name}]}))
    topics = json.loads(cli.out("call", cluster.bootstrap, "Metadata", "--json"))["topics"]
    assert name not in {topic["name"] for topic in topics}


def test_a_write_is_sent_with_the_word(cluster: Cluster, cli: Cli, topic: str) -> None:
    request = json.dumps({"topics": [{"name": topic}]})
    assert cli("call", cluster.bootstrap, "DeleteTopics", request).code == 2
    assert cli("call", cluster.bootstrap, "Metadata", request).code == 0
    assert cli("call", cluster.bootstrap, "DeleteTopics", request, "--write").code == 0


def test_a_dry_run_on_the_broker_needs_no_word(cluster: Cluster, cli: Cli) -> None:
    name = f"checked-{uuid4().hex[:8]}"
    request = {"topics": [{"name": name, "numPartitions": 1, "replicationFactor": 1}], "validateOnly": True}
    assert cli("call", cluster.bootstrap, "CreateTopics", json.dumps(request)).code == 0
    assert cli("call", cluster.bootstrap, "Metadata", json.dumps({"topics": [{"name": name}]})).code == 1


def test_it_goes_where_it_is_told(quorum_cluster: Cluster, cli: Cli) -> None:
    out = cli.out("call", quorum_cluster.bootstrap, "DescribeCluster", "--to", "node:3")
    assert "node 3 ·" in out.splitlines()[0]
    missing = cli("call", quorum_cluster.bootstrap, "DescribeCluster", "--to", "node:77")
    assert (missing.code, is_one_line_error(missing.err)) == (1, True)


def test_repeats_are_timed(cluster: Cluster, cli: Cli) -> None:
    out = cli.out("call", cluster.bootstrap, "ApiVersions", "--repeat", "5", "--time")
    assert out.count("  call ") == 5
    assert "p50 " in out
    assert "p99 " in out
    timed = json.loads(cli.out("call", cluster.bootstrap, "ApiVersions", "--repeat", "3", "--time", "--json"))
    assert len(timed["milliseconds"]) == timed["calls"] == 3
    assert timed["summary"]["min"] <= timed["summary"]["p50"] <= timed["summary"]["max"]
    lines = cli.out("call", cluster.bootstrap, "ApiVersions", "--repeat", "3", "--json").splitlines()
    assert [json.loads(line)["errorCode"] for line in lines] == [0, 0, 0]


def test_the_command_loads_nothing_heavy(cluster: Cluster) -> None:
    answer = process("call", cluster.bootstrap, "DescribeQuorum", "--json", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in answer.stderr.decode().splitlines() if "|" in line}
    assert "asyncio" in loaded
    heavy = (
        "numpy",
        "pyarrow",
        "numba",
        "cryptography",
        "pandas",
        "deltalake",
        "pyspark",
        "difflib",
        "kafkascope.capture",
    )
    assert {name for name in loaded if name.startswith(heavy)} == set()
