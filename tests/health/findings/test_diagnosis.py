"""Findings as a whole: merged, ordered, bounded, the same in any order of rows; thresholds, needs and the verdict."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from kafkascope.errors import UsageError
from kafkascope.health.findings.diagnosis import Finding, finding_order, findings_of, verdict_of
from kafkascope.health.findings.needs import NEEDS, Where, needs_of
from kafkascope.health.findings.rules.table import RULES
from tests.health.findings_cases import CASES
from tests.health.findings_rows import MINUTE, SECOND, T0, row
from tests.health.trouble_rows import Marts, lasting, refused, warmup


def expired(at: int, **values: Any) -> dict[str, Any]:
    content = {"outcome": "lock_expired", "acquired_at": at, "outcome_at": at + 30 * SECOND, **values}
    return row("share_deliveries", **content)


def all_cases() -> Marts:
    marts: Marts = {}
    for name, (shown, _, _, nearly) in CASES.items():
        for kind, rows_of_kind in (("shown", shown), ("nearly", nearly)):
            for mart, rows in rows_of_kind.items():
                marts.setdefault(mart, []).extend(_of(row, f"{name}-{kind}") for row in rows)
    return marts


def _of(row: dict[str, Any], case: str) -> dict[str, Any]:
    """Each case has a group and an API of its own."""
    named = {**row, "group_id": case} if "group_id" in row else dict(row)
    if named.get("api") == "Metadata":
        named["api"] = case
    return named


# Thresholds that count together with another one need more than their rule's case.
SHOWN = {
    "streams_warmup_stuck.dropped": warmup(5, "revoked", times=3),
    "api_error_rate.critical_share": refused("Metadata", "UNKNOWN_SERVER_ERROR", 600),
    "api_error_rate.critical_errors": refused("Metadata", "UNKNOWN_SERVER_ERROR", 600),
    "api_passing_errors.warning_minutes": lasting("NOT_COORDINATOR"),
    "api_passing_errors.warning_share": lasting("NOT_COORDINATOR"),
}


def test_close_episodes_of_a_subject_are_one_and_distant_ones_two() -> None:
    near = [expired(T0), expired(T0 + 4 * MINUTE, acquire_exchange_id="a2")]
    (finding,) = findings_of({"share_deliveries": near}, {})
    assert (finding.from_at, finding.to_at) == (T0, T0 + 4 * MINUTE + 30 * SECOND)
    assert finding.figures["records"] == 2 and "2 records" in finding.summary and finding.evidence == ("a1", "o1", "a2")
    first, second = findings_of({"share_deliveries": [expired(T0), expired(T0 + 20 * MINUTE)]}, {})
    assert first.to_at < second.from_at and first.figures["records"] == 1


def test_what_counts_by_the_minute_ends_with_its_recording() -> None:
    minute = CASES["share_near_limit"][0]
    captures = [
        row("captures", first_at=T0 + start, last_at=T0 + end)
        for start, end in ((10 * SECOND, 38 * SECOND), (60 * MINUTE, 61 * MINUTE))
    ]
    (finding,) = findings_of({**minute, "captures": captures}, {})
    assert (finding.from_at, finding.to_at) == (T0, T0 + 38 * SECOND)
    (elsewhere,) = findings_of({**minute, "captures": captures[1:]}, {})
    assert elsewhere.to_at == T0 + MINUTE


def test_clusters_of_one_lake_stay_apart() -> None:
    """Node 2 of one is not node 2 of the other, and two elections each are not four."""
    names = ("Ab-1", "Ab-2")
    behind = [row("quorum_replicas", cluster_id=name, fetch_age_ms=5_000) for name in names]
    leading = [row("quorum_replicas", cluster_id=name, replica_id=1, role="leader") for name in names]
    others = [row("quorum_replicas", cluster_id="Ab-1", replica_id=number) for number in (3, 4)]
    elected = [
        row("quorum_events", cluster_id=name, at=T0 + number * MINUTE, cause="lost", previous_leader_id=1)
        for name in names
        for number in range(2)
    ]
    findings_made = list(findings_of({"quorum_replicas": [*behind, *leading, *others], "quorum_events": elected}, {}))
    assert {(finding.rule, finding.subject) for finding in findings_made} == {
        ("quorum_follower_behind", "node 2 of cluster Ab-1"),
        ("quorum_follower_behind", "node 2 of cluster Ab-2"),
        # One of two voters is half of them; one of four is not.
        ("quorum_majority_at_risk", "quorum of cluster Ab-2"),
        ("quorum_leader_lost", "quorum of cluster Ab-1"),
        ("quorum_leader_lost", "quorum of cluster Ab-2"),
    }
    assert all("cluster `Ab-" in finding.summary for finding in findings_made)


def test_cluster_without_an_id_is_known_by_its_address() -> None:
    rows = [row("quorum_replicas", cluster_id="10.0.0.1:9093", fetch_age_ms=5_000)]
    subjects = {finding.subject for finding in findings_of({"quorum_replicas": rows}, {})}
    assert subjects == {"quorum at 10.0.0.1:9093", "node 2 at 10.0.0.1:9093"}


def test_other_subjects_and_other_rules_stay_apart() -> None:
    rows = [expired(T0), expired(T0, member_id="m2"), expired(T0, outcome="disconnected")]
    kinds = {(finding.rule, finding.subject) for finding in findings_of({"share_deliveries": rows}, {})}
    assert kinds == {
        ("share_lock_expired", "g/m1"),
        ("share_lock_expired", "g/m2"),
        ("share_member_disconnected", "g/m1"),
    }


def test_a_crowd_of_one_group_is_told_as_one() -> None:
    rows = [expired(T0, member_id=f"m{index}") for index in range(11)]
    (finding,) = findings_of({"share_deliveries": rows}, {})
    assert (finding.subject_kind, finding.subject, finding.figures["subjects"]) == ("share_group", "g", 11)
    assert finding.summary.startswith("11 members of share group `g` held 11 records")
    assert len(list(findings_of({"share_deliveries": rows[1:]}, {}))) == 10


def test_expired_records_are_followed_to_whom_they_went() -> None:
    rows = [
        expired(T0, first_offset=0, last_offset=9),
        row("share_deliveries", last_offset=5, delivery_count=2, client_id="c2"),
        row("share_deliveries", first_offset=6, last_offset=30, delivery_count=2, client_id="c3"),
        row("share_deliveries", last_offset=9, delivery_count=3, client_id="c4"),
        row("share_deliveries", last_offset=9, delivery_count=2, client_id="c5", partition=1),
    ]
    (finding,) = findings_of({"share_deliveries": selected(rows, NEEDS["share_deliveries"].where)}, {})
    assert finding.figures["redelivered_to"] == "c2 6, c3 4"
    assert finding.summary.endswith("redelivered to `c2` ×6, `c3` ×4.")


def test_records_that_came_again_with_others_count_alone() -> None:
    rows = [
        expired(T0, first_offset=10, last_offset=19),
        row("share_deliveries", first_offset=5, last_offset=12, delivery_count=2, client_id="c2"),
    ]
    (finding,) = findings_of({"share_deliveries": rows}, {})
    assert finding.figures["redelivered_to"] == "c2 3"


def test_the_worst_come_first_then_the_earliest() -> None:
    findings_made = list(findings_of(all_cases(), {}))
    assert findings_made == sorted(findings_made, key=finding_order)
    assert [finding.severity for finding in findings_made] == sorted(
        (finding.severity for finding in findings_made), key=["critical", "warning", "info"].index
    )
    assert {finding.rule for finding in findings_made} == set(RULES)


@pytest.mark.parametrize("seed", range(5))
def test_findings_do_not_depend_on_the_order_of_rows(seed: int) -> None:
    marts = all_cases()
    marts["share_deliveries"] += [expired(T0 + index * SECOND, acquire_exchange_id=f"a{index}") for index in range(400)]
    expected = list(findings_of(marts, {}))
    for rows in marts.values():
        random.Random(seed).shuffle(rows)
    assert list(findings_of(marts, {})) == expected


def test_each_mart_is_read_once_and_as_it_comes() -> None:
    class Once:
        def __init__(self, rows: list[dict[str, Any]]) -> None:
            self.rows, self.reads = rows, 0

        def __iter__(self) -> Iterator[dict[str, Any]]:
            self.reads += 1
            yield from self.rows

    marts = {name: Once(rows) for name, rows in all_cases().items()}
    assert list(findings_of(marts, {})) == list(findings_of(all_cases(), {}))
    assert {once.reads for once in marts.values()} == {1}


def test_rows_are_not_kept() -> None:
    class Row(dict[str, Any]):
        alive = most = 0

        def __init__(self, values: dict[str, Any]) -> None:
            super().__init__(values)
            Row.alive += 1
            Row.most = max(Row.most, Row.alive)

        def __del__(self) -> None:
            Row.alive -= 1

    def rows(content: list[dict[str, Any]]) -> Iterator[Row]:
        for value in content * 50:
            yield Row(value)

    list(findings_of({mart: rows(mart_rows) for mart, mart_rows in all_cases().items()}, {}))
    assert Row.most <= 3


def test_evidence_is_bounded_and_the_earliest() -> None:
    rows = [expired(T0 + index, acquire_exchange_id=f"a{index:03}", outcome_exchange_id=None) for index in range(300)]
    (finding,) = findings_of({"share_deliveries": rows}, {})
    assert finding.evidence == tuple(f"a{index:03}" for index in range(20))


@pytest.mark.parametrize(
    "full_name", [f"{rule.name}.{threshold.name}" for rule in RULES.values() for threshold in rule.thresholds]
)
def test_every_threshold_can_be_set_and_tells(full_name: str) -> None:
    name = full_name.partition(".")[0]
    shown = SHOWN.get(full_name, CASES[name][0])
    figures = [
        (finding.rule, finding.severity, finding.summary)
        for value in (0, 1e12)
        for finding in findings_of(shown, {full_name: value})
        if finding.rule == name
    ]
    assert len(set(figures)) == len(figures) != 0, "it makes no difference"


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"share_lock_expired.record": 1.0}, "unknown threshold share_lock_expired.record; did you mean"),
        ({"nothing": 1.0}, "unknown threshold nothing"),
        ({"share_lock_expired.records": -1.0}, "must be 0 or more"),
        ({"share_lock_expired.records": float("nan")}, "must be 0 or more"),
    ],
)
def test_a_threshold_that_is_not_there_is_refused(thresholds: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(findings_of({}, thresholds))


def test_group_names_in_advice_are_safe_in_a_shell() -> None:
    (finding,) = findings_of({"share_deliveries": [expired(T0, group_id="a b; rm")]}, {})
    assert "--entity-name 'a b; rm' " in finding.advice


def test_commands_of_advice_name_what_is_recorded() -> None:
    archived = expired(T0, outcome="released", archived=True, delivery_count=5, first_offset=3, last_offset=3)
    brokers = [
        {"broker_address": f"{host}:9092", "cluster_id": "Ab-1", "node_id": node, "calls": calls}
        # Node 1 is the leader that was lost.
        for host, node, calls in (("a", 3, 5), ("b", 2, 9), ("c", 1, 20))
    ]
    groups = [{"group_id": "g", "coordinator": "a:9092"}]
    marts = {"share_deliveries": [archived], "brokers": brokers, "groups": groups}
    (finding,) = findings_of(marts, {})
    read = "kafka-console-consumer.sh --bootstrap-server a:9092 --topic orders --partition 0 --offset 3"
    assert f"`{read} --max-messages 1`" in finding.advice
    (lost,) = findings_of({**CASES["quorum_leader_lost"][0], "brokers": brokers}, {})
    assert "`kafkascope describe quorum b:9092`" in lost.advice
    (elsewhere,) = findings_of(
        {**CASES["quorum_leader_lost"][0], "brokers": [*brokers, {**brokers[0], "cluster_id": "Ab-2"}]}, {}
    )
    assert "`kafkascope describe quorum BROKER`" in elsewhere.advice


def test_every_command_of_advice_is_in_backticks() -> None:
    for rule in RULES.values():
        outside = "".join(rule.advice.split("`")[::2])
        assert rule.advice.count("`") % 2 == 0 and ".sh " not in outside and " --" not in outside, rule.name


def test_needs_are_columns_of_the_lake() -> None:
    pytest.importorskip("pyarrow")
    from kafkascope.lake.marts import MARTS
    from kafkascope.lake.tables import table_named

    for mart, need in NEEDS.items():
        schema = (MARTS[mart] if mart in MARTS else table_named(mart)).schema
        assert set(need.columns) <= set(schema.names), mart
    # What commands of advice name.
    assert {mart for rule in RULES.values() for mart in rule.marts} | {"brokers", "groups"} == set(NEEDS)


def test_findings_are_rows_of_their_table() -> None:
    pytest.importorskip("pyarrow")
    from kafkascope.lake.marts import MARTS

    assert [*Finding.__dataclass_fields__] == MARTS["findings"].schema.names


@pytest.mark.parametrize(
    "thresholds",
    [
        {},
        {"share_slow_acknowledgement.lock_share": 0.5, "streams_long_pause.ms": 5e3},
        {"share_slow_acknowledgement.lock_share": 0.0009, "streams_long_pause.ms": 1e300},
    ],
)
def test_rows_that_are_not_needed_change_nothing(thresholds: dict[str, float]) -> None:
    marts = all_cases()
    needed = {mart: selected(rows, needs_of(thresholds)[mart].where) for mart, rows in marts.items()}
    assert sum(map(len, needed.values())) < sum(map(len, marts.values()))
    assert list(findings_of(needed, thresholds)) == list(findings_of(marts, thresholds))


def selected(rows: list[dict[str, Any]], where: Where | None) -> list[dict[str, Any]]:
    pa = pytest.importorskip("pyarrow")
    from pyarrow.compute import field

    if where is None:
        return rows
    numbers = pa.Table.from_pylist(rows).append_column("number", [range(len(rows))]).filter(where(field))
    return [rows[number] for number in numbers.column("number").to_pylist()]


def test_verdict_says_the_worst_in_one_sentence() -> None:
    healthy = verdict_of([])
    assert (healthy.state, healthy.sentence) == ("healthy", "Nothing is beyond a threshold.")
    assert verdict_of(findings_of(CASES["share_rejected"][0], {})).state == "healthy"
    attention = verdict_of(findings_of(CASES["share_near_limit"][0], {}))
    assert attention.state == "attention" and attention.sentence.startswith(
        "1 warning; Share group `g` had 2 deliveries"
    )
    worst = verdict_of(reversed(list(findings_of(all_cases(), {}))))
    assert worst.state == "critical" and worst.critical and worst.warning and worst.info
    assert "first of them" in worst.sentence
