"""A look at a cluster of strangers: its time and memory are those of one call, however many nodes there are."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from kafkascope.client import Cluster, connect
from kafkascope.client.check.run import GROUP, check_cluster
from kafkascope.client.check.verdicts import CheckLimits, summary_line
from kafkascope.client.describe.calls import MAX_CONCURRENT, MAX_GAPS, map_fairly, map_limited
from kafkascope.client.describe.features import versions_by_node
from kafkascope.client.describe.gaps import NO_ANSWER, UNASKED
from kafkascope.client.describe.groups import describe_groups
from kafkascope.client.observe.observer import MAX_FAILURES, Observer
from kafkascope.client.probe.prober import probe
from kafkascope.client.settings import Address, Settings
from kafkascope.client.transport.deadline import after, within
from kafkascope.client.transport.dialling import UnreachableError, check_address
from kafkascope.client.transport.reading import HeavyError
from kafkascope.codec.frame import DecodedFrame
from kafkascope.errors import ReachError, RefusedError
from kafkascope.limits import MAX_APIS, MAX_BROKERS, MAX_LOGIN_FRAME_BYTES, MAX_UNKNOWN_VERSIONS
from tests.client.leftovers import run
from tests.client.servers import BROKER, Handler, Peer, ranges, serving, silence

T = TypeVar("T")
PATIENCE = 60.0


def result_of(handler: Handler, ask: Callable[[Cluster], Awaitable[T]], seconds: float = PATIENCE, **more: Any) -> T:
    async def work() -> T:
        async with serving(handler) as address, connect(Settings((address,), timeout=seconds), **more) as cluster:
            return await ask(cluster)

    return run(work())


def answering(*, rows: int = 1, **values: Any) -> Handler:
    """A broker; this one is the first of `rows`, the others are at a port that is none."""

    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        while True:
            await peer.answer(request, value(peer, request))
            request = await peer.request()

    def value(peer: Peer, request: DecodedFrame) -> dict[str, Any]:
        if request.api == "Metadata":
            others = [{"nodeId": 2 + n, "host": "127.0.0.1", "port": 0} for n in range(rows - 1)]
            first = peer.metadata()["brokers"] if rows else []
            return peer.metadata(brokers=[*first, *others])
        if request.api == "ApiVersions":
            return {"apiKeys": ranges(BROKER)}
        value: dict[str, Any] = values.get(request.api or "", {})
        return value

    return handler


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (Address("127.0.0.1", 99_999), "127.0.0.1:99999: 99999 isn't a port; ports are 1 to 65535"),
        (Address("127.0.0.1", -1), "127.0.0.1:-1: -1 isn't a port"),
        (Address("127.0.0.1", 0), "0 isn't a port"),
        (Address("", 9092), ":9092: the host is empty"),
        (Address("127.0.0.1\0x", 9092), "the host has characters that names can't have"),
        (Address("\x1b]0;pwned\x07red", 9092), "]0;pwned red:9092: the host has characters that names can't have"),
        (Address("a" * 30_000, 9092), f"{'a' * 40}…:9092: the host has 30,000 characters; the limit is 255"),
    ],
)
def test_an_address_that_leads_nowhere_is_told_and_not_tried_again(address: Address, message: str) -> None:
    with pytest.raises(UnreachableError) as raised:
        check_address(address)
    assert message in str(raised.value)
    assert "advertised.listeners" in str(raised.value) and str(raised.value).isprintable()
    assert raised.value.final


def test_brokers_that_are_left_out_are_told_once_and_are_a_gap() -> None:
    notes: list[str] = []

    async def ask(cluster: Cluster) -> Any:
        await cluster.brokers()
        return await versions_by_node(cluster), len(await cluster.brokers())

    rows = MAX_BROKERS + 1_000
    (outcome, gaps), kept = result_of(answering(rows=rows), ask, on_note=notes.append)
    assert kept == MAX_BROKERS and len(outcome) == 1
    (note,) = notes
    assert f"names {rows:,} brokers; 1,000 of them are left out" in note
    assert len(gaps) == MAX_GAPS + 2
    assert [gap.error for gap in gaps] == [NO_ANSWER] * (MAX_GAPS + 1) + [UNASKED]
    assert gaps[-2].what == f"versions of {MAX_BROKERS - 1 - MAX_GAPS:,} more nodes"
    assert gaps[-1].what == "versions of 1,000 brokers"


def test_a_check_of_groups_is_not_healthy_where_brokers_are_left_out() -> None:
    handler = answering(rows=MAX_BROKERS + 5)
    report = result_of(handler, lambda cluster: check_cluster(cluster, (GROUP,), (), CheckLimits()))
    assert not report.healthy
    assert "groups of 5 brokers: only the first 2,048 brokers are asked" in summary_line(report.results, "groups")


def test_all_calls_of_a_look_together_have_the_time_of_one() -> None:
    async def handler(peer: Peer) -> None:
        await peer.greet()
        await silence(peer)

    async def ask(cluster: Cluster) -> list[str]:
        messages = []
        with cluster.look():
            for _ in range(3):
                with pytest.raises(ReachError) as raised:
                    await cluster.call("ListGroups")
                messages.append(str(raised.value))
        return messages

    first, *others = result_of(handler, ask, 0.3)
    assert "no response within 0.3 s" in first
    assert all("no time was left" in other for other in others)


@pytest.mark.parametrize("at_once", [False, True], ids=["one after the other", "at the same time"])
def test_responses_of_a_round_of_calls_share_the_memory_of_one(monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    """Ten kilobytes here: the first node's list fits, and the next one has no room left."""
    monkeypatch.setattr("kafkascope.client.cluster.MAX_RESPONSE_MEMORY_BYTES", 30_000)
    groups = {"groups": [{"groupId": f"group-{n}", "protocolType": "consumer"} for n in range(50)]}

    async def listed(cluster: Cluster) -> str:
        try:
            return str(len((await cluster.call("ListGroups")).value["groups"]))
        except HeavyError:
            return "too much"

    async def ask(cluster: Cluster) -> list[str]:
        with cluster.together():
            calls = [listed(cluster) for _ in range(3)]
            responses = await asyncio.gather(*calls) if at_once else [await call for call in calls]
        return [*responses, await listed(cluster)]

    assert result_of(answering(ListGroups=groups), ask) == ["50", "too much", "too much", "50"]


def test_a_few_items_are_under_way_at_a_time_and_come_in_order() -> None:
    under_way = most = 0

    async def do(item: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return 2 * item

    assert run(map_limited(range(1_000), do)) == [2 * item for item in range(1_000)]
    assert most == MAX_CONCURRENT


def test_nodes_without_an_answer_hold_nothing_of_what_came_too_late() -> None:
    """Their errors are kept until all were asked: a gigabyte of half-read lists of nodes, at 20 MB each."""
    late: list[weakref.ref[set[int]]] = []

    async def half_read() -> None:
        response = {1}
        late.append(weakref.ref(response))
        await asyncio.Event().wait()

    async def ask(_: int) -> None:
        async with within(after(0.001), lambda: "no answer"):
            await half_read()

    async def work() -> None:
        responses = await map_fairly(Cluster(Settings((Address("127.0.0.1", 1),))), range(50), ask)
        assert [str(error) for error in responses] == ["no answer"] * 50
        assert not any(response() for response in late)

    run(work())


def test_nodes_that_are_gone_fill_no_account_of_an_observer() -> None:
    async def ask(cluster: Cluster) -> Any:
        return await Observer(cluster).poll()

    poll = result_of(answering(rows=100), ask)
    silent = [failure.detail for failure in poll.failures if failure.api == "ListGroups" and not failure.reached]
    assert len(silent) == MAX_FAILURES + 1
    assert silent[-1] == f"ListGroups: {99 - MAX_FAILURES} more calls got no response"


def test_versions_that_nobody_knows_are_listed_up_to_a_limit() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet({3: (12, 12), 60: (0, 2), 1_000: (0, 32_767), 16: (30_000, 32_767)})
        while True:
            value = peer.metadata() if request.api == "Metadata" else {"brokers": []}
            await peer.answer(request, value if request.api != "ApiVersions" else {"apiKeys": []})
            request = await peer.request()

    listed = result_of(handler, lambda cluster: probe(cluster, apis_only=frozenset()))
    for key in (16, 1_000):
        proofs = [proof for proof in listed.proofs if proof.key == key]
        assert len(proofs) == MAX_UNKNOWN_VERSIONS
        assert proofs[-1].why.endswith("the node serves up to v32767")


def test_apis_that_nobody_knows_are_kept_up_to_a_limit() -> None:
    async def handler(peer: Peer) -> None:
        await peer.greet(dict.fromkeys(range(30000), (0, 1)))

    assert len(result_of(handler, lambda cluster: cluster.versions())) == MAX_APIS


def test_a_cluster_without_brokers_is_refused_by_a_probe() -> None:
    with pytest.raises(RefusedError, match="has nothing of what was requested"):
        result_of(answering(rows=0), probe)


def test_a_cluster_without_brokers_has_no_groups() -> None:
    assert result_of(answering(rows=0), describe_groups).groups == ()


def test_a_response_as_large_as_kafkas_is_taken_after_the_login() -> None:
    groups = {"groups": [{"groupId": "g" * 30_000, "protocolType": "consumer"} for _ in range(40)]}
    answer = result_of(answering(ListGroups=groups), lambda cluster: cluster.call("ListGroups"))
    assert len(answer.response_bytes) > 2 * MAX_LOGIN_FRAME_BYTES
    assert answer.exact and len(answer.value["groups"]) == 40
