"""Reads the subject of a finding: the node, cluster, group or member that it names, and everything that it touches."""

from typing import TYPE_CHECKING

from kafkascope.health.findings.brokers import Node, cluster_of, node_of
from kafkascope.health.findings.diagnosis import Finding
from kafkascope.health.incidents.incident import key_of

if TYPE_CHECKING:
    from kafkascope.health.incidents.facts import Facts

Entity = tuple[str | int | None, ...]  # its kind, and its name

# Rules about a leader whose time ended.
LEADER_FAILED = frozenset({"closed", "silent", "timeout"})
_PARTS_OF_GROUPS = frozenset({"share_member", "share_partition", "streams_member", "streams_task"})
_GROUPS = frozenset({"share_group", "streams_group"})


def group_of(finding: Finding) -> str | None:
    """A subject is a group, or a group, a slash and a part of it; the group's name may have slashes too."""
    if finding.subject_kind in _GROUPS:
        return finding.subject
    return finding.subject.rpartition("/")[0] if finding.subject_kind in _PARTS_OF_GROUPS else None


def client_of(finding: Finding) -> str | None:
    """The client id of one member in the form that the finding counts: `steady 3`."""
    clients = finding.figures.get("clients")
    if finding.subject_kind not in ("share_member", "streams_member") or not isinstance(clients, str):
        return None
    return clients.rpartition(" ")[0] or None


def touches(finding: Finding, facts: "Facts") -> frozenset[Entity]:
    """Two findings that touch the same entity and overlap in time can be one story."""
    entities: set[Entity] = set()
    kind, subject = finding.subject_kind, finding.subject
    named = facts.named.get(key_of(finding))
    if kind == "replica":
        node = node_of(subject)
        if node is not None:
            entities |= {("node", *node), ("quorum", node.cluster)}
    elif kind == "quorum":
        entities.add(("quorum", cluster_of(subject)))
        if finding.rule == "quorum_leader_lost":
            entities |= {("node", *node) for node in lost_leaders(finding, facts)}
    elif kind in ("partition", "replica_log"):
        entities.add(("quorum", cluster_of(subject)))
    elif kind == "cluster":
        entities.add(("quorum", subject))
    elif kind == "client":
        entities.add(("client", subject))
    elif kind == "api":
        api, _, address = subject.partition(" at ")
        entities.add(("api", api))
        entities |= _of_broker(address, facts) if address else set()
    elif kind == "recording":
        entities.add(("recording", subject))
    group = group_of(finding)
    if group is not None:
        entities |= {("group", group), (kind, subject)}
        client = client_of(finding)
        entities |= {("client", client)} if client is not None else set()
        for address in facts.brokers.coordinators.get(group, ()):
            node = facts.brokers.nodes.get(address)
            entities |= {("coordinator", *node)} if node is not None else set()
    if named is not None:
        entities |= {("client", client) for client in named.clients}
        if group is not None:
            entities |= {("share_partition", f"{group}/{partition}") for partition in named.partitions}
        for address in named.brokers:
            entities |= _of_broker(address, facts)
    return frozenset(entities)


def lost_leaders(finding: Finding, facts: "Facts") -> list[Node]:
    """The leaders that a finding reports as lost, each once."""
    cluster = cluster_of(finding.subject)
    lost = [
        Node(cluster, election.previous)
        for election in facts.elections
        if election.cluster == cluster
        and election.previous is not None
        and election.how in LEADER_FAILED
        and finding.from_at <= election.at <= finding.to_at
    ]
    return list(dict.fromkeys(lost))


def _of_broker(address: str, facts: "Facts") -> set[Entity]:
    entities: set[Entity] = {("broker", address)}
    if address in facts.brokers.cluster_of:
        entities.add(("quorum", facts.brokers.cluster_of[address]))
    if address in facts.brokers.nodes:
        entities.add(("node", *facts.brokers.nodes[address]))
    return entities
