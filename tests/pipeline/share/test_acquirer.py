"""The source's two halves without Spark: what a cluster refuses is one line, no password is in what Spark keeps, and
records that are gone from the log are an error, or left out."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.errors import InputError, KafkascopeError, ReachError, RefusedError
from kafkascope.pipeline.share.acquirer import Acquirer
from kafkascope.pipeline.share.batch_offset import BatchOffset
from kafkascope.pipeline.share.options import ShareOptions, parse_options
from kafkascope.pipeline.share.read import read_ranges
from lab.settings import SASL
from tests.client.consumer_stage import Stage
from tests.pipeline.share.queries import prepared, produced, staged

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

PATIENCE = 60.0


def options_of(cluster: "Lab", folder: Path, user: str, topic: str, group: str) -> ShareOptions:
    """Credentials are in the file alone."""
    config = folder / "client.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} required username="{user}" password="{user}-secret";\n'
    )
    texts = {"bootstrap": cluster.addresses(SASL), "group": group, "topics": topic, "config": str(config)}
    return parse_options(texts | {"timeout": str(PATIENCE)})


async def first_batch(options: ShareOptions) -> tuple[BatchOffset, list[str]]:
    notes: list[str] = []
    acquirer = Acquirer(options, notes.append)
    try:
        async with asyncio.timeout(PATIENCE):
            while (batch := await acquirer.next_batch(BatchOffset(0, "AAAAAAAAAAAAAAAAAAAAAQ"), 1_000)) is None:
                pass
        await acquirer.commit(batch)
    finally:
        await acquirer.close()
    return batch, notes


def test_a_login_reads_and_no_password_is_in_the_offset(secured_cluster: "Lab", tmp_path: Path) -> None:
    topic, group = prepared(secured_cluster.bootstrap, [b"value"] * 10)
    options = options_of(secured_cluster, tmp_path, "alice", topic, group)
    batch, notes = asyncio.run(first_batch(options))
    assert "secret" not in json.dumps(batch.to_json()) and "secret" not in repr(options) and not notes
    rows = [
        row for entry in batch.records for part in read_ranges(entry, batch.at, options) for row in part.to_pylist()
    ]
    assert [row["offset"] for row in rows] == list(range(10)) and {row["value"] for row in rows} == {b"value"}


@pytest.mark.parametrize(
    ("user", "line"),
    [
        ("carol", "TOPIC_AUTHORIZATION_FAILED (29); it needs DESCRIBE and READ on the topic"),
        ("bob", "GROUP_AUTHORIZATION_FAILED (30); it needs READ on the group"),
    ],
)
def test_a_missing_permission_is_named(secured_cluster: "Lab", tmp_path: Path, user: str, line: str) -> None:
    topic, group = prepared(secured_cluster.bootstrap, [])
    if user == "bob":
        allow(secured_cluster, topic)
    with pytest.raises(RefusedError) as raised:
        asyncio.run(first_batch(options_of(secured_cluster, tmp_path, user, topic, group)))
    assert line in str(raised.value) and "secret" not in str(raised.value)


def test_brokers_that_fall_silent_end_the_query_with_one_line(cluster: "Lab") -> None:
    topic, group = prepared(cluster.bootstrap, [b"value"])

    async def run() -> None:
        acquirer = Acquirer(plain(cluster.bootstrap, topic, group, timeout="3"), print)
        try:
            batch = None
            while batch is None:
                batch = await acquirer.next_batch(BatchOffset(0, "AAAAAAAAAAAAAAAAAAAAAQ"), 1_000)
            cluster.freeze(1)
            while True:
                await acquirer.next_batch(batch, 1_000)
        finally:
            cluster.thaw(1)
            await acquirer.close()

    with pytest.raises(ReachError, match=f"share group {group}: no broker has responded for 3 s: .*no response"):
        asyncio.run(asyncio.wait_for(run(), PATIENCE))
    cluster.wait_until_ready()


def test_without_renewal_no_more_is_locked_than_a_batch_has(cluster: "Lab") -> None:
    """Locks of the rest would end before its turn comes, again and again, until brokers archive it."""
    topic, group = prepared(cluster.bootstrap, [b"value"] * 1_500)
    # Record batches of 1,000 are locked whole.
    produced(cluster.bootstrap, topic, [b"value"])
    options = plain(cluster.bootstrap, topic, group, renew="false")
    notes: list[str] = []

    async def run() -> tuple[int, dict[str, Any]]:
        acquirer = Acquirer(options, notes.append)
        try:
            batch = None
            while batch is None:
                batch = await acquirer.next_batch(BatchOffset(0, "AAAAAAAAAAAAAAAAAAAAAQ"), 1_000_000)
            return batch.size, acquirer.metrics()
        finally:
            await acquirer.close()

    size, metrics = asyncio.run(asyncio.wait_for(run(), PATIENCE))
    assert (size, metrics["acquired"], metrics["renewal"], metrics["renewed"]) == (500, 1_000, False, 0)
    assert notes == ["locks aren't renewed: batches are kept so small that they take half a lock"]


def allow(cluster: "Lab", topic: str) -> None:
    """Bob may describe and read it."""

    async def run(on: Stage) -> None:
        acl = {"resourceType": 2, "resourceName": topic, "resourcePatternType": 3, "principal": "User:bob", "host": "*"}
        creations = [{**acl, "operation": operation, "permissionType": 3} for operation in (3, 8)]
        answer = await on.cluster.call("CreateAcls", {"creations": creations})
        assert not any(row["errorCode"] for row in answer.value["results"])

    staged(cluster.bootstrap, run)


def plain(bootstrap: str, topic: str, group: str, **more: str) -> ShareOptions:
    return parse_options({"bootstrap": bootstrap, "topics": topic, "group": group, "timeout": "30"} | more)


def test_another_kind_of_group_and_a_topic_that_does_not_exist_are_refused(cluster: "Lab") -> None:
    topic, group = prepared(cluster.bootstrap, [])

    async def consumer_group(on: Stage) -> None:
        rows = [{"partitionIndex": 0, "committedOffset": 0}]
        value = {"groupId": f"{group}-other", "memberId": "", "generationIdOrMemberEpoch": -1}
        value |= {"topics": [{"name": topic, "partitions": rows}]}
        answer = await on.cluster.call("OffsetCommit", value, version=9)
        assert answer.value["topics"][0]["partitions"][0]["errorCode"] == 0

    def refusal(kind: type[KafkascopeError], options: ShareOptions) -> str:
        with pytest.raises(kind) as raised:
            asyncio.run(first_batch(options))
        assert "\n" not in str(raised.value)
        return str(raised.value)

    staged(cluster.bootstrap, consumer_group)
    other = plain(cluster.bootstrap, topic, f"{group}-other")
    assert f"group {group}-other isn't a share group" in refusal(RefusedError, other)
    assert "UNKNOWN_TOPIC_OR_PARTITION (3)" in refusal(RefusedError, plain(cluster.bootstrap, f"{topic}-none", group))
    assert "127.0.0.1:1: " in refusal(ReachError, plain("127.0.0.1:1", topic, group))


def test_records_that_retention_deleted_are_an_error_unless_they_may_be_gone(
    cluster: "Lab", capfd: pytest.CaptureFixture[str]
) -> None:
    topic, group = prepared(cluster.bootstrap, [b"value"] * 20)
    options = plain(cluster.bootstrap, topic, group)
    batch, _ = asyncio.run(first_batch(options))

    async def delete(on: Stage) -> None:
        partition = {"partitionIndex": 0, "offset": 5}
        value = {"topics": [{"name": topic, "partitions": [partition]}], "timeoutMs": 30_000}
        answer = await on.cluster.call("DeleteRecords", value, to=f"leader:{topic}-0")
        assert answer.value["topics"][0]["partitions"][0]["errorCode"] == 0

    def offsets(options: ShareOptions) -> list[int]:
        (entry,) = batch.records
        return [
            offset for part in read_ranges(entry, batch.at, options) for offset in part.column("offset").to_pylist()
        ]

    assert offsets(options) == list(range(20))
    staged(cluster.bootstrap, delete)
    with pytest.raises(InputError, match=f"{topic}-0: offsets 0-4: no longer in the log.*failOnDataLoss=false"):
        offsets(options)
    assert offsets(plain(cluster.bootstrap, topic, group, failOnDataLoss="false")) == list(range(5, 20))
    assert "offsets 0-4: no longer in the log, skipped" in capfd.readouterr().err
