"""`describe quorum` agrees with Kafka's MetadataQuorumCommand, field by field: healthy, with a frozen follower, and
after the leader was killed."""

import json
import re

import pytest

from kafkascope.client.describe.cluster import describe_cluster
from kafkascope.client.describe.groups import describe_groups
from kafkascope.client.describe.quorum import QuorumView, ReplicaView, describe_quorum
from kafkascope.client.settings import Settings, parse_addresses
from kafkascope.errors import UsageError
from lab.cluster import Cluster
from lab.settings import CONTROLLER, PLAIN
from lab.wire import until
from tests.client.describe.live import QUORUM, Tools, see

SECONDS = 60.0


def replicas(view: QuorumView) -> dict[int, ReplicaView]:
    return {replica.node_id: replica for replica in (*view.voters, *view.observers)}


def offsets(view: QuorumView) -> dict[int, tuple[int | None, int | None]]:
    return {number: (replica.log_end_offset, replica.lag) for number, replica in replicas(view).items()}


def replication(lines: list[str]) -> dict[int, list[str]]:
    return {int(line.split()[0]): line.split() for line in lines[1:]}


def status(lines: list[str]) -> dict[str, str]:
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}


def beside(tools: Tools, where: str, what: str) -> tuple[QuorumView, list[str], QuorumView]:
    """Looks of ours around one of the tool's, between which the log did not grow: it does so twice a second."""

    def same() -> tuple[QuorumView, list[str], QuorumView] | None:
        before = see(where, describe_quorum)
        lines = tools.run(QUORUM, "describe", what, bootstrap=where)
        after = see(where, describe_quorum)
        still = offsets(before) == offsets(after) and before.high_watermark == after.high_watermark
        return (before, lines, after) if still else None

    return until("a moment without new records", same, SECONDS)


def assert_same_replication(before: QuorumView, lines: list[str], after: QuorumView) -> None:
    rows, firsts, lasts = replication(lines), replicas(before), replicas(after)
    assert rows.keys() == firsts.keys()
    for number, row in rows.items():
        first, last = firsts[number], lasts[number]
        assert row[1] == first.directory_id
        assert row[6].lower() == first.role
        if first.log_end_offset is None:
            # On purpose: a replica that has not fetched from this leader has log end −1, and the tool subtracts that.
            # Its lag may be anything; we say that it is unknown.
            assert row[2] == "-1" and int(row[3]) > 0 and first.lag is None
            continue
        assert (row[2], row[3]) == (str(first.log_end_offset), str(first.lag))
        for text, earlier, later in (
            (row[4], first.last_fetch_timestamp, last.last_fetch_timestamp),
            (row[5], first.last_caught_up_timestamp, last.last_caught_up_timestamp),
        ):
            assert earlier is not None and later is not None and earlier <= int(text) <= later


def assert_same_status(before: QuorumView, lines: list[str]) -> None:
    leader_line = status(lines)
    assert leader_line["ClusterId"] == before.cluster_id
    assert leader_line["LeaderId"] == str(before.controller_id)
    assert leader_line["LeaderEpoch"] == str(before.leader_epoch)
    assert leader_line["HighWatermark"] == str(before.high_watermark)
    for name, ours in (("CurrentVoters", before.voters), ("CurrentObservers", before.observers)):
        nodes = {node["id"]: node for node in json.loads(leader_line[name])}
        assert nodes.keys() == {replica.node_id for replica in ours}
        for replica in ours:
            assert nodes[replica.node_id]["directoryId"] == replica.directory_id
            assert tuple(nodes[replica.node_id].get("endpoints", ())) == replica.endpoints
    lag, wait = int(leader_line["MaxFollowerLag"]), int(leader_line["MaxFollowerLagTimeMs"])
    if before.max_follower_lag is None:
        assert lag > 0  # the tool's −1, subtracted
    else:
        assert lag == before.max_follower_lag
    # Of a follower that has every record the tool tells how old its last fetch is; it is not behind at all.
    if before.max_follower_lag == 0:
        assert before.max_follower_lag_ms == 0 and wait >= 0


def test_healthy_quorum_is_as_kafkas_tool_has_it(quorum_cluster: Cluster, tools: Tools) -> None:
    where = quorum_cluster.bootstrap
    before, lines, after = beside(tools, where, "--replication")
    assert_same_replication(before, lines, after)
    assert before.troubles == () and before.gaps == ()
    assert before.controller_id == quorum_cluster.leader()
    # what the brokers are set to, not what Kafka's default happens to be
    assert before.fetch_timeout_known and before.fetch_timeout_ms == 2000
    before, lines, _ = beside(tools, where, "--status")
    assert_same_status(before, lines)


def test_controllers_asked_directly_say_the_same(quorum_cluster: Cluster) -> None:
    addresses = ",".join(quorum_cluster.nodes[number].place.address(CONTROLLER[0]) for number in (1, 2, 3))
    where = Settings(parse_addresses(addresses), controllers=True)
    view, other = see(where, describe_quorum), see(quorum_cluster.bootstrap, describe_quorum)
    assert (view.controller_id, view.leader_epoch) == (other.controller_id, other.leader_epoch)
    assert replicas(view).keys() == replicas(other).keys()
    nodes = see(where, describe_cluster).nodes
    assert [(node.node_id, node.roles) for node in nodes] == [(number, ("controller",)) for number in (1, 2, 3)]
    with pytest.raises(UsageError, match="give a broker's address"):
        see(where, describe_groups)


def test_frozen_follower_falls_behind_in_both(quorum_cluster: Cluster, tools: Tools) -> None:
    leader = quorum_cluster.leader()
    frozen = next(number for number in (1, 2, 3) if number != leader)
    where = quorum_cluster.nodes[leader].place.address(PLAIN[0])
    quorum_cluster.freeze(frozen)
    try:
        until(
            "the frozen follower behind",
            lambda: replicas(see(where, describe_quorum))[frozen].behind,
            SECONDS,
        )
        before, lines, after = beside(tools, where, "--replication")
        assert_same_replication(before, lines, after)
        # the frozen node is asked for nothing
        assert before.gaps == ()
        late = replicas(before)[frozen]
        assert late.behind and re.match(rf"Voter node `{frozen}` didn't fetch", late.behind)
        assert [trouble.rule for trouble in before.troubles] == ["quorum_follower_behind"]
        assert all(replica.behind is None for number, replica in replicas(before).items() if number != frozen)
        before, lines, _ = beside(tools, where, "--status")
        assert_same_status(before, lines)
        # both reckon against the leader's clock, from when it was last caught up
        tool_lag, held = int(status(lines)["MaxFollowerLagTimeMs"]), before.max_follower_lag_ms
        assert held is not None and held <= tool_lag
    finally:
        quorum_cluster.thaw(frozen)
    until("nobody behind", lambda: not see(where, describe_quorum).troubles, SECONDS)


def test_killed_leader_has_unknown_lag_where_the_tool_subtracts(quorum_cluster: Cluster, tools: Tools) -> None:
    killed = quorum_cluster.leader()
    alive = next(number for number in (1, 2, 3) if number != killed)
    where = quorum_cluster.nodes[alive].place.address(PLAIN[0])
    quorum_cluster.kill(killed)
    try:

        def led() -> QuorumView | None:
            view = see(where, describe_quorum)
            known = [replica for number, replica in replicas(view).items() if number != killed]
            fetched = all(replica.log_end_offset is not None for replica in known) and len(view.observers) == 1
            return view if view.controller_id != killed and fetched else None

        until("another leader that everybody follows", led, SECONDS)
        before, lines, after = beside(tools, where, "--replication")
        assert_same_replication(before, lines, after)
        gone = replicas(before)[killed]
        assert (gone.lag, gone.lag_ms, gone.last_fetch_timestamp) == (None, None, None)
        assert before.max_follower_lag is None
        before, lines, _ = beside(tools, where, "--status")
        assert_same_status(before, lines)
    finally:
        quorum_cluster.start(killed)
        quorum_cluster.wait_until_ready()
