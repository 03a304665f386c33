"""The quorum: leaders follow one another with the gaps between them, and no lag is lost in a step."""

from pathlib import Path
from typing import Any

from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import history_of
from kafkascope.report.build import build
from kafkascope.report.charts.quorum import quorum_figure
from kafkascope.report.page.page import page
from kafkascope.report.page.quorum import quorum_line
from kafkascope.report.summaries.quorum import MOST_BUCKETS, MOST_CLUSTERS, MOST_EVENTS, MOST_REPLICAS
from kafkascope.report.summaries.scope import Scope
from tests.report.build import NOON, NOW, SECOND, Row, incident, lake_of, report_of


def test_leaders_and_the_time_without_one_are_those_of_the_recorded_incident(tmp_path: Path) -> None:
    (quorum,) = report_of(tmp_path / "lake", **incident("quorum")).quorums.shown
    assert [(band.leader_id, band.epoch, band.without_ms) for band in quorum.bands] == [(2, 1, None), (3, 2, 2123)]
    first, second = quorum.bands
    assert second.from_at - first.to_at == 2_123_000
    assert [event.kind for event in quorum.events] == ["elected", "elected", "late_resignation"]
    assert quorum.votes == {"pre_vote": 5, "vote": 3, "announced": 3}


def test_the_worst_of_each_step_is_kept(tmp_path: Path) -> None:
    marts = incident("quorum")
    (quorum,) = report_of(tmp_path / "lake", **marts).quorums.shown
    for replica in quorum.replicas:
        rows = [row for row in marts["quorum_replicas"] if row.replica_id == replica.replica_id]
        most = max((row.lag_ms for row in rows if row.lag_ms is not None), default=None)
        assert replica.worst_behind_ms == most == max(value for value in replica.behind_ms if value is not None)
        last = max(rows, key=lambda row: row.observed_at)
        assert (replica.last_lag, replica.role) == (last.lag, last.role)
    assert {replica_shown.replica_id: replica_shown.role for replica_shown in quorum.replicas} == {
        1: "follower",
        2: "follower",
        3: "leader",
        4: "observer",
    }


def test_an_unknown_lag_is_no_lag_of_zero(tmp_path: Path) -> None:
    (quorum,) = report_of(tmp_path / "lake", quorum_replicas=[replica(lag=None, lag_ms=None)]).quorums.shown
    assert quorum.replicas[0].lag == [None] and quorum.replicas[0].worst_lag is None


def test_a_lag_is_told_to_the_record(tmp_path: Path) -> None:
    rows = [replica(observed_at=NOON + at * SECOND, lag=1_234_567, lag_ms=1_500) for at in range(2)]
    (quorum,) = report_of(tmp_path / "lake", quorum_replicas=rows).quorums.shown
    drawn = quorum_figure(quorum, "q").text
    assert "lag 1,234,567 records" in drawn and "lag 1.5 seconds" in drawn


def test_long_histories_and_many_replicas_are_bounded(tmp_path: Path) -> None:
    rows = [
        replica(observed_at=NOON + at * SECOND, replica_id=node, lag_ms=node, lag=at)
        for at in range(1_000)
        for node in range(MOST_REPLICAS + 4)
    ]
    (quorum,) = report_of(tmp_path / "lake", quorum_replicas=rows).quorums.shown
    assert quorum.buckets.count <= MOST_BUCKETS
    # those with the least lag are left out
    assert [replica_shown.replica_id for replica_shown in quorum.replicas] == list(range(4, MOST_REPLICAS + 4))
    assert quorum.replicas_left_out == 4
    assert quorum.replicas[0].lag[-1] == 999


def test_between_leaves_out_what_lies_outside(tmp_path: Path) -> None:
    rows = [replica(observed_at=NOON + at * SECOND, lag=at) for at in range(10)]
    lake = lake_of(tmp_path / "lake", {"quorum_replicas": rows})
    (quorum,) = build(lake, Scope(since=NOON + 2 * SECOND, until=NOON + 4 * SECOND), NOW).quorums.shown
    assert (quorum.observations, quorum.replicas[0].worst_lag) == (2, 3)


def test_clusters_in_one_lake_are_told_apart(tmp_path: Path) -> None:
    """Their nodes have the same numbers, and lead in the same epochs."""
    replicas = [
        replica(cluster_id="one", lag=7),
        replica(cluster_id="two", leader_id=2, replica_id=1),
        replica(leader_epoch=9),
    ]
    elected = [{"occurred_at": NOON + SECOND, "kind": "elected", "epoch": 4, "node_id": 3, "cluster_id": "two"}]
    quorums = report_of(tmp_path / "lake", quorum_replicas=replicas, quorum_events=elected).quorums
    assert [quorum.cluster_id for quorum in quorums.shown] == ["two", "one", None] and not quorums.left_out
    led = [[(band.leader_id, band.epoch) for band in quorum.bands] for quorum in quorums.shown]
    assert led == [[(2, 3), (3, 4)], [(1, 3)], [(1, 9)]]
    assert [[other.replica_id for other in quorum.replicas] for quorum in quorums.shown] == [[1], [2], [2]]
    assert [len(quorum.events) for quorum in quorums.shown] == [1, 0, 0]


def test_of_many_clusters_those_in_trouble_are_shown(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(MOST_CLUSTERS + 3)]
    replicas = [replica(cluster_id=name, lag_ms=number) for number, name in enumerate(names)]
    elected = [{"occurred_at": NOON, "kind": "elected", "epoch": 4, "node_id": 3, "cluster_id": "c0"}]
    quorums = report_of(tmp_path / "lake", quorum_replicas=replicas, quorum_events=elected).quorums
    assert [quorum.cluster_id for quorum in quorums.shown] == ["c0", *names[:-MOST_CLUSTERS:-1]]
    assert quorums.left_out == 3


def test_a_leader_that_is_gone_at_the_end_leads_no_longer(tmp_path: Path) -> None:
    """The event stands where it was last seen to lead, as the walk of the quorum tells it."""
    events = [
        QuorumEvent("begin", NOON, 0, broker="b", leader_id=1, leader_epoch=1, peer_id=2),
        QuorumEvent("end", NOON + 5 * SECOND, 0, broker="b", leader_id=1, leader_epoch=1),
        QuorumEvent("seen", NOON + 9 * SECOND, 0, broker="b"),
    ]
    (quorum,) = report_of(tmp_path / "lake", quorum_events=history_of(events).events).quorums.shown
    (band,) = quorum.bands
    assert (band.to_at, quorum.leaderless_ms, quorum.last_at) == (NOON + 5 * SECOND, 4_000, NOON + 9 * SECOND)
    assert quorum_line(quorum).startswith("last led by node 1 in epoch 1, no elections, up to 4 s without a leader")
    assert "no leader for 4 s" in quorum_figure(quorum, "q").text


def test_a_leader_that_was_overtaken_leads_nobody(tmp_path: Path) -> None:
    """Frozen, or cut off, it answers for its epoch when the next one is there already."""
    events = [(0, 5, 1), (9, 7, 2), (10, 5, 1), (11, 6, 3), (20, 7, 2)]
    rows = [replica(observed_at=NOON + at * SECOND, leader_epoch=epoch, leader_id=node) for at, epoch, node in events]
    (quorum,) = report_of(tmp_path / "lake", quorum_replicas=rows).quorums.shown
    assert [(band.epoch, band.leader_id) for band in quorum.bands] == [(5, 1), (7, 2)]
    assert quorum.bands[-1].to_at == NOON + 20 * SECOND and quorum_line(quorum).startswith("led by node 2 in epoch 7")


def test_elections_that_are_left_out_of_the_list_are_counted(tmp_path: Path) -> None:
    events = [
        {"occurred_at": NOON + at * SECOND, "kind": "elected", "epoch": at, "node_id": 1, "duration_ms": at}
        for at in range(MOST_EVENTS * 5)
    ]
    (quorum,) = report_of(tmp_path / "lake", quorum_events=events).quorums.shown
    assert (len(quorum.events), quorum.events_left_out) == (MOST_EVENTS, MOST_EVENTS * 4)
    assert quorum_line(quorum).endswith("500 elections, up to 499 ms without a leader")


def replica(**values: Any) -> Row:
    row = {"observed_at": NOON, "source": "fetch", "leader_id": 1, "leader_epoch": 3, "replica_id": 2, "lag": 1}
    return row | {"role": "follower", "lag_ms": 20, "fetch_age_ms": 10} | values


def test_one_moment_is_told_in_words(tmp_path: Path) -> None:
    text = page(report_of(tmp_path / "lake", quorum_replicas=[replica(cluster_id="one")]))
    assert "seen at one moment only, 15 Nov 2026" in text and "node 1 in epoch 3" in text
    assert "Cluster <code>one</code>" in text and "1 observation<" in text


def test_observers_are_drawn_apart_from_the_fetch_timeout_of_voters(tmp_path: Path) -> None:
    rows = [
        replica(replica_id=node, role=role, observed_at=NOON + at * SECOND, lag_ms=lag_ms, fetch_age_ms=lag_ms)
        for at in (0, 60)
        for node, role, lag_ms in ((2, "follower", 2_500), (7, "observer", 12_000))
    ]
    (quorum,) = report_of(tmp_path / "lake", quorum_replicas=rows).quorums.shown
    text = quorum_figure(quorum, "q").text
    assert text.index("lag of voters, seconds") < text.index("fetch timeout, 2 s by default")
    assert text.index("fetch timeout, 2 s by default") < text.index("lag of observers, seconds")
    assert text.index("lag of observers, seconds") < text.index("broker session timeout, 9 s by default")
    assert "The largest lag was that of node 2, 2.5 s." in text
    assert quorum_line(quorum).endswith("node 2 lagged by up to 2.5 s")


def test_only_observers_are_seen_without_voters(tmp_path: Path) -> None:
    rows = [
        replica(replica_id=7, role="observer", observed_at=NOON + at * SECOND, lag_ms=12_000, fetch_age_ms=12_000)
        for at in (0, 60)
    ]
    (quorum,) = report_of(tmp_path / "lake", quorum_replicas=rows).quorums.shown
    text = quorum_figure(quorum, "q").text
    assert "fetch timeout" not in text and "session timeout" in text
    assert quorum_line(quorum).endswith("observer node 7 lagged by up to 12 s")
