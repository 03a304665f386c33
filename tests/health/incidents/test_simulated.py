"""Groups and quorums played by rule: the incidents cost what really happened, and every finding is in one of them."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from kafkascope.health.findings.diagnosis import Finding
from kafkascope.health.incidents.incident import Incident, key_of
from kafkascope.health.quorum.history import history_of
from kafkascope.health.share.group_health import share_group_health
from kafkascope.health.share.ledger import share_deliveries
from kafkascope.health.streams.group_health import health_of
from kafkascope.health.streams.timeline import timeline_of
from tests.health.incidents.diagnosed import diagnosed
from tests.health.share_simulator import Simulation
from tests.health.test_quorum_simulation import played
from tests.health.test_streams_simulation import SESSION, Group

LATE = ("lock_expired", "disconnected", "moved")


def total(incidents: Iterable[Incident], name: str) -> float:
    return sum(incident.impact.get(name, 0) for incident in incidents)


def check_each_finding_is_in_one(findings: list[Finding], incidents: list[Incident]) -> None:
    parts = Counter(part.key for incident in incidents for part in incident.consequences)
    assert parts == Counter(map(key_of, findings))
    assert set(parts.values()) <= {1}


def test_records_late_and_archived_are_those_of_the_play() -> None:
    causes: Counter[str] = Counter()
    for seed in range(120):
        simulation = Simulation(seed, writes=True).run()
        deliveries = list(share_deliveries(simulation.events))
        findings, incidents = diagnosed(
            {"share_deliveries": deliveries, "share_group_health": list(share_group_health(deliveries, ()))}
        )
        check_each_finding_is_in_one(findings, incidents)
        late = sum(truth.outcome in LATE for truth in simulation.truths)
        archived = sum(truth.archived and truth.outcome != "rejected" for truth in simulation.truths)
        assert total(incidents, "records_late") == late, seed
        assert total(incidents, "records_archived") == archived, seed
        causes.update(incident.cause for incident in incidents)
    assert {"member_hung", "member_crashed", "poison_record"} <= set(causes)


@pytest.mark.parametrize("seed", range(10))
def test_every_crashed_member_is_in_an_incident_of_its_group(seed: int) -> None:
    group = Group(seed)
    group.run(60)
    timeline = timeline_of(
        sorted(group.events, key=lambda event: (event.at_us, event.order)), session_timeout_ms=SESSION // 1000
    )
    assert timeline is not None
    marts: dict[str, list[Any]] = {
        "streams_moves": timeline.moves,
        "streams_unheld": timeline.unheld,
        "streams_lost_members": timeline.lost,
        "streams_group_health": list(health_of(timeline)),
    }
    findings, incidents = diagnosed(marts)
    check_each_finding_is_in_one(findings, incidents)
    crashed = {held[0] for held in group.truth if held[5] == "lost"}
    explained = {
        part.subject.partition("/")[2]
        for incident in incidents
        if incident.cause in ("member_crashed", "member_hung")
        for part in incident.consequences
    }
    assert crashed <= explained or "" in explained


@pytest.mark.parametrize("seed", range(10))
def test_time_without_a_leader_is_that_of_the_play(seed: int) -> None:
    quorum = played(seed)
    history = history_of(quorum.events)
    findings, incidents = diagnosed({"quorum_replicas": history.replicas, "quorum_events": history.events})
    check_each_finding_is_in_one(findings, incidents)
    lost = [
        election
        for election in quorum.elections
        if election.cause in ("lost", "timeout") and election.silent_at is not None
    ]
    without = sum((election.at - (election.silent_at or 0)) // 1000 for election in lost) / 1000
    assert total(incidents, "seconds_without_leader") == pytest.approx(without)
    assert {incident.cause for incident in incidents if "seconds_without_leader" in incident.impact} <= {
        "leader_lost",
        "node_down",
        "node_frozen",
    }
