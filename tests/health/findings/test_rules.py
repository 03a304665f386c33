"""Every rule fires on rows that show its trouble, and says nothing of rows that nearly do."""

import pytest

from kafkascope.health.findings.diagnosis import findings_of
from kafkascope.health.findings.rules.table import RULES
from tests.health.findings_cases import CASES
from tests.health.findings_rows import MINUTE, SECOND, T0, row
from tests.health.trouble_rows import (
    Marts,
    calls,
    elections,
    event,
    group,
    held,
    lags,
    lasting,
    late,
    minutes,
    recording,
    refused,
    status,
    still,
    unheld,
    unreadable,
    warmup,
)


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    assert set(CASES) == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_rule_fires_on_rows_that_show_it(name: str) -> None:
    marts, severity, words, _ = CASES[name]
    (finding,) = [finding for finding in findings_of(marts, {}) if finding.rule == name]
    assert words in finding.summary
    assert finding.severity == severity
    assert finding.subject_kind == RULES[name].subject_kind
    assert finding.from_at <= finding.to_at and finding.figures and "{" not in finding.advice


@pytest.mark.parametrize("name", RULES)
def test_rule_is_silent_on_rows_that_nearly_show_it(name: str) -> None:
    assert name not in {finding.rule for finding in findings_of(CASES[name][3], {})}


@pytest.mark.parametrize("name", RULES)
def test_rule_reads_the_marts_that_it_names(name: str) -> None:
    assert set(CASES[name][0]) <= {*RULES[name].marts, "captures"}


@pytest.mark.parametrize(
    ("marts", "rule"),
    [
        ({"share_deliveries": [held("lock_expired", last_offset=999)]}, "share_lock_expired"),
        (group(redelivered=600), "share_redelivery_storm"),
        (
            {"share_deliveries": [held("released", archived=True, delivery_count=5, last_offset=99)]},
            "share_poison_record",
        ),
        (lags(*range(0, 70_000, 1000)), "share_lag_growing"),
        (unheld(70), "streams_task_unheld"),
        (status("MISSING_INTERNAL_TOPICS", 70), "streams_missing_internal_topics"),
        ({"quorum_events": [row("quorum_events", cause="lost", previous_leader_id=1, duration_ms=9500)]},
         "quorum_leader_lost"),
        (refused("Metadata", "UNKNOWN_SERVER_ERROR", 600), "api_error_rate"),
        (calls(p99_us=31_000_000, max_us=32_000_000), "api_slow"),
    ],
)  # fmt: skip
def test_severity_rises_with_the_figures(marts: Marts, rule: str) -> None:
    (finding,) = [finding for finding in findings_of(marts, {}) if finding.rule == rule]
    assert finding.severity == "critical"


@pytest.mark.parametrize(
    ("marts", "rule", "severity"),
    [
        (refused("ShareFetch", "SHARE_SESSION_NOT_FOUND", 10), "share_session_reset", "warning"),
        ({"share_deliveries": [held("rejected", archived=True, last_offset=99)]}, "share_rejected", "warning"),
        (still(0, 1), "share_standing_still", "warning"),
        (status("STALE_TOPOLOGY", 700), "streams_stale_topology", "warning"),
        (recording(tls_bytes=100_000), "recording_tls", "info"),
        (recording(lost_bytes=1000), "recording_lost", "info"),
        (unreadable("cut"), "recording_unreadable", "info"),
        (event("leaderless", duration_ms=5000), "quorum_leaderless", "warning"),
    ],
)
def test_severity_falls_with_the_figures(marts: Marts, rule: str, severity: str) -> None:
    (finding,) = [finding for finding in findings_of(marts, {}) if finding.rule == rule]
    assert finding.severity == severity


def test_passing_errors_that_last_are_a_warning() -> None:
    (finding,) = findings_of(lasting("NOT_COORDINATOR"), {})
    assert (finding.rule, finding.severity) == ("api_passing_errors", "warning")


def test_a_task_nobody_takes_lasts_until_the_recording_ends() -> None:
    marts = {
        **unheld(None, cause="lost", ended_by=None),
        **minutes(1),
        "captures": [row("captures", last_at=T0 + 40 * SECOND)],
    }
    (finding,) = findings_of(marts, {})
    assert "had no owner for 40 s until the recording ended; cause: member disappeared" in finding.summary


@pytest.mark.parametrize(
    "marts",
    [
        pytest.param(lags(0, 0, 0, 0, 0, 1500), id="a jump after a plateau"),
        pytest.param(lags(0, 900, 100, 950, 200, 1100), id="more than half worked off in between"),
        pytest.param(unheld(90, known=False), id="members that the recording may not see"),
        pytest.param(elections(3, 60), id="a rolling restart"),
    ],
)
def test_what_looks_like_trouble_and_is_none(marts: Marts) -> None:
    assert not list(findings_of(marts, {}))


def test_the_first_election_of_a_cluster_is_none_too_many() -> None:
    first = row("quorum_events", at=T0 - MINUTE, cause="no_leader")
    assert not list(findings_of({"quorum_events": [first, *elections(3, 60)["quorum_events"]]}, {}))


def test_errors_of_several_clients_share_the_calls_of_the_minute() -> None:
    errors = [row("api_errors", client_id=client, error="UNKNOWN_SERVER_ERROR", calls=40) for client in ("c1", "c2")]
    (finding,) = findings_of({"api_errors": errors, **calls()}, {})
    assert "failed in 80 of 1,000 calls" in finding.summary


def test_a_few_undecoded_frames_of_many_are_a_note() -> None:
    (finding,) = findings_of(unreadable(*["undecoded"] * 3), {})
    assert finding.severity == "info"


def test_warmups_given_up_again_and_again_are_told_however_short() -> None:
    (finding,) = findings_of(warmup(5, "revoked", times=3), {})
    assert finding.rule == "streams_warmup_stuck" and finding.figures["dropped"] == 3
    assert not list(findings_of(warmup(5, "left", times=3), {}))


def test_a_voter_that_never_fetched_counts_against_the_majority() -> None:
    silent = [
        row("quorum_replicas", observed_at=T0 + at * SECOND, replica_id=3, lag=None, fetch_age_ms=None)
        for at in (0, 12)
    ]
    slow = row("quorum_replicas", observed_at=T0 + 12 * SECOND, fetch_age_ms=5000)
    leader = row("quorum_replicas", replica_id=1, role="leader")
    rules = {finding.rule for finding in findings_of({"quorum_replicas": [leader, *silent, slow]}, {})}
    assert "quorum_majority_at_risk" in rules
    at_first = row("quorum_replicas", observed_at=T0, fetch_age_ms=5000)
    rules = {finding.rule for finding in findings_of({"quorum_replicas": [leader, *silent, at_first]}, {})}
    assert "quorum_majority_at_risk" not in rules


def test_groups_of_one_name_in_two_clusters_are_judged_together() -> None:
    """Each has its row of a minute; the slow records may be those of either."""
    marts = late(60, 25)
    marts["share_group_health"] = [row("share_group_health", accepted=0), row("share_group_health")]
    judged = [finding for finding in findings_of(marts, {}) if finding.rule == "share_slow_acknowledgement"]
    assert [finding.figures["acknowledged"] for finding in judged] == [1000]
    none = {"share_slow_acknowledgement.acknowledged": 0, "share_slow_acknowledgement.slow_share": 0}
    marts["share_group_health"] = [row("share_group_health", accepted=0)]
    assert "share_slow_acknowledgement" not in {finding.rule for finding in findings_of(marts, none)}
