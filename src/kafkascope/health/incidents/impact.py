"""Measures what an incident cost, from the figures of its findings and the facts of its time."""

from collections import Counter

from kafkascope.formatting import count
from kafkascope.health.findings.brokers import Node
from kafkascope.health.findings.diagnosis import Finding
from kafkascope.health.findings.episodes import MINUTE_US
from kafkascope.health.findings.words import counted
from kafkascope.health.incidents.causes import OUTAGE_ERRORS
from kafkascope.health.incidents.facts import AFTER_US, SAME_MOMENT_US, Facts
from kafkascope.health.incidents.incident import WEIGHTS
from kafkascope.health.incidents.stories import Story
from kafkascope.health.incidents.subjects import LEADER_FAILED, group_of

_LATE = frozenset({"share_lock_expired", "share_member_disconnected", "share_moved"})
# For an outage, only what began during it counts.
_PASSING = "api_passing_errors"
_OUTAGES = ("leader_lost", "node_behind")
_FAILED = {
    "api_error_rate": "errors",
    _PASSING: "errors",
    "api_unanswered": "unanswered",
    "share_refused_acknowledgements": "calls",
    "share_session_reset": "calls",
    "streams_topology_refused": "calls",
}
_LEADERLESS = frozenset({"quorum_leader_lost", "quorum_leaderless"})
_OWNERLESS = frozenset({"streams_task_unheld", "streams_long_pause"})


def impact_of(story: Story, facts: Facts) -> tuple[dict[str, int | float], tuple[str, ...]]:
    """Returns the figures that aren't 0, and notes about what is below the thresholds of the rules."""
    sums: Counter[str] = Counter()
    for finding in story.findings():
        if finding.rule in _LATE:
            sums["records_late"] += _figure(finding, "records")
        elif finding.rule == "share_poison_record":
            sums["records_archived"] += _figure(finding, "records")
        elif finding.rule in _FAILED and not (finding.rule == _PASSING and _is_outage(story)):
            sums["calls_failed"] += _figure(finding, _FAILED[finding.rule])
    seconds = {
        "seconds_without_leader": _without_leader(story, facts) / 1_000_000,
        "seconds_without_owner": _without_owner(story, facts) / 1_000_000,
    }
    notes = []
    nodes = {Node(*entity[1:]) for entity in story.entities if entity[0] == "node"}  # type: ignore[arg-type]
    if _is_outage(story):
        redirected, unanswered = _redirected(story, facts, nodes), _unanswered(story, facts, nodes)
        sums["calls_failed"] += redirected.total() + unanswered
        if redirected:
            errors = counted(redirected)
            notes.append(f"During the incident clients were redirected, as the protocol intends: {errors}.")
        if unanswered:
            notes.append(f"{count(unanswered, 'other call')} to the node got no response.")
    measured: dict[str, int | float] = {name: number for name, number in sums.items() if number}
    measured |= {name: round(number, 3) for name, number in seconds.items() if number}
    return {name: measured[name] for name in WEIGHTS if name in measured}, tuple(notes)


def _figure(finding: Finding, name: str) -> int:
    value = finding.figures.get(name, 0)
    return int(value) if isinstance(value, int | float) else 0


def _without_leader(story: Story, facts: Facts) -> int:
    """Sums the elections of its time; if none is known, takes the longest that its findings report."""
    lost = [finding for finding in story.findings() if finding.rule in _LEADERLESS]
    if not lost:
        return 0
    clusters = {entity[1] for entity in story.entities if entity[0] == "quorum"}
    elections = sum(
        election.lasted_ms
        for election in facts.elections
        if election.cluster in clusters
        and election.how in LEADER_FAILED
        and any(finding.from_at <= election.at <= finding.to_at for finding in lost)
    )
    open_end = sum(_figure(finding, "leaderless_ms") for finding in lost if finding.rule == "quorum_leaderless")
    longest = max(_figure(finding, "leaderless_ms") for finding in lost)
    return 1000 * (elections + open_end if elections else longest)


def _without_owner(story: Story, facts: Facts) -> int:
    """Sums over all tasks that lost their owner by this; each counts at least as long as a finding reports."""
    durations = {
        finding.subject: finding.to_at - finding.from_at for finding in story.findings() if finding.rule in _OWNERLESS
    }
    groups = {group_of(finding) for finding in story.findings() if finding.rule.startswith("streams_")}
    end = facts.recorded_until or story.to_at
    seen = [
        max(0, (end if until is None else until) - since)
        for group in groups
        for since, until in facts.unheld.get(group or "", ())
        if story.from_at - SAME_MOMENT_US <= since <= story.to_at
    ]
    return max(sum(seen), sum(durations.values()))


def _is_outage(story: Story) -> bool:
    return story.cause is not None and story.cause.name in _OUTAGES


def _redirected(story: Story, facts: Facts, nodes: set[Node]) -> Counter[str]:
    """Counts redirects by all brokers of a cluster that lost its leader, otherwise by the node itself."""
    clusters = {entity[1] for entity in story.entities if entity[0] == "quorum"}
    brokers, whole = facts.brokers, story.cause is not None and story.cause.name == "leader_lost"
    errors: Counter[str] = Counter()
    for redirect in facts.redirects:
        of_cluster = redirect.address in brokers.cluster_of and brokers.cluster_of[redirect.address] in clusters
        if (
            redirect.error in OUTAGE_ERRORS
            and (of_cluster if whole else brokers.nodes.get(redirect.address) in nodes)
            and story.from_at - SAME_MOMENT_US <= redirect.first_at <= story.to_at + AFTER_US
        ):
            errors[redirect.error] += redirect.calls
    return errors


def _unanswered(story: Story, facts: Facts, nodes: set[Node]) -> int:
    return sum(
        calls
        for (minute, address), calls in facts.unanswered.items()
        if facts.brokers.nodes.get(address) in nodes and story.from_at - MINUTE_US < minute <= story.to_at
    )
