"""Every read-only API at every version that real brokers offer: answers exact, the same bytes again, examples taken."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from kafkascope.client import connect
from kafkascope.client.cluster import Cluster as Live
from kafkascope.client.probe.arguments import ARGUMENTS, MISSING_NAME, PROBE_PREFIX, ClusterSurvey, Topic, cases, prune
from kafkascope.client.probe.missing_ids import FIRST_NODE, STRIDE, names_directory, names_node
from kafkascope.client.probe.prober import _example, probe
from kafkascope.client.probe.release import matching_releases
from kafkascope.client.probe.result import Probe
from kafkascope.client.probe.temporary import temporary_resources
from kafkascope.client.settings import Settings
from kafkascope.client.writes import READS, effect
from kafkascope.codec.frame import DecodedFrame
from kafkascope.codec.message import encode
from kafkascope.errors import NotFoundError
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.errors.message_errors import error_fields
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import LayoutField, layout
from kafkascope.schema.releases import releases
from lab.cluster import Cluster
from tests.client.servers import BROKER, Peer, serving

SURVEY = ClusterSurvey(
    topics=(Topic("orders", UUID(int=7), 3),), groups={"classic": ("g",), "share": ("s",)}, transactional_ids=("t",)
)


def test_every_api_that_reads_has_arguments_and_no_other() -> None:
    assert ARGUMENTS.keys() == READS


@pytest.mark.parametrize("survey", [SURVEY, ClusterSurvey()], ids=["something there", "nothing there"])
def test_every_version_has_a_case_that_can_be_encoded_and_changes_nothing(survey: ClusterSurvey) -> None:
    for api in ARGUMENTS:
        for version in message(f"{api}Request").all_versions():
            made = cases(api, version, survey)
            assert made or not survey.topics, (api, version)
            for case in made:
                encode(f"{api}Request", version, case.value)
                assert not effect(api, version, case.value).changes, (api, version, case.label)


def test_no_case_waits() -> None:
    for api in ARGUMENTS:
        for version in message(f"{api}Request").all_versions():
            for case in cases(api, version, SURVEY):
                assert case.value.get("maxWaitMs", 0) == 0, (api, version)
                assert case.value.get("timeoutMs", 0) <= 1000, (api, version)


def test_prune_keeps_what_the_version_has() -> None:
    value = {"topics": None, "allowAutoTopicCreation": False, "more": 1}
    assert prune(layout("MetadataRequest", 0).fields, value) == {}
    assert prune(layout("MetadataRequest", 4).fields, value) == {"topics": None, "allowAutoTopicCreation": False}


@pytest.mark.parametrize("release", [release.name for release in releases() if release.coverage == "all"])
def test_a_release_looks_like_itself(release: str) -> None:
    offered = {}
    for key, api in apis().items():
        versions = message(f"{api}Request").versions_in(release)
        if versions:
            offered[key] = (versions.ranges[0][0], versions.ranges[-1][1])
    assert release in matching_releases(offered)
    assert len(matching_releases(offered)) <= 2


def test_versions_of_no_release_look_like_none() -> None:
    assert matching_releases(dict.fromkeys(apis(), (90, 99))) == ()


# Numbers and uuids of requests that are of no node and of no directory; another one has to be classed.
NUMBERS = re.compile(r".*(Epoch|Ms|Bytes|Port)|epoch|port|partitions?|partitionIndex(es)?|numPartitions|index|count")
OTHER_NUMBERS = set(
    "batchSize deliveryCompleteCount generationId iterations maxNumOffsets maxRecords responsePartitionLimit sessionId"
    " subscriptionId zkVersion".split()
)
OTHER_IDS = {"clientInstanceId", "incarnationId", "topicId"}


def leaves(fields: tuple[LayoutField, ...], value: Any) -> Iterator[tuple[LayoutField, Any]]:
    """Every field with what it holds, element by element; each field once more with None, whether or not it is set."""
    for field in fields:
        content = value.get(field.name) if value else None
        inner = content if field.array and content is not None else [content]
        if field.type == "struct":
            for child in (*inner, None):
                yield from leaves(field.fields, child)
        else:
            for child in (*inner, None):
                yield field, child


def test_no_example_names_a_node_a_directory_or_a_feature_of_the_cluster() -> None:
    """Nodes 0 to 200 are there, and some with ids as strange as those that stand in for them."""
    cluster_ids = frozenset(range(201)) | {FIRST_NODE + 3, FIRST_NODE + STRIDE + 3}
    seen = set()
    for api in apis().values():
        for version in message(f"{api}Request").all_versions():
            fields = layout(f"{api}Request", version).fields
            catalogs = {leaf for _, leaf in leaves(fields, example(f"{api}Request", version)) if isinstance(leaf, UUID)}
            value = _example(api, version, replace(SURVEY, nodes=cluster_ids)).value
            encode(f"{api}Request", version, value)
            for field, leaf in leaves(fields, value):
                where = (api, version, field.name)
                if field.type == "int32":
                    plain = NUMBERS.fullmatch(field.name) or field.name in OTHER_NUMBERS
                    assert bool(plain) != names_node(field), where
                    assert plain or leaf not in cluster_ids, where
                elif field.type == "uuid":
                    assert (field.name in OTHER_IDS) != names_directory(field), where
                    assert field.name in OTHER_IDS or leaf is None or leaf.int < 100 or leaf not in catalogs, where
                elif field.name in ("path", "feature") and leaf is not None:
                    assert MISSING_NAME in leaf, where
            seen.add(api)
    assert len(seen) == len(apis())


def test_nodes_that_differ_still_do_where_they_live_nowhere() -> None:
    value = _example("AlterPartitionReassignments", 1, SURVEY).value
    assert len(set(value["topics"][0]["partitions"][0]["replicas"])) == 3


async def names(live: Live) -> tuple[set[str], set[str]]:
    """Topics and groups that are there."""
    topics = (await live.call("Metadata", {"topics": None})).value["topics"]
    groups = (await live.call("ListGroups")).value["groups"]
    return {row["name"] for row in topics}, {row["groupId"] for row in groups}


@asynccontextmanager
async def in_use(live: Live) -> AsyncIterator[None]:
    """While it holds a topic of somebody's."""
    name = f"somebodys-{uuid4().hex[:8]}"
    await live.call("CreateTopics", {"topics": [{"name": name, "numPartitions": 1, "replicationFactor": 1}]})
    yield
    await live.call("DeleteTopics", {"topics": [{"name": name}], "timeoutMs": 10_000})


def assert_reads_proven(result: Probe) -> None:
    assert [(proof.api, proof.version, proof.why) for proof in result.proofs if proof.state == "failed"] == []
    reads = [proof for proof in result.proofs if proof.kind == "reads"]
    assert [(proof.api, proof.version) for proof in reads if proof.state != "proven"] == []
    assert [(proof.api, proof.version, proof.example_why) for proof in reads if proof.example == "refused"] == []
    for proof in result.proofs:
        places = error_fields(message(f"{proof.api}Response"), proof.version)
        assert {seen.place for seen in proof.sightings} <= set(places), proof.api


def test_what_was_made_to_ask_about_is_removed_and_what_is_somebodys_left_alone(cluster: Cluster) -> None:
    async def run() -> tuple[Probe, set[str], set[str]]:
        async with connect(cluster.bootstrap) as live, in_use(live):
            async with temporary_resources(live) as name:
                result = await probe(live, write=True, prefer=name)
            return result, *(await names(live))

    result, topics, groups = asyncio.run(run())
    assert_reads_proven(result)
    assert not any(name.startswith(PROBE_PREFIX) for name in (*topics, *groups))
    others = [proof for proof in result.proofs if proof.kind != "reads"]
    assert {proof.state for proof in others} == {"not sent"}
    assert {proof.example_why.rpartition(", ")[2] for proof in others} == {"and this cluster is in use"}


def test_without_the_word_nothing_is_changed(cluster: Cluster) -> None:
    async def run() -> tuple[Probe, Any, Any]:
        async with connect(cluster.bootstrap) as live:
            before = await names(live)
            result = await probe(live)
            return result, before, await names(live)

    result, before, after = asyncio.run(run())
    # what a test before this one deleted may go meanwhile
    assert [later - earlier for later, earlier in zip(after, before, strict=True)] == [set(), set()]
    assert result.ok
    assert {proof.kind for proof in result.proofs if proof.answers} == {"reads"}


async def answered(peer: Peer, request: DecodedFrame) -> bool:
    """Whether it was one that the survey asks."""
    known = {"Metadata": peer.metadata(), "ListGroups": {"groups": []}}
    if request.api in known:
        await peer.answer(request, known[request.api])
    return request.api in known


def test_a_call_that_gets_no_answer_is_not_proven() -> None:
    async def refuses(peer: Peer) -> None:
        while await answered(peer, await peer.greet()):
            pass

    async def run() -> Probe:
        async with serving(refuses) as address, connect(Settings((address,))) as live:
            return await probe(live, apis_only=frozenset({"DescribeQuorum"}))

    result = asyncio.run(run())
    assert not result.ok
    assert {proof.state for proof in result.proofs} == {"failed"}
    assert all("closed the connection" in proof.why for proof in result.proofs)


def test_an_answer_that_is_not_exact_is_not_proven() -> None:
    async def sloppy(peer: Peer) -> None:
        while True:
            request = await peer.greet()
            if not await answered(peer, request):
                # a byte more than the message has
                frame = peer.frame(request, example("DescribeQuorumResponse", request.version))
                await peer.write((len(frame) - 3).to_bytes(4, "big") + frame[4:] + b"!")

    async def run() -> Probe:
        async with serving(sloppy) as address, connect(Settings((address,))) as live:
            return await probe(live, apis_only=frozenset({"DescribeQuorum"}))

    result = asyncio.run(run())
    assert {(proof.state, proof.answers > 0) for proof in result.proofs} == {("failed", True)}
    assert all("not exact" in proof.why for proof in result.proofs)


def test_an_api_that_the_node_does_not_offer_is_said_and_nothing_is_asked() -> None:
    offered = {key: versions for key, versions in BROKER.items() if apis()[key] != "DescribeQuorum"}

    async def without(peer: Peer) -> None:
        raise AssertionError((await peer.greet(offered)).api)

    async def run() -> None:
        async with serving(without) as address, connect(Settings((address,))) as live:
            with pytest.raises(NotFoundError, match="this broker doesn't serve Vote; it is for controllers"):
                await probe(live, apis_only=frozenset({"Metadata", "Vote"}))
            with pytest.raises(NotFoundError, match=r"this broker doesn't serve DescribeQuorum$"):
                await probe(live, apis_only=frozenset({"DescribeQuorum"}))

    asyncio.run(run())
