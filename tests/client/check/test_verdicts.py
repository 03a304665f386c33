"""Looks become verdicts by the rules of the findings; metrics of them are OpenMetrics that a strict parser reads."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from kafkascope.client.check.groups import check_group
from kafkascope.client.check.openmetrics import MetricFamilies, render
from kafkascope.client.check.quorum import RULES as QUORUM_RULES
from kafkascope.client.check.quorum import check_quorum
from kafkascope.client.check.run import CheckReport, render_metrics, render_unreachable
from kafkascope.client.check.share import RULES as SHARE_RULES
from kafkascope.client.check.share import check_share_group
from kafkascope.client.check.streams import RULES as STREAMS_RULES
from kafkascope.client.check.streams import check_streams_group
from kafkascope.client.check.verdicts import CheckLimits, CheckResult, Snapshot, summary_line
from kafkascope.client.describe.gaps import error_gap
from kafkascope.client.describe.group import ConsumerGroupView, GroupMember, GroupPartition
from kafkascope.client.describe.quorum import QuorumView, quorum_of
from kafkascope.client.describe.share_group import ShareGroupView, ShareMember, SharePartition
from kafkascope.client.describe.streams_values import (
    InternalTopic,
    StreamsGroupView,
    StreamsMember,
    StreamsProcess,
    Subtopology,
    Tasks,
)
from kafkascope.client.describe.streams_values import TopologyStatus as StreamsStatus
from kafkascope.client.describe.values import Setting, TopicAssignment
from kafkascope.health.findings.rules.table import RULES

DOCS = Path(__file__).parents[3] / "docs"
NOON = 1_794_744_000_000_000
SECOND = 1_000_000
ANY = CheckLimits()


def quorum(at: int, leader: int = 1, epoch: int = 5, **ends: tuple[int, int]) -> Snapshot[QuorumView]:
    """Nodes 1 to 3 vote; `ends` are (log end offset, ms since the last fetch) by node, as `n3`."""
    now = at // 1000
    voters = []
    for node in (1, 2, 3):
        end, age = ends.get(f"n{node}", (100, 0 if node == leader else 200))
        fetched = -1 if end < 0 else now - age
        caught_up = fetched if end >= 100 else fetched - 100
        voters.append(
            {
                "replicaId": node,
                "logEndOffset": end,
                "lastFetchTimestamp": fetched,
                "lastCaughtUpTimestamp": -1 if end < 0 else caught_up,
            }
        )
    partition = {
        "partitionIndex": 0,
        "errorCode": 0,
        "leaderId": leader,
        "leaderEpoch": epoch,
        "highWatermark": 100,
        "currentVoters": voters,
        "observers": [],
    }
    value = {"errorCode": 0, "topics": [{"topicName": "__cluster_metadata", "partitions": [partition]}]}
    return Snapshot(at, quorum_of(value, at_us=at))


def rules(checked: CheckResult) -> set[str]:
    return {problem.rule for problem in checked.problems}


def test_problems_of_one_incident_stay_together_and_the_cause_leads() -> None:
    """Two of three are behind: that the majority is at risk is critical, and no cause."""
    result = check_quorum([quorum(NOON, n2=(90, 5_000), n3=(95, 6_000))], ANY)
    assert [(problem.rule, problem.role, problem.severity) for problem in result.problems] == [
        ("quorum_follower_behind", "cause", "warning"),
        ("quorum_majority_at_risk", "majority at risk", "critical"),
        ("quorum_follower_behind", "cause", "warning"),
    ]
    assert {problem.cause for problem in result.problems} == {"node_frozen"}
    assert result.line.startswith("quorum: Voter node `2` didn't fetch ")


def test_every_rule_of_a_check_is_a_rule_of_the_findings_and_is_told() -> None:
    table = re.findall(r"^\| `([a-z-]+)` \| (.*)$", (DOCS / "check.md").read_text(encoding="utf-8"), re.MULTILINE)
    documented = {check: set(re.findall(r"`(\w+)`", rest)) for check, rest in table}
    for check, names in (("quorum", QUORUM_RULES), ("share-group", SHARE_RULES), ("streams-group", STREAMS_RULES)):
        assert documented[check] == set(names)
        assert RULES.keys() >= set(names)


def test_a_quorum_whose_followers_fetch_is_healthy() -> None:
    checked = check_quorum([quorum(NOON)], ANY)
    assert checked.healthy
    assert checked.line == "quorum: node 1 leads in epoch 5, 3 voters, lag at most 0 records"


def test_a_follower_that_does_not_fetch_is_behind_by_time() -> None:
    checked = check_quorum([quorum(NOON, n3=(88, 4100))], ANY)
    assert rules(checked) == {"quorum_follower_behind"}
    assert checked.line == "quorum: Voter node `3` didn't fetch for up to 4.1 s and was 12 records behind."


def test_half_of_the_voters_behind_is_critical() -> None:
    checked = check_quorum([quorum(NOON, n2=(88, 4100), n3=(88, 4100))], CheckLimits(fail_on="critical"))
    assert rules(checked) == {"quorum_majority_at_risk"}
    assert {note.rule for note in checked.notes} == {"quorum_follower_behind"}


def test_the_clusters_own_fetch_timeout_decides() -> None:
    look = quorum(NOON, n3=(88, 4100))
    patient = replace(look.view, fetch_timeout_ms=10_000)
    assert check_quorum([Snapshot(NOON, patient)], ANY).healthy
    strict = CheckLimits(thresholds={"quorum_follower_behind.ms": 4000})
    assert not check_quorum([Snapshot(NOON, patient)], strict).healthy


@pytest.mark.parametrize(("most", "healthy"), [(12, True), (11, False)])
def test_max_lag_is_what_is_still_healthy(most: int, healthy: bool) -> None:
    assert check_quorum([quorum(NOON, n3=(88, 300))], CheckLimits(max_lag=most)).healthy is healthy


@pytest.mark.parametrize(("most", "healthy"), [(400, True), (399, False)])
def test_max_lag_ms_is_what_is_still_healthy(most: int, healthy: bool) -> None:
    assert check_quorum([quorum(NOON, n3=(88, 300))], CheckLimits(max_lag_ms=most)).healthy is healthy


def test_an_unknown_lag_is_not_within_a_limit() -> None:
    look = quorum(NOON, n3=(-1, 0))
    assert check_quorum([look], ANY).healthy
    checked = check_quorum([look], CheckLimits(max_lag=1_000_000, max_lag_ms=1_000_000))
    assert [problem.summary for problem in checked.problems] == [
        "The lag of voter node 3 is unknown.",
        "The lag of voter node 3 in time is unknown.",
    ]


def test_a_replica_that_never_fetches_is_told_after_the_time_that_was_looked() -> None:
    looks = [quorum(NOON + at * SECOND, n3=(-1, 0)) for at in range(6)]
    assert check_quorum(looks, ANY).healthy
    assert rules(check_quorum(looks, CheckLimits(lasting_ms=5000))) == {"quorum_replica_never_fetched"}


def test_leadership_that_does_not_stay_is_a_problem() -> None:
    looks = [quorum(NOON + at * SECOND, leader=1 + at % 2, epoch=5 + at) for at in range(6)]
    assert check_quorum(looks[:2], ANY).healthy
    checked = check_quorum(looks, ANY)
    assert rules(checked) == {"quorum_frequent_elections"}
    assert (checked.figures["controllerId"], checked.figures["leaderEpoch"]) == (2, 10)


def test_voters_that_changed_are_a_note() -> None:
    before, after = quorum(NOON), quorum(NOON + SECOND)
    fewer = replace(after.view, voters=after.view.voters[:2])
    checked = check_quorum([before, Snapshot(after.at, fewer)], ANY)
    assert checked.healthy
    assert [note.rule for note in checked.notes] == ["quorum_voters_changed"]


def share(
    lag: int | None = 0, members: int = 1, start: int = 10, end: int = 10, name: str = "workers"
) -> ShareGroupView:
    everyone = tuple(
        ShareMember(f"m{n}", f"app-{n}", "/127.0.0.1", None, 3, ("orders",), (TopicAssignment("orders", (0,)),))
        for n in range(members)
    )
    partition = SharePartition("orders", 0, 1, start, end, lag, tuple(member.member_id for member in everyone))
    state = "Stable" if members else "Empty"
    return ShareGroupView(name, state, None, 3, 3, "simple", lag, everyone, (partition,), (), ())


def test_a_share_group_at_work_is_healthy() -> None:
    checked = check_share_group([Snapshot(NOON, share(lag=7))], ANY)
    assert checked.healthy
    assert checked.line == "share group workers: Stable, 1 member, lag 7"


def test_records_that_wait_for_nobody_are_a_problem_at_the_first_look() -> None:
    checked = check_share_group([Snapshot(NOON, share(lag=7, members=0))], ANY)
    assert rules(checked) == {"share_no_members"}
    assert check_share_group([Snapshot(NOON, share(lag=0, members=0))], ANY).healthy
    assert checked.line == "share group workers: Share group workers has no members and 7 records waiting."


def test_for_how_long_nobody_is_there_is_told_by_the_looks() -> None:
    """The marts tell it by the minute, and two looks a second apart may lie in two of them."""
    views = [share(lag=7), share(lag=7, members=0), share(lag=7, members=0)]
    looks = [Snapshot(NOON + (at - 2) * SECOND, view) for at, view in enumerate(views)]
    checked = check_share_group(looks, CheckLimits(lasting_ms=2000))
    assert "Share group workers has no members for 1 s and 7 records waiting." in checked.line


def test_a_partition_stands_still_while_it_is_looked_at() -> None:
    looks = [Snapshot(NOON + at * SECOND, share(lag=lag, end=10 + lag)) for at, lag in enumerate((5, 5, 9))]
    checked = check_share_group(looks, CheckLimits(lasting_ms=2000))
    assert rules(checked) == {"share_standing_still"}
    assert checked.problems[0].severity == "critical"
    assert "finished no record for 2 s while the group's lag grew by 4 records" in checked.line


def test_a_partition_that_moved_once_does_not_stand_still() -> None:
    looks = [
        Snapshot(NOON, share(lag=5, start=10, end=15)),
        Snapshot(NOON + SECOND, share(lag=4, start=11, end=15)),
        Snapshot(NOON + 2 * SECOND, share(lag=4, start=11, end=15)),
    ]
    assert check_share_group(looks, CheckLimits(lasting_ms=2000)).healthy


def test_limits_of_groups_are_kept() -> None:
    look = [Snapshot(NOON, share(lag=7))]
    assert rules(check_share_group(look, CheckLimits(max_lag=6))) == {"max_lag"}
    assert rules(check_share_group(look, CheckLimits(min_members=2))) == {"min_members"}
    unknown = [Snapshot(NOON, share(lag=None))]
    assert check_share_group(unknown, ANY).healthy
    assert rules(check_share_group(unknown, CheckLimits(max_lag=10**9))) == {"max_lag"}


def streams(*statuses: str, held: tuple[str, ...] = ("0_0", "0_1"), target: tuple[str, ...] | None = None) -> Any:
    target_tasks = Tasks(held if target is None else target, (), ())
    member = StreamsMember(
        "m1", None, "app-1", "/127.0.0.1", None, 4, 1, False, Tasks(held, (), ()), target_tasks, (), ()
    )  # fmt: skip
    details = tuple(StreamsStatus(name, "missing topics: words") for name in statuses)
    process = StreamsProcess("p1", None, (member,))
    return StreamsGroupView(
        "counters", "NotReady" if details else "Stable", None, 4, 4, None, 1, None, 3, (), (process,), (), details,
        (), (), (),
    )  # fmt: skip


def test_a_streams_group_that_runs_is_healthy() -> None:
    checked = check_streams_group([Snapshot(NOON, streams())], ANY)
    assert checked.healthy
    assert checked.line == "streams group counters: Stable, 1 member, 2 active tasks, lag 3"


def test_missing_source_topics_are_critical_at_once() -> None:
    checked = check_streams_group([Snapshot(NOON, streams("MISSING_SOURCE_TOPICS"))], CheckLimits(fail_on="critical"))
    assert rules(checked) == {"streams_missing_source_topics"}
    assert "0 ms" not in checked.line


def test_missing_internal_topics_are_a_problem_when_they_stay_missing() -> None:
    looks = [Snapshot(NOON + at * SECOND, streams("MISSING_INTERNAL_TOPICS")) for at in range(4)]
    assert check_streams_group(looks[:1], ANY).healthy
    assert rules(check_streams_group(looks, CheckLimits(lasting_ms=3000))) == {"streams_missing_internal_topics"}
    assert check_streams_group([*looks, Snapshot(NOON + 4 * SECOND, streams())], CheckLimits(lasting_ms=4000)).healthy
    looks[1] = Snapshot(NOON + SECOND, streams())
    assert check_streams_group(looks, CheckLimits(lasting_ms=3000)).healthy


def test_a_task_that_nobody_holds_is_a_problem_when_it_stays_so() -> None:
    looks = [
        Snapshot(NOON + at * SECOND, streams(held=("0_0",) if at else ("0_0", "0_1"), target=("0_0", "0_1")))
        for at in range(6)
    ]
    assert "streams_task_unheld" in rules(check_streams_group(looks, CheckLimits(lasting_ms=4000)))
    assert check_streams_group(looks[:1], ANY).healthy


def held(at: int, **members: tuple[str, ...]) -> Snapshot[StreamsGroupView]:
    """Active tasks by member, after so many seconds."""
    everyone = tuple(
        StreamsMember(
            name, None, name, "/127.0.0.1", None, 4, 1, False, Tasks(tasks, (), ()), Tasks(tasks, (), ()), (), ()
        )
        for name, tasks in members.items()
    )
    return Snapshot(NOON + at * SECOND, replace(streams(), processes=(StreamsProcess("p1", None, everyone),)))


def test_a_task_that_stood_still_between_two_members_is_told() -> None:
    looks = [held(0, a=("0_0",), b=("0_1",)), held(20, a=("0_0",)), held(40, a=("0_0", "0_1"))]
    assert rules(check_streams_group(looks, CheckLimits(lasting_ms=40_000))) == {"streams_long_pause"}


def test_standbys_that_are_configured_and_missing_are_told() -> None:
    part = Subtopology("0", ("words",), (), (), (InternalTopic("counts", 1, 1),), ())
    setting = Setting("streams.num.standby.replicas", "1", "DYNAMIC_GROUP_CONFIG")
    looks = [
        Snapshot(snapshot.at, replace(snapshot.view, subtopologies=(part,), settings=(setting,)))
        for snapshot in (held(60 * minute, a=("0_0",)) for minute in range(6))
    ]
    assert rules(check_streams_group(looks, CheckLimits(lasting_ms=300_000))) == {"streams_standbys_missing"}


def consumers(lag: int, members: int) -> ConsumerGroupView:
    everyone = tuple(
        GroupMember(f"m{n}", None, "app", "/127.0.0.1", None, "consumer", 1, ("orders",), None, (), None)
        for n in range(members)
    )
    partition = GroupPartition("orders", 0, 5, 5 + lag, lag, None)
    return ConsumerGroupView(
        "readers", "consumer", "Stable" if members else "Empty", None, 1, 1, "consumer", "range", lag, everyone,
        (partition,), (),
    )  # fmt: skip


def test_a_consumer_group_is_checked_by_its_limits_and_for_being_empty() -> None:
    assert check_group([Snapshot(NOON, consumers(9, 1))], ANY).healthy
    assert rules(check_group([Snapshot(NOON, consumers(9, 0))], ANY)) == {"group_no_members"}
    assert check_group([Snapshot(NOON, consumers(0, 0))], ANY).healthy
    # nothing waits, and what was committed is gone
    assert rules(check_group([Snapshot(NOON, consumers(-1, 0))], ANY)) == {"group_past_end"}
    assert rules(check_group([Snapshot(NOON, consumers(9, 1))], CheckLimits(max_lag=8))) == {"max_lag"}


def test_several_groups_are_one_line() -> None:
    well = check_share_group([Snapshot(NOON, share(lag=7))], ANY)
    ill = [check_share_group([Snapshot(NOON, share(lag=7, members=0, name=f"g{n}"))], ANY) for n in range(5)]
    assert summary_line([well], "share groups") == "healthy: share group workers: Stable, 1 member, lag 7"
    assert summary_line([well, well], "share groups") == "healthy: 2 share groups"
    assert summary_line([], "share groups") == "healthy: no share groups"
    line = summary_line([well, *ill], "share groups")
    assert line.startswith("not healthy: 5 of 6 share groups. share group g0: Share group g0 has no members")
    assert line.endswith(" And 2 more.")
    assert "\n" not in line


def report() -> CheckReport:
    looks: dict[tuple[str, str], list[Snapshot[Any]]] = {
        ("quorum", ""): [quorum(NOON, n3=(-1, 0))],
        ("share-group", "workers"): [Snapshot(NOON, share(lag=7, members=0))],
        ("streams-group", "counters"): [Snapshot(NOON, streams("MISSING_SOURCE_TOPICS"))],
        ("group", "readers"): [Snapshot(NOON, consumers(9, 1))],
    }
    checked = [
        check_quorum(looks["quorum", ""], ANY),
        check_share_group(looks["share-group", "workers"], ANY),
        check_streams_group(looks["streams-group", "counters"], ANY),
        check_group(looks["group", "readers"], ANY),
    ]
    return CheckReport(checked, looks, (error_gap("groups", "ListGroups", 31),), 0.25)


def parsed(text: str) -> list[Any]:
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parsed(text)
        for sample in family.samples
    }


def test_metrics_are_openmetrics_with_units_and_help() -> None:
    text = render_metrics(report())
    metrics = samples(text)
    assert text.endswith("# EOF\n")
    assert "# UNIT kafkascope_quorum_replica_lag_records records\n" in text
    assert metrics["kafkascope_up", ()] == 1
    assert metrics["kafkascope_group_lag_records", (("group", "workers"), ("type", "share"))] == 7
    assert metrics["kafkascope_check_healthy", (("check", "share-group"), ("subject", "share group workers"))] == 0
    assert metrics["kafkascope_check_healthy", (("check", "group"), ("subject", "group readers"))] == 1
    problems = [labels for name, labels in metrics if name == "kafkascope_check_problem"]
    assert any(("rule", "share_no_members") in labels for labels in problems)
    assert metrics["kafkascope_check_gap", (("api", "ListGroups"), ("error", "CLUSTER_AUTHORIZATION_FAILED"))] == 1
    for family in parsed(text):
        assert family.documentation


def test_what_is_unknown_has_no_sample() -> None:
    metrics = samples(render_metrics(report()))
    lags = {dict(labels)["node"] for name, labels in metrics if name == "kafkascope_quorum_replica_lag_records"}
    assert lags == {"1", "2"}


def test_a_cluster_that_is_gone_is_up_0() -> None:
    assert samples(render_unreachable()) == {("kafkascope_up", ()): 0}


@pytest.mark.parametrize("name", ['qu"ote', "back\\slash", "line\nfeed", "ünïcode", "\\n", 'a"\\\n"', "lone \ud800"])
def test_labels_come_back_as_they_were(name: str) -> None:
    families = MetricFamilies()
    families.add("kafkascope_group_members", f"Of {name}", 1, {"group": name})
    (family,) = parsed(render(families.families()))
    assert family.samples[0].labels["group"] == name.encode(errors="replace").decode()


def test_samples_of_a_family_stand_together_however_they_were_added() -> None:
    families = MetricFamilies()
    for group in ("a", "b"):
        families.add("kafkascope_group_members", "Members.", 1, {"group": group})
        families.add("kafkascope_group_lag_records", "Lag.", 2, {"group": group}, "records")
    assert [len(family.samples) for family in parsed(render(families.families()))] == [2, 2]
