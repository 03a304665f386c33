"""`check`: one line and an exit code, metrics that a strict parser reads, and a server of them that ends in order."""

import asyncio
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from kafkascope.cli.live.check_listen import parse_listen
from kafkascope.client import Cluster, connect
from kafkascope.client.check.run import CheckReport
from kafkascope.client.check.verdicts import CheckResult
from kafkascope.client.settings import Address
from kafkascope.errors import UsageError
from lab.secured import SECURED_USERS
from lab.settings import SASL
from lab.wire import until
from tests.client.observe.test_observer import commit_offset
from tests.client.test_cluster import create_topic, new_name, produce
from tests.support.cli import COMMAND, Cli, hear_interrupts, is_one_line_error, process

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

NOBODY = "127.0.0.1:1"
WAIT_SECONDS = 60.0


def parsed(text: str) -> dict[str, list[Any]]:
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return {family.name: family.samples for family in families}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("quorum", NOBODY, "orders"), "check quorum takes no group"),
        (("share-group", NOBODY, "--max-lag-ms", "5"), "in records: use --max-lag"),
        (("quorum", NOBODY, "--min-members", "2"), "a quorum has voters"),
        (("quorum", NOBODY, "--json", "--format", "openmetrics"), "leave one out"),
        (("quorum", NOBODY, "--for", "soon"), "isn't a duration"),
        (("quorum", NOBODY, "--threshold", "quorum_follower_behin.ms=5"), "did you mean quorum_follower_behind.ms"),
        (("qourum", NOBODY), "qourum"),
        (("quorum", NOBODY, "--listen", "metrics"), "isn't an address to listen on"),
    ],
)
def test_flags_that_say_nothing_are_refused(cli: Cli, arguments: tuple[str, ...], says: str) -> None:
    answer = cli("check", *arguments)
    assert answer.code == 2
    assert says in answer.err
    assert is_one_line_error(answer.err)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9308", Address("127.0.0.1", 9308)),
        ("0.0.0.0:9308", Address("0.0.0.0", 9308)),  # noqa: S104
        ("[::1]:0", Address("::1", 0)),
    ],
)
def test_listens_on_loopback_unless_told(text: str, address: Address) -> None:
    assert parse_listen(text) == address


@pytest.mark.parametrize("text", ["", "host", "1:2:x", "70000", "-1"])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="isn't an address to listen on"):
        parse_listen(text)


def test_a_host_alone_is_checked_for_everything(cli: Cli) -> None:
    assert cli("check", "127.0.0.1:1").err == cli("check", "all", "127.0.0.1:1").err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "HOST is missing"),
        (("quorum",), "HOST is missing"),
        (("quorm", "127.0.0.1:1"), "unknown check quorm; choose from quorum, share-group, streams-group, group, all"),
    ],
)
def test_a_check_without_host_or_with_an_unknown_name_is_refused(cli: Cli, words: tuple[str, ...], says: str) -> None:
    result = cli("check", *words)
    assert result.code == 2
    assert says in result.err


def test_a_cluster_that_is_not_there_exits_with_4(cli: Cli) -> None:
    answer = cli("check", "quorum", NOBODY)
    assert (answer.code, answer.out) == (4, "")
    assert is_one_line_error(answer.err)


def test_a_name_with_line_ends_and_escapes_stays_one_harmless_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(*_: object) -> CheckReport:
        return CheckReport([CheckResult("group", "group a\nb\x1b[31m", True, "Empty", (), (), {}, ())])

    monkeypatch.setattr("kafkascope.cli.live.check_run.check", check)
    assert cli.out("check", "group", NOBODY) == "healthy: group a\ufffdb\ufffd[31m: Empty\n"


def test_metrics_of_a_cluster_that_is_not_there_say_so(cli: Cli) -> None:
    answer = cli("check", "all", NOBODY, "--format", "openmetrics")
    assert answer.code == 4
    assert parsed(answer.out)["kafkascope_up"][0].value == 0


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The URL of its metrics; SIGTERM ends it with 0 and no complaint."""
    server = subprocess.Popen(
        [COMMAND, "check", *arguments, "--listen", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
    )
    try:
        assert server.stderr is not None
        match = re.match(r"serving (http://127\.0\.0\.1:\d+/metrics)", server.stderr.readline())
        assert match
        yield match[1]
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=WAIT_SECONDS)
        assert (server.returncode, out, err) == (0, "", "")
    finally:
        if server.poll() is None:
            server.kill()
            server.communicate()


def get(url: str, accept: str = "application/openmetrics-text") -> tuple[str, str]:
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310
    with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:  # noqa: S310
        return answer.headers["Content-Type"], answer.read().decode()


def test_serves_a_cluster_that_is_gone_as_up_0_and_knows_its_path() -> None:
    with serving("all", NOBODY) as url:
        kind, text = get(url)
        assert kind.startswith("application/openmetrics-text; version=1.0.0")
        assert parsed(text)["kafkascope_up"][0].value == 0
        assert get(url, "text/plain")[0].startswith("text/plain; version=0.0.4")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(url.replace("/metrics", "/other"))
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(url, data=b"{}", timeout=WAIT_SECONDS)  # noqa: S310


def test_what_is_no_http_gets_400_and_does_not_stop_the_server() -> None:
    import socket

    with serving("all", NOBODY) as url:
        port = int(url.split(":")[2].split("/")[0])
        for sent in (b"\x00\x00\x00\x10hello\r\n\r\n", b"A" * 20_000):
            with socket.create_connection(("127.0.0.1", port), WAIT_SECONDS) as link:
                link.sendall(sent)
                assert link.recv(100).startswith(b"HTTP/1.1 400")
        assert "kafkascope_up 0" in get(url)[1]


def test_a_port_that_is_taken_is_said() -> None:
    with serving("all", NOBODY) as url:
        port = url.split(":")[2].split("/")[0]
        answer = process("check", "all", NOBODY, "--listen", port)
        assert answer.returncode == 2
        assert b"cannot listen on 127.0.0.1:" in answer.stderr


def test_a_quorum_that_is_well_is_one_line(cluster: "Lab", cli: Cli) -> None:
    line = cli.out("check", "quorum", cluster.bootstrap)
    assert re.fullmatch(r"healthy: quorum: node 1 leads in epoch \d+, 1 voter, lag at most 0 records\n", line)
    line = cli.out("check", "quorum", cluster.controllers, "--bootstrap-controller")
    assert line.startswith("healthy: quorum: node 1 leads")


def test_a_group_that_is_not_there_exits_with_1(cluster: "Lab", cli: Cli) -> None:
    for what in ("share-group", "streams-group", "group"):
        answer = cli("check", what, cluster.bootstrap, "nobody-knows-it")
        assert answer.code == 1
        assert "GROUP_ID_NOT_FOUND" in answer.err
        assert is_one_line_error(answer.err)


def test_json_and_metrics_of_everything_agree(cluster: "Lab", cli: Cli) -> None:
    results = json.loads(cli("check", "all", cluster.bootstrap, "--json").out)
    assert results["checks"][0]["check"] == "quorum"
    assert results["checks"][0]["figures"]["controllerId"] == 1
    answer = cli("check", "all", cluster.bootstrap, "--format", "openmetrics")
    assert answer.code == (0 if results["healthy"] else 1)
    metrics = parsed(answer.out)
    assert metrics["kafkascope_up"][0].value == 1
    assert metrics["kafkascope_quorum_leader_id"][0].value == 1
    assert len(metrics["kafkascope_check_healthy"]) == len(results["checks"])


def using(lab: "Lab", work: Callable[[Cluster], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        async with connect(lab.bootstrap, timeout=WAIT_SECONDS) as cluster:
            return await work(cluster)

    return asyncio.run(connected())


def be_patient(lab: "Lab", group: str, kind: str) -> None:
    """Sessions last 4 s in the lab, a check on a busy machine may take as long."""
    config = {"name": f"{kind}.session.timeout.ms", "configOperation": 0, "value": "45000"}
    request = {"resourceType": 32, "resourceName": group, "configs": [config]}
    answer = using(lab, lambda cluster: cluster.call("IncrementalAlterConfigs", {"resources": [request]}))
    assert answer.value["responses"][0]["errorCode"] == 0, answer.value


def beat(lab: "Lab", api: str, value: dict[str, Any]) -> Any:
    """A heartbeat of a member that is no more than its heartbeats."""
    answer = using(lab, lambda cluster: cluster.call(api, value))
    assert answer.value["errorCode"] == 0, answer.value
    return answer.value


def test_a_consumer_group_without_members_is_not_healthy_while_records_wait(cluster: "Lab", cli: Cli) -> None:
    group = new_name("readers")

    async def prepare(live: Cluster) -> None:
        topic = await create_topic(live)
        await produce(live, topic, 0, b"one", b"two", b"three")
        await commit_offset(live, group, topic)

    using(cluster, prepare)
    answer = cli("check", "group", cluster.bootstrap, group)
    assert answer.code == 1
    assert answer.out == f"not healthy: group {group}: Group {group} has no members and 2 records waiting.\n"
    assert cli("check", "group", cluster.bootstrap, group, "--fail-on", "critical").code == 0
    assert cli("check", "group", cluster.bootstrap, group, "--fail-on", "critical", "--max-lag", "1").code == 1


def test_a_share_group_is_checked_by_its_members_and_its_lag(cluster: "Lab", cli: Cli) -> None:
    group, member = new_name("workers"), str(uuid.uuid4())
    topic = using(cluster, create_topic)
    using(cluster, lambda live: produce(live, topic, 0, b"one", b"two", b"three"))
    be_patient(cluster, group, "share")
    heartbeat = {"groupId": group, "memberId": member, "subscribedTopicNames": [topic]}
    beat(cluster, "ShareGroupHeartbeat", {**heartbeat, "memberEpoch": 0})
    beat(cluster, "ShareGroupHeartbeat", {**heartbeat, "memberEpoch": -1})
    start = {"topicName": topic, "partitions": [{"partitionIndex": 0, "startOffset": 0}]}
    beat(cluster, "AlterShareGroupOffsets", {"groupId": group, "topics": [start]})

    def says(*flags: str) -> tuple[int, str]:
        answer = cli("check", "share-group", cluster.bootstrap, group, *flags)
        return answer.code, answer.out

    nobody = f"not healthy: share group {group}: Share group {group} has no members and 3 records waiting.\n"
    assert says() == (1, nobody)

    beat(cluster, "ShareGroupHeartbeat", {**heartbeat, "memberEpoch": 0})
    assert says() == (0, f"healthy: share group {group}: Stable, 1 member, lag 3\n")
    assert says("--max-lag", "3")[0] == 0
    code, line = says("--max-lag", "2")
    assert code == 1 and f"The lag of share group {group} is 3 records, more than 2." in line
    code, line = says("--min-members", "2")
    assert code == 1 and f"Share group {group} has 1 member, fewer than 2." in line
    code, line = says("--for", "1s")
    assert code == 1 and f"{topic}-0 of share group {group} finished no record for" in line


def test_a_streams_group_without_its_topics_is_not_healthy(cluster: "Lab", cli: Cli) -> None:
    group = new_name("counters")
    part = {"subtopologyId": "0", "sourceTopics": ["no-such-topic"]}
    heartbeat = {
        "groupId": group,
        "memberId": str(uuid.uuid4()),
        "memberEpoch": 0,
        "processId": "p1",
        "rebalanceTimeoutMs": 60_000,
        "topology": {"epoch": 1, "subtopologies": [part]},
        "activeTasks": [],
        "standbyTasks": [],
        "warmupTasks": [],
    }
    be_patient(cluster, group, "streams")
    beat(cluster, "StreamsGroupHeartbeat", heartbeat)
    answer = cli("check", "streams-group", cluster.bootstrap, group)
    assert answer.code == 1
    assert f"Streams group `{group}` lacked source topics: " in answer.out
    assert "no-such-topic" in answer.out
    metrics = parsed(cli("check", "streams-group", cluster.bootstrap, "--format", "openmetrics").out)
    statuses = [sample.labels for sample in metrics["kafkascope_streams_status"] if sample.labels["group"] == group]
    assert statuses == [{"group": group, "status": "MISSING_SOURCE_TOPICS"}]


def test_what_may_not_be_seen_is_named_and_not_called_healthy(secured_cluster: "Lab", cli: Cli, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(SECURED_USERS["bob"])
    login = ("--sasl-mechanism", "SCRAM-SHA-512", "--username", "bob", "--password-file", str(password), "--no-tls")
    where = secured_cluster.addresses(SASL)
    alone = cli("check", "quorum", where, *login)
    assert (alone.code, alone.out) == (1, "")
    assert "CLUSTER_AUTHORIZATION_FAILED (31); it needs Describe on Cluster" in alone.err
    assert is_one_line_error(alone.err)
    groups = cli("check", "streams-group", where, *login)
    line = "not healthy: list of groups: Groups may be missing from it: seeing all needs the ACL Describe on Cluster.\n"
    assert (groups.code, groups.out) == (1, line)
    document = json.loads(cli("check", "all", where, "--json", *login).out)
    assert [gap["error"] for gap in document["gaps"]] == ["LEFT_OUT"]
    (quorum,) = [check for check in document["checks"] if check["check"] == "quorum"]
    assert (quorum["subject"], quorum["healthy"]) == ("quorum", False)
    assert quorum["problems"][0]["rule"] == "not_described"


def test_serves_a_look_for_each_scrape(cluster: "Lab") -> None:
    with serving("quorum", cluster.bootstrap) as url:
        first, second = (parsed(get(url)[1])["kafkascope_quorum_replica_log_end_offset"][0].value for _ in range(2))
        assert second >= first > 0


def test_a_frozen_follower_is_not_healthy_until_it_is_back(quorum_cluster: "Lab", cli: Cli) -> None:
    leader = quorum_cluster.leader()
    frozen = next(number for number in (1, 2, 3) if number != leader)
    address = quorum_cluster.nodes[leader].place.address("PLAINTEXT")

    def code() -> int:
        return cli("check", "quorum", address, "--timeout", "30").code

    until("a quorum that is well", lambda: code() == 0, WAIT_SECONDS)
    quorum_cluster.freeze(frozen)
    try:
        until("a quorum that is not", lambda: code() == 1, WAIT_SECONDS)
        answer = cli("check", "quorum", address, "--timeout", "30")
        assert answer.code == 1
        assert answer.out.startswith(f"not healthy: quorum: Voter node `{frozen}` didn't fetch for up to")
        assert cli("check", "quorum", address, "--fail-on", "critical", "--timeout", "30").code == 0
        limited = cli("check", "quorum", address, "--max-lag", "0", "--fail-on", "critical", "--timeout", "30")
        assert limited.code == 1
    finally:
        quorum_cluster.thaw(frozen)
    until("a quorum that is well again", lambda: code() == 0, WAIT_SECONDS)
