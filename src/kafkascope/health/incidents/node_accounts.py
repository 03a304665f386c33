"""Describes incidents of nodes and of the quorum: a node that went down or froze, a lost leader, slow brokers."""

from kafkascope.formatting import count, span
from kafkascope.health.findings.brokers import Node, cluster_of, node_of
from kafkascope.health.findings.quorum import node as node_name
from kafkascope.health.findings.quorum import of_cluster
from kafkascope.health.findings.words import quoted, times
from kafkascope.health.incidents.account import Account, command, listed, number
from kafkascope.health.incidents.facts import AFTER_US, SAME_MOMENT_US, Election, Facts
from kafkascope.health.incidents.incident import key_of
from kafkascope.health.incidents.stories import Story
from kafkascope.health.incidents.subjects import LEADER_FAILED, lost_leaders

_NO_CHANGES = "In that time no topic, config or partition leader could change."
_DOWN = "Find out why it stopped: look at its log, its supervisor, and the kernel's log ({command})."
_FROZEN = "Look for a long garbage collection, a stalled disk or a suspended machine: its log shows a gap."
_OOM = command("dmesg --ctime | grep -i 'killed process'")


def leader_lost(story: Story, facts: Facts) -> Account:
    lost = [finding for finding in story.anchors if finding.rule == "quorum_leader_lost"]
    subject = story.anchors[0].subject
    cluster = cluster_of(subject)
    elections = [
        election
        for election in facts.elections
        if election.cluster == cluster
        and election.how in LEADER_FAILED
        and any(finding.from_at <= election.at <= finding.to_at for finding in lost)
    ]
    if len(lost) == len(story.anchors) and len(elections) == 1 and elections[0].previous is not None:
        return _one_leader_lost(elections[0], story, facts)
    nodes = [node for finding in lost for node in lost_leaders(finding, facts)]
    describe = command("kafkascope describe quorum", facts.brokers.of_cluster(cluster, [node.number for node in nodes]))
    longest = max(number(finding, "leaderless_ms") for finding in story.anchors)
    ended = " when the recording ended" if len(lost) < len(story.anchors) else ""
    who = f" ({listed(f'node {node.number}' for node in nodes)})" if nodes else ""
    losses = sum(number(finding, "elections") for finding in lost)
    title = f"The {_quorum(cluster, facts)} had no leader for {span(longest)}{ended}."
    if losses:
        lost_it = f"The {_quorum(cluster, facts)} lost its leader {times(losses)}{who}"
        title = f"{lost_it} and had none for up to {span(longest)}{ended}."
    return Account(
        "leader_lost",
        "quorum",
        subject,
        title,
        f"A majority of controllers was down, or they couldn't reach each other. {_NO_CHANGES}",
        "likely",
        "The controllers' logs name a leader for that time: then the recording lacks what the leader sent.",
        f"Start the controllers that are down, and format none of them. Who leads now: {describe}.",
    )


def _one_leader_lost(election: Election, story: Story, facts: Facts) -> Account:
    node = Node(election.cluster, election.previous or 0)
    name, took = quoted(node.number), span(election.lasted_ms)
    then = (
        f"node {quoted(election.leader)} took over after {took}"
        if election.leader is not None
        else f"no leader for {took}"
    )
    epoch = "" if election.epoch is None else f" (epoch {election.epoch})"
    new = "another leader" if election.leader is None else f"node {quoted(election.leader)}"
    elected = f"The other controllers elected {new}{epoch} {took} later. {_NO_CHANGES}"
    restart = next((at for at in facts.restarts.get(node, ()) if at >= election.at), None)
    describe = command("kafkascope describe quorum", facts.brokers.of_cluster(node.cluster, [node.number]))
    whole = f"Check that the quorum is complete again: {describe}."
    back = ""
    if restart is not None:
        gone = span((restart - story.from_at) / 1000)
        back = (
            f" It came back {gone} after its last sign of life and still considered itself the leader: its process had "
            "been restarted."
        )
    leader = f"Node {name}, leader of the {_quorum(node.cluster, facts)},"
    if election.how == "closed" or restart is not None:
        return Account(
            "node_down",
            "replica",
            of_cluster(node_name(node.number), node.cluster),
            f"{leader} went down; {then}.",
            f"Node {name} closed its connections without resigning, as a killed or crashed process does. "
            f"{elected}{back}",
            "certain" if restart is not None else "likely",
            f"The process of node {name} has run since before that time: then the network cut its connections.",
            f"{_DOWN.format(command=_OOM)} {whole}",
        )
    if election.how == "silent":
        return Account(
            "node_frozen",
            "replica",
            of_cluster(node_name(node.number), node.cluster),
            f"{leader} stopped responding; {then}.",
            f"Requests to node {name} got no response while its connections stayed open. {elected}",
            "likely",
            f"The log of node {name} continues without a gap in that time: then the network to it failed.",
            f"{_FROZEN} {whole}",
        )
    return Account(
        "leader_lost",
        "replica",
        of_cluster(node_name(node.number), node.cluster),
        f"The controllers lost contact with node {name}, leader of the {_quorum(node.cluster, facts)}; {then}.",
        f"A voter started an election, though nothing in the recording shows that node {name} failed. {elected}",
        "possible",
        f"The log of node {name} names another reason why it stopped leading.",
        f"Look at node {name} and at the network between the controllers. {whole}",
    )


def node_behind(story: Story, facts: Facts) -> Account:
    first = story.anchors[0]
    node = node_of(first.subject) or Node(None, -1)
    name = quoted(node.number)
    age, lag_ms, lag = (
        max(number(finding, figure) for finding in story.anchors) for figure in ("fetch_age_ms", "lag_ms", "lag")
    )
    back = min(
        (facts.back_at[key_of(finding)] for finding in story.anchors if key_of(finding) in facts.back_at), default=None
    )
    restarted = any(story.from_at <= at <= story.to_at + AFTER_US for at in facts.restarts.get(node, ()))
    # A process that froze keeps its connections; the kernel closes those of one that ended.
    closed = any(abs(at - story.from_at) <= SAME_MOMENT_US for at in facts.closings.get(node, ()))
    what = "Controller" if any(finding.rule == "quorum_follower_behind" for finding in story.anchors) else "Broker"
    what = f"{what} node {name}" + (f" of cluster {quoted(node.cluster)}" if facts.brokers.several_clusters else "")
    describe = command("kafkascope describe quorum", facts.brokers.of_cluster(node.cluster, [node.number]))
    seen = f"Its lag now: {describe}."
    behind = f" and fell {count(lag, 'record')} behind" if lag else ""
    subject = first.subject
    if not age and not lag_ms:
        unknown = max(number(finding, "unknown_ms") for finding in story.anchors)
        return Account(
            "node_down",
            "replica",
            subject,
            f"Node {name} is known to the quorum and had not fetched from its leader for {span(unknown)}.",
            "The leader knows the node's id and has received no fetch from it: it is down, or can't reach the leader.",
            "likely",
            f"The log of node {name} shows that it fetches from that leader.",
            f"Start the node, or check that it reaches the leader: `controller.quorum.bootstrap.servers`, TLS and "
            f"SASL of the controller listener. {seen}",
        )
    if age < lag_ms / 2:
        return Account(
            "node_slow",
            "replica",
            subject,
            f"{what} lagged behind the metadata log by up to {span(lag_ms)}.",
            "It fetched all the time but didn't keep up: its disk or its network is slow.",
            "likely",
            f"The log of node {name} shows that it paused for as long.",
            f"Look at the disk of node {name} and at its network to the leader. {seen}",
        )
    if closed and not restarted:
        later = f"came back after {span((back - story.from_at) / 1000)}" if back is not None else "was not seen again"
        return Account(
            "node_down",
            "replica",
            subject,
            f"{what} went down and {later}.",
            "It closed the connection over which it fetched the metadata log, as a process does that is stopped, is "
            f"killed or crashes. It sent no fetch for {span(age)}{behind}.",
            "likely",
            f"The process of node {name} has run since before that time: then the network cut its connection.",
            f"Nothing to do if it was stopped on purpose. Otherwise f{_DOWN.format(command=_OOM)[1:]} {seen}",
        )
    if restarted or (back is None and (facts.recorded_until or 0) - story.to_at > AFTER_US):
        later = "and was restarted" if restarted else "and was not seen to come back"
        return Account(
            "node_down",
            "replica",
            subject,
            f"{what} stopped fetching the metadata log {later}.",
            f"It sent no fetch for {span(age)}{behind}.",
            "certain" if restarted else "likely",
            f"The process of node {name} has run since before that time.",
            f"{_DOWN.format(command=_OOM)} {seen}",
        )
    again = (
        "Then it fetched again from the same offset, and nothing shows that it restarted: it had paused."
        if back is not None
        else "The recording doesn't show whether it came back."
    )
    return Account(
        "node_frozen",
        "replica",
        subject,
        f"{what} froze for at least {span(age)}{behind} in the metadata log."
        if behind
        else f"{what} froze for at least {span(age)}.",
        f"It sent no fetch in that time, though a healthy one fetches every half second. {again}",
        "likely" if back is not None else "possible",
        f"The log of node {name} shows a start in that time: then its process went down. Or it continues without a "
        "gap: then the network failed.",
        f"{_FROZEN} {seen}",
    )


def broker_slow(story: Story, facts: Facts) -> Account:
    apis = [finding.subject.partition(" at ")[0] for finding in story.anchors]
    addresses = {finding.subject.partition(" at ")[2] for finding in story.anchors} - {""}
    worst = max(number(finding, "p99_ms") for finding in story.anchors)
    several = len(set(apis)) > 1
    address = min(addresses) if len(addresses) == 1 else None
    node = facts.brokers.nodes.get(address) if address else None
    named = f" (node {quoted(node.number)})" if node is not None else ""
    where = (
        f"Broker {quoted(address)}{named}"
        if address
        else f"{count(len(addresses), 'broker')}"
        if addresses
        else "Brokers"
    )
    return Account(
        "broker_slow",
        "broker" if address else "api",
        address or story.anchors[0].subject,
        f"{where} responded slowly: p99 latency of {listed(apis)} up to {span(worst)}.",
        "Calls of several kinds were slow at the same time, so the cause is the broker rather than one kind of work: "
        "too much load, a slow disk or a pause."
        if several
        else "Only calls of this kind were slow, so the cause is their own work rather than the whole broker.",
        "likely" if several else "possible",
        "The broker's request log shows short TotalTimeMs for that time: then the network or the clients were slow.",
        "The broker's request log, or its TotalTimeMs metrics by request, show where the time goes: "
        "RequestQueueTimeMs (num.io.threads), LocalTimeMs (disk), RemoteTimeMs (replicas), ResponseQueueTimeMs "
        "(num.network.threads).",
    )


def _quorum(cluster: str | None, facts: Facts) -> str:
    return f"quorum of cluster {quoted(cluster)}" if facts.brokers.several_clusters else "quorum"
