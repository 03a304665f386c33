"""One incident, seen twice: by tcpdump on the plain listeners, and by `observe` on a listener that nobody records. A
share group's members come and go, a follower of the quorum is frozen. Both tell the same, within one poll."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline import ingest, marts
from kafkascope.pipeline.mart.base.sources import OpenLake, Sources
from kafkascope.pipeline.mart.names.facts import TABLES, collect_facts
from lab.cluster import Cluster
from lab.settings import CONTROLLER, PLAIN, USERS
from lab.stage import Stage
from lab.tcpdump import Recording
from lab.wire import call, until
from tests.pipeline.mart_rows import mart
from tests.support.cli import COMMAND, hear_interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.heavy

GROUP = "processors"
POLL_US = 1_000_000
STAY_US = 3 * POLL_US
WAIT_SECONDS = 120.0
MINUTE_US = 60_000_000
# NoOp records come twice a second.
BEHIND = 12

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Seen:
    observed: str
    captured: str
    frozen: int
    leader: int


@pytest.fixture(scope="module")
def seen(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Seen:
    if shutil.which("tcpdump") is None:
        pytest.skip("no tcpdump")
    folder = tmp_path_factory.mktemp("incident")
    observed, captured = str(folder / "observed"), str(folder / "captured")
    with Cluster(3, sasl=True) as cluster:
        leader = cluster.leader()
        frozen = next(number for number in cluster.nodes if number != leader)
        ports = [node[name] for node in cluster.ports.values() for name in (PLAIN[0], CONTROLLER[0])]
        with Recording(ports, folder / "capture.pcap") as recording, Stage(cluster, folder, lambda _: None) as stage:
            recording.start()
            with observing(cluster, observed, folder):
                share_group(stage)
                freeze(cluster, leader, frozen)
            recording.stop()
            recording.check()
    ingest(spark, [folder / "capture.pcap"], captured)
    for lake in (observed, captured):
        marts(spark, open_lake(lake))
    return Seen(observed, captured, frozen, leader)


class observing:  # noqa: N801
    """`kafkascope observe` while the block lasts; Ctrl-C ends it."""

    def __init__(self, cluster: Cluster, lake: str, folder: Path) -> None:
        password = folder / "password"
        password.write_text(USERS["alice"])
        self._command = [COMMAND, "observe", cluster.sasl_bootstrap, "--lake", lake, "--every", "1s"]
        self._command += ["--commit-every", "5s", "--sasl-mechanism", "PLAIN", "--no-tls", "--username", "alice"]
        self._command += ["--password-file", str(password)]
        self._lake = lake
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
        )
        until("a lake with a first commit", lambda: (Path(self._lake) / "captures").exists(), WAIT_SECONDS)

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.send_signal(2)
        out, err = self._process.communicate(timeout=WAIT_SECONDS)
        assert self._process.returncode == 130, err
        assert "Traceback" not in err
        assert "exchanges in" in out


def share_group(stage: Stage) -> None:
    stage.set_up("orders:1:3", f"{GROUP}:share.auto.offset.reset=earliest")

    def member(who: str) -> Any:
        return stage.java("ShareMember", who, {"topic": "orders", "kafka.group.id": GROUP})

    watch = stage.java("Watch", "watch", {"what": "share", "group": GROUP, "every": "500"})

    def wait(count: int) -> None:
        """Until they are there, and a few polls longer: both shall see it, in the same minute too."""

        def holds(event: dict[str, Any]) -> bool:
            return event["event"] == "group" and len(event["members"]) == count

        at = stage.note("waiting", members=count)
        since = watch.wait_for(f"{count} members", lambda event: event["at"] > at and holds(event))["at"]
        watch.wait_for(f"{count} for a while", lambda event: event["at"] > since + STAY_US and holds(event))

    first = member("first")
    wait(1)
    second = member("second")
    stage.java("Client", "producer", {"role": "produce", "topic": "orders", "count": "20"}).finish()
    wait(2)
    second.close()
    wait(1)
    first.close()
    wait(0)
    watch.close()


def freeze(cluster: Cluster, leader: int, frozen: int) -> None:
    cluster.freeze(frozen)
    until("the frozen follower behind", lambda: lag_of(cluster, leader, frozen) >= BEHIND, WAIT_SECONDS)
    cluster.thaw(frozen)
    until("the follower caught up", lambda: lag_of(cluster, leader, frozen) <= 1, WAIT_SECONDS)


def lag_of(cluster: Cluster, leader: int, node: int) -> int:
    """By the leader's own word, over a connection that is recorded; one question, so it is no poll."""
    request = {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}
    answer = call(cluster.nodes[leader].place.address(CONTROLLER[0]), "DescribeQuorum", 2, request)
    voters = answer["topics"][0]["partitions"][0]["currentVoters"]
    ends: dict[int, int] = {voter["replicaId"]: voter["logEndOffset"] for voter in voters}
    return ends[leader] - ends[node]


def rows(lake: str, name: str) -> Rows:
    table: Rows = dataset(open_lake(lake), name).to_table().to_pylist()
    return table


def micros(moment: Any) -> int:
    return int(moment.timestamp() * 1_000_000)


def around(rows_around: Rows, at: int, key: str = "at") -> Rows:
    """What was said within one poll, and last before and first after: between those two, either may be so."""
    before = [row for row in rows_around if row[key] < at - POLL_US]
    after = [row for row in rows_around if row[key] > at + POLL_US]
    return [*before[-1:], *(row for row in rows_around if abs(row[key] - at) <= POLL_US), *after[:1]]


def test_the_capture_holds_nothing_of_the_observer(seen: Seen) -> None:
    assert not [row for row in rows(seen.captured, "exchanges") if row["client_id"] == "kafkascope"]
    assert {row["client_id"] for row in rows(seen.observed, "exchanges")} == {"kafkascope"}


def test_the_same_leaders_epochs_and_lags_of_the_quorum(seen: Seen, record_property: Any) -> None:
    observed = mart(seen.observed, "quorum_replicas", source="describe")
    captured = mart(seen.captured, "quorum_replicas", source="fetch")
    compared = 0
    for row in observed:
        at = row["observed_at"]
        mine = [
            candidate
            for candidate in captured
            if candidate["replica_id"] == row["replica_id"] and candidate["log_end_offset"] is not None
        ]
        if not mine[0]["observed_at"] + POLL_US <= at < mine[-1]["observed_at"] - POLL_US:
            # Before the capture's first sample, or after its last.
            continue
        same = around(mine, at, "observed_at")
        assert (row["leader_id"], row["leader_epoch"]) in {
            (candidate["leader_id"], candidate["leader_epoch"]) for candidate in same
        }
        assert row["role"] in {candidate["role"] for candidate in same}
        # A log only grows: what one saw lies between what the other saw before it and after it, however late on a
        # busy machine. Of a frozen follower that is one offset.
        assert same[0]["log_end_offset"] <= row["log_end_offset"] <= same[-1]["log_end_offset"], (row, same)
        compared += 1
    for rows_of_mart in (observed, captured):
        ends = {
            candidate["observed_at"]: candidate["log_end_offset"]
            for candidate in rows_of_mart
            if candidate["role"] == "leader"
        }
        for row in rows_of_mart:
            if row["lag"] is not None:
                assert row["lag"] == ends[row["observed_at"]] - row["log_end_offset"]
    record_property("measured", f"observe and capture: {compared} of {len(observed)} quorum rows compared")
    assert compared >= len(observed) * 0.8
    assert compared >= 30


def test_the_frozen_follower_is_as_far_behind_in_both(seen: Seen) -> None:
    farthest, subjects = [], []
    for lake, source in ((seen.observed, "describe"), (seen.captured, "fetch")):
        rows_found = [row for row in mart(lake, "quorum_replicas", source=source) if row["replica_id"] == seen.frozen]
        farthest.append(max(rows_found, key=lambda row: row["lag"] or 0))
        behind = [row for row in mart(lake, "findings") if row["rule"] == "quorum_follower_behind"]
        subjects.append({row["subject"] for row in behind})
    # With the cluster's id in it, which both know.
    assert subjects[0] == subjects[1]
    assert any(subject.startswith(f"node {seen.frozen} of cluster ") for subject in subjects[0])
    # How far behind depends on when one looked last; where it stood still does not.
    assert min(row["lag"] for row in farthest) >= BEHIND / 2
    assert farthest[0]["log_end_offset"] == farthest[1]["log_end_offset"]


def described(lake: str) -> Rows:
    """Every description of the group in the order of time: when, state, members."""
    states = [
        {
            "at": micros(row["response_at"]),
            "state": group["group_state"],
            "members": frozenset(member["member_id"] for member in group["members"]),
        }
        for row in rows(lake, "share_group_describe_response")
        for group in row["groups"]
        if group["group_id"] == GROUP and not group["error_code"]
    ]
    return sorted(states, key=lambda row: row["at"])


def test_the_same_states_and_members_of_the_share_group_at_the_same_times(seen: Seen) -> None:
    observed, captured = described(seen.observed), described(seen.captured)
    assert {row["state"] for row in observed} == {"Stable", "Empty"}
    assert max(len(row["members"]) for row in observed) == 2
    first, last = min(row["at"] for row in captured), max(row["at"] for row in captured)
    compared = [row for row in observed if first <= row["at"] <= last]
    assert len(compared) >= 5
    for row in compared:
        same = around(captured, row["at"])
        assert row["state"] in {candidate["state"] for candidate in same}
        assert row["members"] in {candidate["members"] for candidate in same}


def test_members_come_and_go_when_their_heartbeats_say_so(seen: Seen) -> None:
    """The members' own traffic, which the observer never saw."""
    changes: list[tuple[int, str, bool]] = []
    known: set[str] = set()
    requests = sorted(rows(seen.captured, "share_group_heartbeat_request"), key=lambda row: row["request_at"])
    for row in requests:
        member, at = row["member_id"], micros(row["request_at"])
        if row["member_epoch"] == -1:
            changes.append((at, member, False))
        elif member not in known and row["error"] is None and row["response_at"] is not None:
            # Its first ones may come before the group's coordinator is there.
            known.add(member)
            changes.append((micros(row["response_at"]), member, True))
    assert len(known) == 2
    observed = described(seen.observed)
    assert frozenset().union(*(row["members"] for row in observed)) == known
    for row in observed:
        times = [row["at"] - POLL_US, row["at"], *(at for at, _, _ in changes if abs(at - row["at"]) <= POLL_US)]
        assert row["members"] in [members_at(changes, at) for at in times]


def members_at(changes: list[tuple[int, str, bool]], at: int) -> frozenset[str]:
    members: set[str] = set()
    for when, member, joined in changes:
        if when <= at:
            (members.add if joined else members.discard)(member)
    return frozenset(members)


def test_the_marts_of_the_group_agree_by_the_minute(seen: Seen) -> None:
    observed = {row["minute_at"]: row for row in mart(seen.observed, "share_group_health", group_id=GROUP)}
    captured = {row["minute_at"]: row for row in mart(seen.captured, "share_group_health", group_id=GROUP)}
    compared = 0
    for minute in observed.keys() & captured.keys():
        last = [
            [row["members"] for row in described(lake) if row["at"] // MINUTE_US * MINUTE_US == minute][-1:]
            for lake in (seen.observed, seen.captured)
        ]
        # A minute that ends between a change and the poll that sees it is told differently, and rightly so; of one in
        # which only one of them had the group described, the other tells what its other answers said.
        if last[0] and last[0] == last[1]:
            compared += 1
            names = ("state", "members", "group_epoch", "assignment_epoch", "lag")
            assert [observed[minute][name] for name in names] == [captured[minute][name] for name in names]
    assert compared


def test_an_observer_is_no_recording_of_what_others_do(spark: "SparkSession", seen: Seen) -> None:
    """Else a member that it never hears would be taken for silent."""
    for lake, recorded in ((seen.observed, False), (seen.captured, True)):
        sources = Sources(spark, OpenLake(open_lake(lake), TABLES))
        assert bool(collect_facts(spark, sources, sources.absent)[0].recorded) is recorded


def test_no_secret_of_the_observer_is_in_its_lake(seen: Seen) -> None:
    secret = USERS["alice"].encode()
    for path in Path(seen.observed).rglob("*"):
        if path.is_file():
            assert secret not in path.read_bytes(), path
