"""An observer asks brokers for all that the marts can use, keeps every answer, and goes on when brokers do not."""

from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.client import Answer, Cluster, connect
from kafkascope.client.observe.buffer import MAX_CALLS, PollBuffer
from kafkascope.client.observe.observer import FailedCall, Observer, Poll
from kafkascope.client.settings import Address
from kafkascope.codec.frame import DecodedFrame
from kafkascope.limits import MAX_OBSERVED_BYTES
from tests.client.leftovers import run
from tests.client.stage import NO_ANSWER, Stage, play
from tests.client.test_cluster import create_topic, new_name, produce

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab


def answer(size: int = 10, request: bytes = b"request") -> Answer:
    address = Address("127.0.0.1", 9092)
    return Answer("ListGroups", 5, {}, 1, address, request, bytes(size), 1, 2, 7, True, ())


def poll(*answers: Answer, failures: list[FailedCall] | None = None) -> Poll:
    return Poll(0, list(answers), failures or [])


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def is_due(portions: PollBuffer) -> bool:
    return portions.due


def test_answers_wait_for_their_time_and_no_longer() -> None:
    clock = Clock()
    portions = PollBuffer(60, clock)
    assert not is_due(portions)
    portions.add(poll(answer()))
    clock.now += 59
    portions.add(poll(answer()))
    assert not is_due(portions)
    clock.now += 1
    assert is_due(portions)
    taken = portions.take()
    assert (len(taken.answers), taken.polls) == (2, 2)
    assert not is_due(portions)
    assert not portions.take().answers


def test_many_bytes_or_many_calls_do_not_wait() -> None:
    portions = PollBuffer(60, Clock())
    portions.add(poll(answer(MAX_OBSERVED_BYTES)))
    assert portions.due
    portions.take()
    portions.add(poll(*[answer()] * MAX_CALLS))
    assert portions.due


def test_what_was_asked_in_vain_is_told_once_with_its_first_time() -> None:
    portions = PollBuffer(60, Clock())
    for at in (5, 6, 7):
        gone = FailedCall(at, "ListGroups", "127.0.0.1:9092: connection refused")
        portions.add(poll(failures=[gone, gone, FailedCall(at, "X", "no such API", reached=True)]))
    taken = portions.take()
    assert taken.failures == {"127.0.0.1:9092: connection refused": (5, 3)}
    assert taken.polls == 3


def test_frames_of_a_login_are_left_out() -> None:
    portions = PollBuffer(60, Clock())
    portions.add(poll(answer(request=b""), answer()))
    assert len(portions.take().answers) == 1


def test_a_frozen_controller_holds_up_no_answer_of_healthy_brokers() -> None:
    """They pass DescribeQuorum on to it, and answers of one connection come in order."""

    def script(_: int, request: DecodedFrame) -> dict[str, Any] | None:
        return NO_ANSWER if request.api == "DescribeQuorum" else None

    async def use(cluster: Cluster, _: Stage) -> None:
        for __ in range(2):
            observed = await Observer(cluster, timeout=1.0).poll()
            listed = [response for response in observed.answers if response.api == "ListGroups"]
            assert sorted(response.node or 0 for response in listed) == [1, 2, 3]
            # answered while the controller was still waited for
            assert max(response.received_at for response in listed) - observed.at < 500_000_000
            assert {failure.api for failure in observed.failures} == {"DescribeQuorum"}

    play(script, use, nodes=3)


def test_share_state_that_does_not_come_holds_up_no_other_answer() -> None:
    """A coordinator asks that of the share state for it, which may be another node."""

    def script(_: int, request: DecodedFrame) -> dict[str, Any] | None:
        if request.api == "ListGroups":
            kinds = ("Share", "Classic")
            return {"groups": [{"groupId": kind, "protocolType": "", "groupType": kind} for kind in kinds]}
        return NO_ANSWER if request.api == "DescribeShareGroupOffsets" else None

    async def use(cluster: Cluster, _: Stage) -> None:
        observed = await Observer(cluster, timeout=1.0).poll()
        assert "OffsetFetch" in {response.api for response in observed.answers}
        assert {failure.api for failure in observed.failures} == {"DescribeShareGroupOffsets"}

    play(script, use, nodes=1)


async def commit_offset(cluster: Cluster, group: str, topic: str) -> None:
    partition = {"partitionIndex": 0, "committedOffset": 1, "committedMetadata": ""}
    request: dict[str, Any] = {"groupId": group, "topics": [{"name": topic, "partitions": [partition]}]}
    response = await cluster.call("OffsetCommit", request, version=9)
    assert response.value["topics"][0]["partitions"][0]["errorCode"] == 0


def polled(bootstrap: str, groups: tuple[str, ...] = (), *, produced: bool = True) -> tuple[Poll, str, str]:
    """A topic with records, a group that has committed one, and a poll."""

    async def work() -> tuple[Poll, str, str]:
        early: list[Answer] = []
        async with connect(bootstrap, timeout=60.0, every_answer=early.append) as cluster:
            topic, group = await create_topic(cluster), new_name("readers")
            if produced:
                await produce(cluster, topic, 0, b"one", b"two", b"three")
            await commit_offset(cluster, group, topic)
            early.clear()
            return await Observer(cluster, groups or (group,), early=early).poll(), topic, group

    return run(work())


@pytest.mark.parametrize("lab", ["cluster", "cluster_39"])
def test_a_poll_asks_for_quorum_groups_members_offsets_and_ends(request: pytest.FixtureRequest, lab: str) -> None:
    running: Lab = request.getfixturevalue(lab)
    observed, topic, group = polled(running.bootstrap, produced=lab == "cluster")
    apis_called = {response.api for response in observed.answers}
    expected = (
        "Metadata DescribeCluster DescribeQuorum ListGroups ListTransactions DescribeGroups OffsetFetch ListOffsets"
    )
    assert apis_called >= set(expected.split())
    assert observed.failures == []
    assert observed.groups == 1
    assert all(response.exact for response in observed.answers)
    (described,) = [response.value for response in observed.answers if response.api == "DescribeGroups"]
    assert [listed["groupId"] for listed in described["groups"]] == [group]
    (ends,) = [response.value for response in observed.answers if response.api == "ListOffsets"]
    assert [listed["name"] for listed in ends["topics"]] == [topic]
    assert ends["topics"][0]["partitions"][0]["offset"] == (3 if lab == "cluster" else 0)


def test_every_answer_says_which_connection_it_came_over(cluster: "Lab") -> None:
    observed, _, _ = polled(cluster.bootstrap)
    for response in observed.answers:
        host, _, port = response.client_address.rpartition(":")
        assert host == "127.0.0.1" and port.isdecimal()
        assert 0 < response.connected_at <= response.sent_at


def test_brackets_of_a_group_are_no_pattern() -> None:
    cluster: Any = None
    observer = Observer(cluster, ("eu[1]-*",))
    assert observer._takes("eu[1]-a")
    assert not observer._takes("eu1-a")


def test_only_groups_that_fit_are_asked_for(cluster: "Lab") -> None:
    observed, _, group = polled(cluster.bootstrap, groups=("no-such-*",))
    assert observed.groups == 0
    assert "DescribeGroups" not in {response.api for response in observed.answers}
    again, _, _ = polled(cluster.bootstrap, groups=("readers-*",))
    named = {listed["groupId"] for a in again.answers if a.api == "DescribeGroups" for listed in a.value["groups"]}
    assert group in named


def test_a_cluster_reached_by_its_controllers_is_observed_as_far_as_they_tell(cluster: "Lab") -> None:
    async def work() -> Poll:
        async with connect(cluster.controllers, controllers=True, timeout=60.0) as reached:
            return await Observer(reached).poll()

    observed = run(work())
    assert {"DescribeQuorum", "DescribeCluster"} <= {response.api for response in observed.answers}
    assert observed.failures == []
