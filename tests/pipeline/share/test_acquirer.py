"""The source's two halves without Spark, on brokers with logins and ACLs: what is missing is named in one line, and no
password is in what Spark keeps."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.errors import RefusedError
from kafkascope.pipeline.share.acquirer import Acquirer
from kafkascope.pipeline.share.batch_offset import BatchOffset
from kafkascope.pipeline.share.options import ShareOptions, parse_options
from kafkascope.pipeline.share.read import read_ranges
from lab.settings import SASL
from tests.pipeline.share.queries import prepared

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


def allow(cluster: "Lab", topic: str) -> None:
    """Bob may describe and read it."""
    from tests.client.consumer_stage import Stage
    from tests.pipeline.share.queries import staged

    async def run(on: Stage) -> None:
        acl = {"resourceType": 2, "resourceName": topic, "resourcePatternType": 3, "principal": "User:bob", "host": "*"}
        creations = [{**acl, "operation": operation, "permissionType": 3} for operation in (3, 8)]
        answer = await on.cluster.call("CreateAcls", {"creations": creations})
        assert not any(row["errorCode"] for row in answer.value["results"])

    staged(cluster.bootstrap, run)
