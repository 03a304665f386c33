"""What belongs together is one incident, its cause first; what only happens at the same time is not."""

import random
from typing import Any

import pytest

from kafkascope.health.findings.diagnosis import findings_of
from kafkascope.health.incidents.causes import CAUSES
from kafkascope.health.incidents.diagnosis import incidents_of, verdict_of
from kafkascope.health.incidents.incident import incident_order, key_of
from tests.health.findings.test_diagnosis import all_cases
from tests.health.findings_cases import CASES
from tests.health.findings_rows import MINUTE, SECOND, T0, row
from tests.health.incidents.diagnosed import diagnosed, joined, roles
from tests.health.trouble_rows import late

CLUSTER = "Ab-1"
LEADER, OTHER = "10.0.0.1:9092", "10.0.0.2:9092"
Marts = dict[str, list[dict[str, Any]]]


def brokers() -> Marts:
    return {
        "brokers": [
            row("brokers", broker_address=LEADER, cluster_id=CLUSTER, node_id=1),
            row("brokers", broker_address=OTHER, cluster_id=CLUSTER, node_id=2),
        ]
    }


def leader_killed(at: int = T0, **values: Any) -> Marts:
    """Node 1 led, its connections closed, and node 2 led 2.1 s later."""
    usual = {
        "cause": "lost",
        "detail": "connection to node 1 closed (fin) 12 ms after its last sign of life",
        "epoch": 2,
        "cluster_id": CLUSTER,
    }
    usual |= {"occurred_at": at + 2_100_000, "previous_leader_id": 1, "duration_ms": 2100}
    return {"quorum_events": [row("quorum_events", **{**usual, **values})]}


def follower_behind(node: int, since: int, seconds: int, cluster: str = CLUSTER) -> Marts:
    """It sends nothing for so long, and fetches again a second later."""
    common = {"cluster_id": cluster, "replica_id": node}
    others = [
        row("quorum_replicas", cluster_id=cluster, replica_id=other, role=role, observed_at=since + seconds * SECOND)
        for other, role in ((7, "leader"), (8, "follower"), (9, "follower"))
    ]
    behind = row("quorum_replicas", observed_at=since + seconds * SECOND, fetch_age_ms=seconds * 1000, lag=15, **common)
    back = row("quorum_replicas", observed_at=since + (seconds + 1) * SECOND, fetch_age_ms=100, **common)
    return {"quorum_replicas": [*others, behind, back]}


def failing(api: str, error: str, calls: int, broker: str = LEADER, at: int = T0, client: str = "c1") -> Marts:
    times = {"first_at": at + SECOND, "last_at": at + 2 * SECOND, "minute_at": at // MINUTE * MINUTE}
    errors = row("api_errors", api=api, error=error, calls=calls, broker_address=broker, client_id=client, **times)
    return {
        "api_errors": [errors],
        "api_latency": [row("api_latency", api=api, calls=2 * calls, broker_address=broker)],
    }


def slow(api: str, broker: str, p99_ms: int = 7_000) -> Marts:
    return {
        "api_latency": [row("api_latency", api=api, broker_address=broker, p99_us=p99_ms * 1000, max_us=p99_ms * 1000)]
    }


def held(member: str, outcome: str, **values: Any) -> Marts:
    delivery = {"member_id": member, "client_id": member, "outcome": outcome, "outcome_at": T0 + 30 * SECOND, **values}
    return {"share_deliveries": [row("share_deliveries", last_offset=3, broker_address=LEADER, **delivery)]}


def archived() -> Marts:
    record = {"first_offset": 42, "last_offset": 42, "delivery_count": 5}
    return {"share_deliveries": [row("share_deliveries", outcome="released", archived=True, **record)]}


def test_every_finding_is_in_exactly_one_incident() -> None:
    findings, incidents = diagnosed(all_cases())
    parts = [part.key for incident in incidents for part in incident.consequences]
    assert sorted(parts) == sorted(map(key_of, findings))
    assert len(set(parts)) == len(parts)


@pytest.mark.parametrize("seed", range(3))
def test_incidents_do_not_depend_on_the_order_of_rows_or_findings(seed: int) -> None:
    marts = all_cases()
    findings, expected = diagnosed(marts)
    for rows in marts.values():
        random.Random(seed).shuffle(rows)
    random.Random(seed).shuffle(findings)
    assert incidents_of(findings, marts) == expected == sorted(expected, key=incident_order)


def test_partitions_that_changed_leaders_belong_to_the_node_that_was_lost() -> None:
    """By the metadata log on its brokers' disks; those of another cluster don't belong to it."""

    def changes(cluster: str, seconds: int) -> list[dict[str, Any]]:
        return [
            row("partition_events", cluster_id=cluster, occurred_at=T0 + seconds * SECOND + turn, to_leader=2)
            for turn in range(6)
        ]

    marts = joined(brokers(), leader_killed(), {"partition_events": [*changes(CLUSTER, 3), *changes("another", 3)]})
    _, incidents = diagnosed(marts)
    by_cause = {incident.cause: incident for incident in incidents}
    roles = {part.role: part.subject for part in by_cause["node_down"].consequences}
    assert roles["partitions that lost a replica"] == f"orders-0 of cluster {CLUSTER}"
    assert by_cause["partition_leader_changes"].subject == "orders-0 of cluster another"


def test_a_killed_leader_is_one_incident_with_what_followed() -> None:
    _, (first, *others) = diagnosed(
        joined(
            brokers(),
            leader_killed(),
            {"quorum_events": [row("quorum_events", kind="late_resignation", node_id=1, cluster_id=CLUSTER)
                               | {"occurred_at": T0 + 5 * SECOND}]},
            failing("Metadata", "NOT_CONTROLLER", 30, OTHER),
            failing("Produce", "NOT_LEADER_OR_FOLLOWER", 7, OTHER),
            slow("Fetch", LEADER),
        )
    )  # fmt: skip
    assert others == []
    assert (first.cause, first.subject, first.confidence) == ("node_down", f"node 1 of cluster {CLUSTER}", "certain")
    assert first.title == "Node `1`, leader of the quorum, went down; node `2` took over after 2.1 s."
    assert roles(first) == [
        ("cause", "quorum_leader_lost"),
        ("redirected calls", "api_passing_errors"),
        ("slow calls", "api_slow"),
    ]
    # What is below the threshold of its rule counts too, from the moment on at which the leader was lost.
    assert first.impact == {"calls_failed": 37, "seconds_without_leader": 2.1}
    redirected = "`NOT_CONTROLLER` ×30, `NOT_LEADER_OR_FOLLOWER` ×7"
    assert first.notes == (f"During the incident clients were redirected, as the protocol intends: {redirected}.",)
    assert f"kafkascope describe quorum {OTHER}" in first.advice


def test_a_leader_that_falls_silent_froze() -> None:
    _, (first,) = diagnosed(leader_killed(detail="node 1 didn't respond to a fetch for 2100 ms"))
    assert (first.cause, first.confidence) == ("node_frozen", "likely")
    _, (first,) = diagnosed(leader_killed(cause="timeout", detail=None))
    assert (first.cause, first.confidence) == ("leader_lost", "possible")


def test_a_frozen_follower_and_a_killed_leader_are_two_incidents_and_the_worse_leads() -> None:
    findings, (first, second) = diagnosed(joined(follower_behind(2, T0 - 20 * SECOND, 5), leader_killed()))
    assert [finding.rule for finding in findings] == ["quorum_follower_behind", "quorum_leader_lost"]
    assert (first.cause, second.cause) == ("node_down", "node_frozen")
    assert second.title == "Controller node `2` froze for at least 5 s and fell 15 records behind in the metadata log."
    assert second.confidence == "likely" and "fetched again" in second.explanation


def test_slow_calls_at_a_frozen_node_are_its_consequence_and_those_at_others_if_they_wait_for_replicas() -> None:
    frozen = joined(brokers(), follower_behind(1, T0 + 10 * SECOND, 10))
    slow_there = joined(slow("Produce", LEADER), slow("Metadata", LEADER))
    slow_elsewhere = joined(slow("Produce", OTHER), slow("Metadata", OTHER))
    _, incidents = diagnosed(joined(frozen, slow_there, slow_elsewhere))
    by_cause = {incident.cause: incident for incident in incidents}
    expected = [*[("slow calls", LEADER)] * 2, ("writes that wait for the replica", OTHER)]
    parts = by_cause["node_frozen"].consequences[1:]
    assert sorted((part.role, part.subject.partition(" at ")[2]) for part in parts) == expected
    assert (by_cause["broker_slow"].subject, len(incidents)) == (OTHER, 2)
    assert [part.subject for part in by_cause["broker_slow"].consequences] == [f"Metadata at {OTHER}"]


def test_a_node_that_closed_its_connection_when_it_fell_silent_went_down() -> None:
    behind = follower_behind(2, T0, 5)
    since = min(finding.from_at for finding in diagnosed(behind)[0])
    for after_us, cause in ((200_000, "node_down"), (4 * SECOND, "node_frozen")):
        closing = row("quorum_events", kind="disconnected", node_id=2, cluster_id=CLUSTER) | {
            "occurred_at": since + after_us
        }
        _, (only,) = diagnosed(joined(behind, {"quorum_events": [closing]}))
        assert only.cause == cause
    assert diagnosed(behind)[1][0].cause == "node_frozen"


def test_a_member_that_needs_most_of_its_lock_is_slow_unless_its_locks_expire() -> None:
    _, (alone,) = diagnosed(late(60, 25))
    assert (alone.cause, alone.subject) == ("member_slow", "g")
    assert alone.title == "Member `c1` of share group `g` took up to 25 s of the 30 s lock to acknowledge 60 records."
    assert "--entity-name g " in alone.advice
    _, (hung,) = diagnosed(joined(late(60, 25), held("c1", "lock_expired")))
    assert (hung.cause, roles(hung)[1:]) == ("member_hung", [("late acknowledgements", "share_slow_acknowledgement")])


def test_a_replica_that_falls_behind_while_nobody_leads_is_a_consequence() -> None:
    _, (first,) = diagnosed(joined(leader_killed(duration_ms=4000), follower_behind(3, T0 - SECOND + 100_000, 3)))
    assert first.cause == "node_down"
    assert ("replica behind", "quorum_follower_behind") in roles(first)


def test_clusters_stay_apart() -> None:
    _, incidents = diagnosed(joined(leader_killed(), follower_behind(1, T0 + SECOND, 5, "Ab-2")))
    assert sorted(incident.subject for incident in incidents) == [
        f"node 1 of cluster {CLUSTER}",
        "node 1 of cluster Ab-2",
    ]


def test_what_begins_later_is_another_incident() -> None:
    near, far = (joined(leader_killed(), follower_behind(1, T0 + wait, 5)) for wait in (30 * SECOND, 10 * MINUTE))
    assert (len(diagnosed(near)[1]), len(diagnosed(far)[1])) == (1, 2)


def test_errors_of_another_kind_are_no_consequence_of_an_outage() -> None:
    _, incidents = diagnosed(joined(brokers(), leader_killed(), failing("Produce", "TOPIC_AUTHORIZATION_FAILED", 40)))
    assert {incident.cause for incident in incidents} == {"node_down", "access_denied"}


def test_a_hung_member_and_a_poison_record_of_one_group_are_two_incidents() -> None:
    near_limit = {"share_group_health": [row("share_group_health", near_limit=2)]}
    refused = failing("ShareAcknowledge", "INVALID_RECORD_STATE", 3, client="hung")
    _, (first, second) = diagnosed(joined(held("hung", "lock_expired"), archived(), near_limit, refused))
    assert (first.cause, first.impact) == ("poison_record", {"records_archived": 1})
    assert ("records near the delivery limit", "share_near_limit") in roles(first)
    assert "--topic orders --partition 0 --offset 42 " in first.advice
    assert (second.cause, second.impact) == ("member_hung", {"records_late": 4, "calls_failed": 3})
    assert ("acknowledgements refused", "share_refused_acknowledgements") in roles(second)
    assert second.title == "Member `hung` of share group `g` kept 4 records past the lock of 30 s."
    # It acknowledged later, so it was alive.
    assert second.confidence == "certain"


def test_members_that_lose_their_broker_have_not_crashed() -> None:
    died = joined(brokers(), leader_killed(), held("m1", "disconnected", outcome_at=T0 + SECOND))
    _, (first,) = diagnosed(died)
    assert (first.cause, first.impact["records_late"]) == ("node_down", 4)
    assert ("redelivered records", "share_member_disconnected") in roles(first)
    _, (alone,) = diagnosed(held("m1", "disconnected"))
    assert (alone.cause, alone.title) == (
        "member_crashed",
        "Member `m1` of share group `g` disappeared with 4 records in hand.",
    )


def test_a_lost_member_is_the_cause_of_the_tasks_without_owner() -> None:
    pause = {"released_at": T0, "taken_at": T0 + 45 * SECOND, "pause_ms": 45_000, "cause": "lost"}
    unheld = {"from_at": T0, "to_at": T0 + 45 * SECOND, "cause": "lost"}
    _, (first,) = diagnosed(
        {
            "streams_lost_members": [row("streams_lost_members", active_tasks=1, how="closed")],
            "streams_moves": [row("streams_moves", **pause)],
            "streams_unheld": [row("streams_unheld", **unheld)],
        }
    )
    assert (first.cause, first.confidence, first.impact) == ("member_crashed", "certain", {"seconds_without_owner": 45})
    assert first.title == (
        "Member `c1` of streams group `s` disappeared without leaving the group;"
        " its 1 task had no owner for up to 45 s."
    )
    assert roles(first) == [("cause", "streams_member_lost"), ("tasks without owner", "streams_long_pause")]


def test_slow_calls_of_several_kinds_at_one_broker_are_one_incident() -> None:
    _, incidents = diagnosed(joined(brokers(), slow("Produce", LEADER), slow("Metadata", LEADER), slow("Fetch", OTHER)))
    by_subject = {incident.subject: incident for incident in incidents}
    assert set(by_subject) == {LEADER, OTHER}
    assert len(by_subject[LEADER].consequences) == 2
    assert (by_subject[LEADER].confidence, by_subject[OTHER].confidence) == ("likely", "possible")
    assert by_subject[LEADER].title == (
        f"Broker `{LEADER}` (node `1`) responded slowly: p99 latency of `Metadata` and `Produce` up to 7 s."
    )


def test_a_recording_with_gaps_explains_calls_without_a_response_and_tls_does_not() -> None:
    unanswered = {"api_latency": [row("api_latency", unanswered=30)]}
    _, (lost,) = diagnosed(joined(unanswered, {"captures": [row("captures", lost_bytes=30_000)]}))
    assert roles(lost) == [("cause", "recording_lost"), ("calls without a response", "api_unanswered")]
    _, incidents = diagnosed(joined(unanswered, {"captures": [row("captures", tls_bytes=900_000)]}))
    assert sorted(incident.cause for incident in incidents) == ["api_unanswered", "recording_unread"]


def test_a_refused_login_is_called_that() -> None:
    _, (first,) = diagnosed(failing("SaslAuthenticate", "SASL_AUTHENTICATION_FAILED", 12))
    assert first.title == "The login of client `c1` was refused: `SASL_AUTHENTICATION_FAILED` ×12."


def test_what_tools_are_answered_is_a_note() -> None:
    findings, (note,) = diagnosed(failing("ConsumerGroupDescribe", "GROUP_ID_NOT_FOUND", 8))
    assert [finding.severity for finding in findings] == ["warning"]
    assert (note.cause, note.severity) == ("ordinary_errors", "info")
    assert verdict_of([note]).sentence == "No incident, 1 note."
    # With an error of another kind it is none.
    _, (other,) = diagnosed(
        joined(
            failing("ConsumerGroupDescribe", "GROUP_ID_NOT_FOUND", 8),
            failing("ConsumerGroupDescribe", "UNKNOWN_SERVER_ERROR", 1),
        )
    )
    assert other.severity == "warning"


def test_clients_too_old_are_one_incident_for_all() -> None:
    versions = {"in_newest_release": False, "last_release": "3.9"}
    rows = [row("client_versions", client_software=f"lib {number}", **versions) for number in range(3)]
    _, (first,) = diagnosed({"client_versions": rows})
    assert first.title == (
        "3 clients use API versions that the newest release no longer serves: `lib 0`, `lib 1` and `lib 2`."
    )


def test_the_verdict_is_the_worst_by_what_it_cost_and_not_the_earliest() -> None:
    _, incidents = diagnosed(joined(slow("Produce", LEADER), held("m1", "lock_expired", acquired_at=T0 + 20 * SECOND)))
    verdict = verdict_of(reversed(incidents))
    assert verdict.state == "attention"
    assert verdict.sentence == "Member `m1` of share group `g` kept 4 records past the lock of 30 s. 1 more incident."
    assert verdict_of([]).sentence == "No incident."


def test_without_marts_the_incidents_are_told_by_the_findings_alone() -> None:
    marts = joined(brokers(), leader_killed(), held("hung", "lock_expired"), archived())
    findings = list(findings_of(marts, {}))
    assert [incident.cause for incident in incidents_of(findings, {})] == [
        "leader_lost",
        "poison_record",
        "member_hung",
    ]


def test_names_of_causes_and_roles_are_their_own() -> None:
    assert len({cause.name for cause in CAUSES}) == len(CAUSES)
    for cause in CAUSES:
        explained = [rule for join in cause.joins for rule in join.rules if join.after_us != 0]
        assert len(explained) == len(set(explained)), cause.name


@pytest.mark.parametrize("rule", CASES)
def test_every_sentence_parses(rule: str) -> None:
    """Names in pairs of backticks, one sentence as the title, and nothing is left empty."""
    _, incidents = diagnosed(CASES[rule][0])
    for incident in incidents:
        texts = (incident.title, incident.explanation, incident.disproof, incident.advice)
        assert all(texts) and all(text.count("`") % 2 == 0 and "  " not in text for text in texts)
        assert incident.title.endswith(".") and "×1 " not in incident.title
        assert "{" not in "".join(texts) and "None" not in "".join(texts)


def test_two_losses_in_a_row_are_one_incident_of_the_quorum() -> None:
    again = leader_killed(
        T0 + 20 * SECOND, previous_leader_id=2, node_id=3, epoch=3, detail="node 2 didn't respond to a fetch"
    )
    _, (first,) = diagnosed(joined(leader_killed(), again))
    assert (first.cause, first.subject) == ("leader_lost", f"quorum of cluster {CLUSTER}")
    assert first.title == "The quorum lost its leader 2 times (`node 1` and `node 2`) and had none for up to 2.1 s."
    assert first.impact == {"seconds_without_leader": 4.2}


def test_a_replica_that_never_came_back_went_down_and_one_that_trails_is_slow() -> None:
    gone = follower_behind(2, T0, 5)
    gone["quorum_replicas"] = gone["quorum_replicas"][:-1]
    recorded = {"captures": [row("captures", last_at=T0 + 10 * MINUTE)]}
    _, (first,) = diagnosed(joined(gone, recorded))
    assert first.title == "Controller node `2` stopped fetching the metadata log and was not seen to come back."
    slowly = row("quorum_replicas", replica_id=2, fetch_age_ms=400, lag_ms=5_000, lag=30, cluster_id=CLUSTER)
    leading = row("quorum_replicas", replica_id=1, role="leader", cluster_id=CLUSTER)
    third = row("quorum_replicas", replica_id=3, cluster_id=CLUSTER)
    _, (second,) = diagnosed({"quorum_replicas": [slowly, leading, third]})
    assert (second.cause, second.title) == (
        "node_slow",
        "Controller node `2` lagged behind the metadata log by up to 5 s.",
    )


def test_many_archived_records_are_one_sentence() -> None:
    range_ = {"first_offset": 42, "last_offset": 44, "delivery_count": 5, "outcome": "lock_expired", "archived": True}
    _, incidents = diagnosed({"share_deliveries": [row("share_deliveries", **range_)]})
    poison = next(incident for incident in incidents if incident.cause == "poison_record")
    assert poison.title == (
        "Offsets `42-44` of `orders-0` were archived after 5 deliveries: no member of share group `g` processed them."
    )
    assert "--offset 42 " in poison.advice and poison.confidence == "likely"


def test_backticks_in_a_name_do_not_break_the_sentence() -> None:
    _, (first,) = diagnosed(held("a`b", "lock_expired"))
    assert first.title.startswith("Member `a'b` of ")
