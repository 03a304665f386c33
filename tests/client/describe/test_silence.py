"""A node that says nothing, a partition without a leader, an answer with less in it than there is: the rest is shown,
and what is missing is a gap."""

import asyncio
import time
from typing import Any

import pytest

from kafkascope.cli.describe.run_view import describe_several
from kafkascope.client import Cluster
from kafkascope.client.check.run import GROUP, QUORUM, SHARE, CheckReport, check_cluster, render_metrics
from kafkascope.client.check.verdicts import CheckLimits, summary_line
from kafkascope.client.describe.cluster import ClusterView, describe_cluster
from kafkascope.client.describe.configs import Resource, describe_configs
from kafkascope.client.describe.gaps import LEFT_OUT, NO_ANSWER
from kafkascope.client.describe.group import describe_group
from kafkascope.client.describe.groups import describe_groups
from kafkascope.client.describe.topic import describe_topic
from kafkascope.client.describe.transactions import TransactionList, describe_transactions
from kafkascope.errors import ReachError, RefusedError
from tests.client.describe.two_nodes import LEADERS, Two, with_two

NOT_COORDINATOR, DENIED = 16, 53


def test_a_leader_that_does_not_answer_leaves_holes_in_the_topic_alone() -> None:
    view = with_two(Two(silent={(2, "ListOffsets")}), lambda cluster: describe_topic(cluster, "orders"))
    assert [(partition.partition, partition.start_offset, partition.end_offset) for partition in view.partitions] == [
        (0, 10, 10),
        (1, None, None),
    ]
    lacks = [gap for gap in view.gaps if gap.api == "ListOffsets"]
    assert [(lack.what, lack.error, lack.code) for lack in lacks] == [("offsets of orders-1", NO_ANSWER, None)]


def test_a_leader_that_does_not_answer_leaves_holes_in_the_group_alone() -> None:
    view = with_two(Two(silent={(2, "ListOffsets")}), lambda cluster: describe_group(cluster, "g"))
    assert [(partition.partition, partition.lag) for partition in view.partitions] == [(0, 5), (1, None)]
    assert view.lag is None and [gap.error for gap in view.gaps] == [NO_ANSWER]


def test_a_controller_that_does_not_answer_leaves_the_topic() -> None:
    view = with_two(Two(silent={(1, "ListPartitionReassignments")}), lambda c: describe_topic(c, "orders"))
    assert [partition.end_offset for partition in view.partitions] == [10, 10]
    assert ("replicas being moved", NO_ANSWER) in [(gap.what, gap.error) for gap in view.gaps]


def test_committed_offsets_that_do_not_come_leave_the_members() -> None:
    view = with_two(Two(silent={(1, "OffsetFetch")}), lambda cluster: describe_group(cluster, "g"))
    assert (view.state, view.lag, [gap.what for gap in view.gaps]) == ("Empty", None, ["committed offsets"])


def test_a_group_whose_coordinator_does_not_answer_does_not_hide_another() -> None:
    silent = Two(silent={(2, "ConsumerGroupDescribe")})

    async def ask(cluster: Cluster) -> Any:
        return await describe_several(("near", "far", "near"), lambda name: describe_group(cluster, name))

    groups, refused = with_two(silent, ask)
    assert [group.group_id for group in groups] == ["near"]
    assert len(refused) == 1 and refused[0].startswith("far: ConsumerGroupDescribe")
    with pytest.raises(ReachError):
        with_two(silent, lambda cluster: describe_several(("far",), lambda name: describe_group(cluster, name)))


def test_a_group_whose_coordinator_does_not_answer_is_not_healthy_and_does_not_hide_another() -> None:
    silent = Two(silent={(2, "ConsumerGroupDescribe")})
    silent.listed = [{"groupId": name, "protocolType": ""} for name in ("far", "near")]
    report = with_two(
        silent, lambda cluster: check_cluster(cluster, (GROUP,), (), CheckLimits(max_lag=100, fail_on="critical"))
    )
    assert [result.subject for result in report.results] == ["group near", "group far"]
    assert [note.rule for note in report.results[1].notes] == ["not_described"]
    with pytest.raises(ReachError):
        with_two(silent, lambda cluster: check_cluster(cluster, (GROUP,), ("far",), CheckLimits()))


def test_a_controller_that_does_not_answer_holds_up_no_group() -> None:
    """Brokers pass DescribeQuorum on to it, and answers of one connection come in order."""
    silent = Two(silent={(1, "DescribeQuorum"), (2, "DescribeQuorum")})
    silent.committed = {0: 10}
    silent.listed = [{"groupId": name, "protocolType": ""} for name in ("far", "near")]
    report = with_two(silent, lambda cluster: check_cluster(cluster, (QUORUM, GROUP), (), CheckLimits()))
    assert {result.subject: result.healthy for result in report.results} == {
        "group near": True,
        "group far": True,
        "quorum": False,
    }


class Shared(Two):
    def share_group_describe(self, _: int, body: dict[str, Any], __: int) -> dict[str, Any]:
        return {"groups": [{"groupId": group_id, "groupState": "Empty"} for group_id in body["groupIds"]]}


def test_share_state_that_does_not_come_holds_up_no_other_group() -> None:
    """The group's coordinator asks that of the share state, which may be another node."""
    silent = Shared(silent={(1, "DescribeShareGroupOffsets")})
    silent.committed = {0: 10}
    silent.listed = [{"groupId": kind, "protocolType": "", "groupType": kind} for kind in ("share", "classic")]
    report = with_two(silent, lambda cluster: check_cluster(cluster, (SHARE, GROUP), (), CheckLimits()))
    assert {result.subject: [lack.api for lack in result.gaps] for result in report.results} == {
        "group classic": [],
        "share group share": ["DescribeShareGroupOffsets"],
    }


def test_a_broker_that_does_not_tell_its_configs_does_not_hide_another() -> None:
    silent = Two(silent={(2, "DescribeConfigs")})
    resources = with_two(silent, lambda cluster: describe_configs(cluster, ()))
    assert [[lack.error for lack in resource.gaps] for resource in resources] == [[], [NO_ANSWER]]
    with pytest.raises(ReachError):
        with_two(silent, lambda cluster: describe_configs(cluster, [Resource("broker", "2")]))


def test_a_partition_without_a_leader_is_a_gap_at_once() -> None:
    async def timed(cluster: Cluster) -> Any:
        began = time.monotonic()
        view = await describe_group(cluster, "g")
        return view, time.monotonic() - began

    view, seconds = with_two(Two(leaders={0: 1, 1: -1}), timed, timeout=20.0)
    assert seconds < 5
    assert [(partition.partition, partition.lag) for partition in view.partitions] == [(0, 5), (1, None)]
    assert [(gap.what, gap.error, gap.detail) for gap in view.gaps] == [
        ("offsets of orders-1", "LEADER_NOT_AVAILABLE", "it has no leader")
    ]


def test_a_partition_that_has_a_leader_a_moment_later_is_no_gap() -> None:
    class Electing(Two):
        asked = 0

        def metadata(self, node: int, body: dict[str, Any], version: int) -> dict[str, Any] | None:
            self.asked += bool(body["topics"])
            self.leaders = LEADERS if self.asked > 1 else {0: 1, 1: -1}
            return super().metadata(node, body, version)

    view = with_two(Electing(), lambda cluster: describe_group(cluster, "g"), timeout=20.0)
    assert (view.lag, view.gaps) == (10, ())


def test_an_offset_past_the_end_hides_no_lag_and_is_said() -> None:
    script = Two()
    script.committed = {0: 1_000_000, 1: 3}
    view = with_two(script, lambda cluster: describe_group(cluster, "g"))
    assert (view.lag, [partition.lag for partition in view.partitions], view.past_end) == (
        7,
        [-999_990, 7],
        ("orders-0",),
    )
    script.listed = [{"groupId": "g", "protocolType": ""}]
    (checked,) = with_two(script, lambda cluster: check_cluster(cluster, (GROUP,), (), CheckLimits(max_lag=0))).results
    assert {problem.rule for problem in checked.problems} == {"max_lag", "group_past_end", "group_no_members"}
    assert "Group g has committed past the end of orders-0." in checked.line


def test_the_group_with_the_empty_id_is_a_classic_one() -> None:
    view = with_two(Two(), lambda cluster: describe_group(cluster, ""))
    assert (view.group_id, view.type, view.lag) == ("", "classic", 10)


@pytest.mark.parametrize("kinds", [(SHARE,), (GROUP,)])
def test_a_list_that_may_lack_groups_is_not_healthy(kinds: tuple[str, ...]) -> None:
    script = Two()
    script.operations = 0

    async def ask(cluster: Cluster) -> tuple[Any, CheckReport, CheckReport]:
        groups = await describe_groups(cluster)
        return (
            groups,
            await check_cluster(cluster, kinds, (), CheckLimits()),
            await check_cluster(cluster, (GROUP,), ("g",), CheckLimits()),
        )

    groups, report, named = with_two(script, ask)
    assert (groups.complete, groups.gaps) == (False, ())
    assert [(lack.error, lack.code, lack.needs) for lack in groups.lacks] == [(LEFT_OUT, None, "Describe on Cluster")]
    assert not report.healthy and report.gaps == groups.lacks
    assert summary_line(report.results, "groups") == (
        "not healthy: list of groups: Groups may be missing from it: seeing all needs the ACL Describe on Cluster."
    )
    metrics = render_metrics(report)
    assert 'kafkascope_check_gap{api="ListGroups",error="LEFT_OUT"} 1' in metrics
    assert f'kafkascope_check_healthy{{check="{kinds[0]}",subject="list of groups"}} 0' in metrics
    # who is named is seen, or refused
    assert named.gaps == () and [result.subject for result in named.results] == ["group g"]


def test_groups_that_are_seen_are_told_beside_a_list_that_may_lack_some() -> None:
    script = Two()
    script.operations, script.committed = 0, {0: 10}
    script.listed = [{"groupId": "g", "protocolType": ""}]
    report = with_two(script, lambda cluster: check_cluster(cluster, (GROUP,), (), CheckLimits()))
    line = summary_line(report.results, "groups")
    assert line.endswith("Describe on Cluster. Otherwise healthy: group g: Empty, 0 members, lag 0")


def test_a_list_that_is_whole_and_empty_is_healthy() -> None:
    report = with_two(Two(), lambda cluster: check_cluster(cluster, (SHARE,), (), CheckLimits()))
    assert report.healthy and summary_line(report.results, "share groups") == "healthy: no share groups"


def cluster_view(silent: set[tuple[int, str]]) -> ClusterView:
    return with_two(Two(silent=silent), describe_cluster)


def test_a_quorum_that_does_not_answer_is_no_answer_and_leaves_roles_open() -> None:
    view = cluster_view({(1, "DescribeQuorum"), (2, "DescribeQuorum")})
    (lack,) = [gap for gap in view.gaps if gap.api == "DescribeQuorum"]
    assert (lack.what, lack.error, lack.code) == ("the controller", NO_ANSWER, None)
    assert not view.roles_known and {node.roles for node in view.nodes} == {("broker",)}


class Transactional(Two):
    """Node 2 coordinates every id: it knows `here`, and `secret`, which may not be described."""

    def list_transactions(self, node: int, body: dict[str, Any], _: int) -> dict[str, Any]:
        row = {"transactionalId": "here", "producerId": 1, "transactionState": "Empty"}
        state_filters = body["stateFilters"]
        return {"transactionStates": [row] if node == 2 and (not state_filters or "Empty" in state_filters) else []}

    def describe_transactions(self, node: int, body: dict[str, Any], _: int) -> dict[str, Any]:
        codes = {"here": 0, "secret": DENIED}
        states = [
            {
                "transactionalId": transactional_id,
                "errorCode": codes.get(transactional_id, 105) if node == 2 else NOT_COORDINATOR,
            }
            for transactional_id in body["transactionalIds"]
        ]
        return {"transactionStates": states}


def transactions(*ids: str, states: tuple[str, ...] = ()) -> TransactionList:
    return with_two(Transactional(), lambda cluster: describe_transactions(cluster, ids, states))


def test_a_transactional_id_that_nobody_knows_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"NOT_FOUND \(105\); there is no transactional id nosuch"):
        transactions("nosuch")
    view = transactions("nosuch", "here")
    assert [transaction.transactional_id for transaction in view.transactions] == ["here"]
    assert len(view.refused) == 1 and "nosuch" in view.refused[0]


def test_a_transactional_id_that_may_not_be_described_names_the_acl() -> None:
    with pytest.raises(RefusedError, match="it needs Describe on TransactionalId secret"):
        transactions("secret")


def test_a_transaction_in_another_state_is_not_one_that_nobody_knows() -> None:
    assert transactions("here", states=("Ongoing",)) == TransactionList((), (), ())
    assert transactions().refused == ()


def test_nothing_is_left_running_when_all_nodes_are_silent() -> None:
    script = Two(silent={(1, "ListGroups"), (2, "ListGroups"), (1, "DescribeQuorum"), (2, "DescribeQuorum")})

    async def ask(cluster: Cluster) -> None:
        with pytest.raises(ReachError):
            await check_cluster(cluster, (QUORUM, GROUP), (), CheckLimits())
        await asyncio.sleep(0)

    with_two(script, ask)
