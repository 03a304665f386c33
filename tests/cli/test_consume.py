"""`consume`: records of a share group as lines, with what becomes of them on request alone."""

import asyncio
import json
import pty
import signal
import subprocess
from os import close, environ, pipe, write
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from kafkascope.client.describe.share_group import ShareGroupView, describe_share_group
from lab.settings import SASL
from lab.wire import until
from tests.client.consumer_stage import stage
from tests.support.cli import COMMAND, Cli, hear_interrupts, is_one_line_error, process

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

SECRET = b"the card number"


def topic_of(bootstrap: str, count: int) -> str:
    name = f"consume-{uuid4().hex[:8]}"

    async def prepare() -> None:
        async with stage(bootstrap) as on:
            await on.topic(name)
            await on.group(f"g-{name}")
            await on.produce(name, [SECRET] * count)

    asyncio.run(prepare())
    return name


def group_of(bootstrap: str, topic: str) -> ShareGroupView:
    async def look() -> ShareGroupView:
        async with stage(bootstrap) as on:
            return await describe_share_group(on.cluster, f"g-{topic}")

    return asyncio.run(look())


def consume(lab: "Lab", topic: str, *flags: str) -> subprocess.CompletedProcess[bytes]:
    fixed = ("--share-group", f"g-{topic}", "--timeout", "60")
    return process("consume", lab.bootstrap, topic, *fixed, *flags, timeout=120)


def test_records_are_looked_at_then_accepted_and_keys_and_values_are_shown_on_request(cluster: "Lab") -> None:
    topic = topic_of(cluster.bootstrap, 8)
    looked = consume(cluster, topic, "--release", "--max", "3", "--json")
    assert looked.returncode == 0 and looked.stderr.decode().endswith(": 3 released\n")
    lines = [json.loads(line) for line in looked.stdout.splitlines()]
    assert [(line["offset"], line["deliveryCount"], line["valueBytes"]) for line in lines] == [
        (offset, 1, len(SECRET)) for offset in range(3)
    ]
    assert SECRET not in looked.stdout and "value" not in lines[0]
    taken = consume(cluster, topic, "--accept", "--max", "5", "--records")
    assert taken.returncode == 0 and taken.stdout.count(SECRET) == 5
    assert taken.stdout.count(b"delivery 2") == 3, "of those that were looked at, and of no others"
    rejected = consume(cluster, topic, "--reject", "--max", "3")
    assert rejected.stderr.decode().endswith(": 3 rejected\n") and SECRET not in rejected.stdout
    assert group_of(cluster.bootstrap, topic).partitions[0].lag == 0


def test_a_person_is_asked_for_each_record(cluster: "Lab") -> None:
    topic = topic_of(cluster.bootstrap, 4)
    terminal, child = pty.openpty()
    command = [COMMAND, "consume", cluster.bootstrap, topic, "--share-group", f"g-{topic}", "--ask", "--timeout", "60"]
    running = subprocess.Popen(command, stdin=child, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    close(child)
    write(terminal, b"a\nn\nj\na\nq\n")
    out, err = running.communicate(timeout=120)
    close(terminal)
    assert running.returncode == 0, err
    assert len(out.splitlines()) == 4
    assert err.decode().rstrip().endswith("2 accepted, 1 rejected")
    partition = group_of(cluster.bootstrap, topic).partitions[0]
    assert (partition.start_offset, partition.lag) == (3, 1)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_ctrl_c_and_sigterm_leave_the_group(cluster: "Lab", tmp_path: Path, sent: signal.Signals, code: int) -> None:
    topic = topic_of(cluster.bootstrap, 2)
    command = [COMMAND, "consume", cluster.bootstrap, topic, "--share-group", f"g-{topic}", "--accept"]
    out = tmp_path / "out"
    with out.open("wb") as file:
        running = subprocess.Popen(
            [*command, "--timeout", "60"], stdout=file, stderr=subprocess.PIPE, preexec_fn=hear_interrupts
        )
        until("two records", lambda: out.read_bytes().count(b"\n") == 2, 120)
        running.send_signal(sent)
        _, err = running.communicate(timeout=120)
    assert running.returncode == code, err
    assert err.decode().endswith("2 records of share group g-" + topic + ": 2 accepted\n")
    view = group_of(cluster.bootstrap, topic)
    assert view.state == "Empty" and view.partitions[0].lag == 0


def test_ctrl_c_ends_a_question(cluster: "Lab", tmp_path: Path) -> None:
    topic = topic_of(cluster.bootstrap, 2)
    terminal, child = pty.openpty()
    command = [COMMAND, "consume", cluster.bootstrap, topic, "--share-group", f"g-{topic}", "--ask", "--timeout", "60"]
    out = tmp_path / "out"
    with out.open("wb") as file:
        running = subprocess.Popen(
            command, stdin=child, stdout=file, stderr=subprocess.PIPE, preexec_fn=hear_interrupts
        )
        close(child)
        until("a record", lambda: out.read_bytes().count(b"\n") == 1, 120)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=120)
    close(terminal)
    assert running.returncode == 130 and b"Traceback" not in err, err
    view = group_of(cluster.bootstrap, topic)
    assert view.state == "Empty" and view.partitions[0].lag == 2


def test_nothing_is_accepted_that_nobody_could_read(cluster: "Lab") -> None:
    """As `| head` that has gone."""
    topic = topic_of(cluster.bootstrap, 3)
    reader, writer = pipe()
    close(reader)
    command = [COMMAND, "consume", cluster.bootstrap, topic, "--share-group", f"g-{topic}", "--accept", "--max", "3"]
    buffered = {name: value for name, value in environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [*command, "--timeout", "60"], stdout=writer, stderr=subprocess.PIPE, env=buffered, timeout=120
    )
    close(writer)
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr
    partition = group_of(cluster.bootstrap, topic).partitions[0]
    assert (partition.start_offset, partition.lag) == (0, 3)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((), "choose what happens to the records"),
        (("--accept", "--for", "0s"), "--for: 0 s would stop at once"),
        (("--ask",), "--ask needs a terminal"),
        (("--accept", "--max", "0"), "--max"),
        (("--accept", "--full"), "--full needs --records"),
        (("--accept", "--release"), "--accept and --release exclude each other"),
        (("--accept", "--share-group", ""), "a group is a name, not ''"),
        (("--accept", ""), "a topic is a name, not ''"),
    ],
)
def test_flags_that_say_nothing_are_refused(cli: Cli, flags: tuple[str, ...], says: str) -> None:
    answer = cli("consume", "127.0.0.1:1", "orders", "--share-group", "g", *flags)
    assert (answer.code, says in answer.err, is_one_line_error(answer.err)) == (2, True, True), answer.err


def test_a_topic_that_does_not_exist_is_named(cli: Cli, cluster: "Lab") -> None:
    answer = cli("consume", cluster.bootstrap, "no-such-topic", "--share-group", "g", "--accept", "--max", "1")
    assert answer.code == 1 and "there is no topic no-such-topic" in answer.err
    assert is_one_line_error(answer.err)


def test_brokers_without_share_groups_are_named_with_what_to_switch_on(cli: Cli, cluster_39: "Lab") -> None:
    async def prepare() -> None:
        async with stage(cluster_39.bootstrap) as on:
            await on.topic("orders-39")

    asyncio.run(prepare())
    answer = cli("consume", cluster_39.bootstrap, "orders-39", "--share-group", "g", "--accept", "--max", "1")
    assert answer.code == 1 and "has no share groups: they need Kafka 4.1 or newer" in answer.err
    assert "--feature share.version=1" in answer.err and is_one_line_error(answer.err)


def test_a_group_of_another_type_is_named_as_such(cli: Cli, cluster: "Lab") -> None:
    topic = topic_of(cluster.bootstrap, 1)

    async def join_as_a_consumer() -> None:
        async with stage(cluster.bootstrap) as on:
            value = {"groupId": f"readers-{topic}", "memberId": uuid4().hex, "memberEpoch": 0}
            value |= {"rebalanceTimeoutMs": 60_000, "subscribedTopicNames": [topic], "topicPartitions": []}
            answer = await on.cluster.call("ConsumerGroupHeartbeat", value)
            assert answer.value["errorCode"] == 0

    asyncio.run(join_as_a_consumer())
    answer = cli("consume", cluster.bootstrap, topic, "--share-group", f"readers-{topic}", "--accept", "--max", "1")
    assert answer.code == 1 and f"group readers-{topic} isn't a share group: GROUP_ID_NOT_FOUND (69)" in answer.err
    assert is_one_line_error(answer.err) and not answer.out


READ, DESCRIBE = 3, 8
TOPIC, GROUP = 2, 3


@pytest.mark.parametrize(
    ("allowed", "code", "says"),
    [
        ([], "TOPIC_AUTHORIZATION_FAILED (29)", "it needs READ"),
        ([(TOPIC, READ)], "GROUP_AUTHORIZATION_FAILED (30)", "it needs READ on the group"),
        ([(TOPIC, READ), (GROUP, DESCRIBE)], "GROUP_AUTHORIZATION_FAILED (30)", "it needs READ on the group"),
        ([(TOPIC, DESCRIBE), (GROUP, READ)], "TOPIC_AUTHORIZATION_FAILED (29)", "it needs READ on the topic"),
        ([(TOPIC, READ), (GROUP, READ)], None, ""),
    ],
)
def test_the_permission_that_is_missing_is_named(
    cli: Cli, secured_cluster: "Lab", allowed: list[tuple[int, int]], code: str | None, says: str, tmp_path: Path
) -> None:
    """Of a group and a topic that bob has no rights to but these."""
    topic = topic_of(secured_cluster.bootstrap, 1)
    names = {TOPIC: topic, GROUP: f"g-{topic}"}

    async def allow() -> None:
        async with stage(secured_cluster.bootstrap) as on:
            common = {"resourcePatternType": 3, "principal": "User:bob", "host": "*", "permissionType": 3}
            creations = [
                common | {"resourceType": kind, "resourceName": names[kind], "operation": operation}
                for kind, operation in allowed
            ]
            answer = await on.cluster.call("CreateAcls", {"creations": creations})
            assert not any(row["errorCode"] for row in answer.value["results"])

    asyncio.run(allow())
    password = tmp_path / "password"
    password.write_text("bob-secret")
    login = ("--sasl-mechanism", "PLAIN", "--username", "bob", "--password-file", str(password))
    flags = ("--share-group", names[GROUP], "--accept", "--max", "1", "--for", "60s", "--timeout", "60")
    answer = cli("consume", secured_cluster.addresses(SASL), topic, *flags, *login)
    if code is None:
        assert answer.code == 0 and answer.out.startswith(f"{topic}-0 0 ")
        return
    assert answer.code == 1 and code in answer.err and says in answer.err, answer.err
    assert "bob-secret" not in answer.err and not answer.out
    assert is_one_line_error(answer.err)


def test_sasl_is_spoken_as_by_the_other_commands(cli: Cli, secured_cluster: "Lab", tmp_path: Path) -> None:
    topic = topic_of(secured_cluster.bootstrap, 1)
    password = tmp_path / "password"
    password.write_text("alice-secret")
    login = ("--sasl-mechanism", "SCRAM-SHA-256", "--username", "alice", "--password-file", str(password))
    host = secured_cluster.addresses(SASL)
    flags = ("--share-group", f"g-{topic}", "--accept", "--max", "1", "--timeout", "60")
    answer = cli("consume", host, topic, *flags, *login)
    assert answer.code == 0 and answer.out.startswith(f"{topic}-0 0 ")
