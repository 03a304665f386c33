"""Collects facts that incidents need and findings lack: the addresses of nodes, who was elected, which errors a finding
counted. Each mart is read once, one row at a time; memory grows with the findings and the brokers."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkascope.health.findings.api import named_error, rule_of_error
from kafkascope.health.findings.brokers import Brokers, Node, node_of
from kafkascope.health.findings.diagnosis import Finding
from kafkascope.health.findings.episodes import MINUTE_US
from kafkascope.health.findings.recordings import OBSERVED
from kafkascope.health.incidents.incident import FindingKey, key_of
from kafkascope.health.incidents.subjects import group_of

Row = Mapping[str, Any]

# The session timeout (45 s) and three heartbeats of 5 s: the consequences of a cause have begun by then.
AFTER_US = MINUTE_US
# Tolerance for one moment in different rows: clocks differ, and rows aren't in exact order.
SAME_MOMENT_US = 1_000_000
_OUTCOME_RULES = {
    "lock_expired": "share_lock_expired",
    "disconnected": "share_member_disconnected",
    "moved": "share_moved",
}
REPLICAS_BEHIND = ("quorum_follower_behind", "quorum_observer_behind", "quorum_replica_never_fetched")
_OUTAGES = ("quorum_leader_lost", "quorum_leaderless", *REPLICAS_BEHIND)
# A replica that fetched this recently is back.
_FRESH_MS = 1_000
# As many names per finding are kept; a page shows fewer.
_MOST_NAMES = 1_000


class Election(NamedTuple):
    """`how` is what ended the previous leader's time: `closed` connections, `silent`, or the cause of the election."""

    at: int
    cluster: str | None
    leader: int | None
    previous: int | None
    epoch: int | None
    lasted_ms: int
    how: str


@dataclass(slots=True)
class Named:
    """The names in the rows of one finding, with the number of calls or records of each."""

    errors: Counter[str] = field(default_factory=Counter)
    clients: Counter[str] = field(default_factory=Counter)
    brokers: Counter[str] = field(default_factory=Counter)
    partitions: Counter[str] = field(default_factory=Counter)


class Intervals:
    """Checks if a moment is within any of many intervals."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(intervals):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def __contains__(self, at: int) -> bool:
        place = bisect_right(self._starts, at) - 1
        return place >= 0 and at <= self._ends[place]


class Redirect(NamedTuple):
    """Responses of one kind that redirected one client, in one minute at one broker."""

    first_at: int
    address: str
    error: str
    calls: int


@dataclass(slots=True)
class Facts:
    brokers: Brokers = field(default_factory=Brokers)
    elections: list[Election] = field(default_factory=list)
    restarts: dict[Node, list[int]] = field(default_factory=dict)
    closings: dict[Node, list[int]] = field(default_factory=dict)  # of the connection it fetches over
    back_at: dict[FindingKey, int] = field(default_factory=dict)
    named: defaultdict[FindingKey, Named] = field(default_factory=lambda: defaultdict(Named))
    redirects: list[Redirect] = field(default_factory=list)  # during outages
    unanswered: defaultdict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))  # minute, address
    unheld: defaultdict[str, list[tuple[int, int | None]]] = field(default_factory=lambda: defaultdict(list))
    recorded_until: int | None = None


def read_facts(findings: Iterable[Finding], marts: Mapping[str, Iterable[Row]]) -> Facts:
    facts = Facts()
    by_rule: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule].append(finding)

    def rows(mart: str) -> Iterable[Row]:
        return marts.get(mart, ())

    for row in rows("captures"):
        if row["kind"] != OBSERVED and row["last_at"] is not None:
            facts.recorded_until = max(facts.recorded_until or 0, row["last_at"])
    facts.brokers = Brokers(rows("brokers"), rows("groups"))
    _quorum_events(rows("quorum_events"), facts)
    _replicas(rows("quorum_replicas"), by_rule, facts)
    _deliveries(rows("share_deliveries"), by_rule, facts)
    _unheld(rows("streams_unheld"), by_rule, facts)
    _errors(rows("api_errors"), by_rule, facts)
    _unanswered(rows("api_latency"), by_rule, facts)
    return facts


def _quorum_events(rows: Iterable[Row], facts: Facts) -> None:
    for row in rows:
        cluster, at, node = row.get("cluster_id"), row["occurred_at"], row["node_id"]
        if row["kind"] == "late_resignation" and node is not None:
            facts.restarts.setdefault(Node(cluster, node), []).append(at)
        elif row["kind"] == "disconnected" and node is not None:
            facts.closings.setdefault(Node(cluster, node), []).append(at)
        elif row["kind"] == "elected" and row["previous_leader_id"] is not None:
            detail, cause = row["detail"] or "", row["cause"] or "unknown"
            how = cause
            if cause == "lost":
                how = "closed" if detail.startswith("connection") else "silent"
            facts.elections.append(
                Election(at, cluster, node, row["previous_leader_id"], row["epoch"], row["duration_ms"] or 0, how)
            )
    facts.elections.sort()
    for times in facts.restarts.values():
        times.sort()


def _replicas(rows: Iterable[Row], by_rule: Mapping[str, list[Finding]], facts: Facts) -> None:
    """Notes when a replica that was behind is first seen to fetch again."""
    watched: defaultdict[Node, list[Finding]] = defaultdict(list)
    for rule in REPLICAS_BEHIND:
        for finding in by_rule.get(rule, ()):
            node = node_of(finding.subject)
            if node is not None:
                watched[node].append(finding)
    ends = {node: sorted(finding.to_at for finding in findings) for node, findings in watched.items()}
    fresh: dict[tuple[Node, int], int] = {}  # number of ended episodes so far, to when it was first seen
    for row in rows if watched else ():
        node = Node(row.get("cluster_id"), row["replica_id"])
        if node not in ends or row["lag"] is None or max(row["fetch_age_ms"] or 0, row["lag_ms"] or 0) > _FRESH_MS:
            continue
        at = row["observed_at"]
        place = (node, bisect_left(ends[node], at))
        fresh[place] = min(fresh.get(place, at), at)
    for node, findings in watched.items():
        for finding in findings:
            after = range(bisect_right(ends[node], finding.to_at), len(ends[node]) + 1)
            seen = next((fresh[node, place] for place in after if (node, place) in fresh), None)
            if seen is not None:
                facts.back_at[key_of(finding)] = seen


def _deliveries(rows: Iterable[Row], by_rule: Mapping[str, list[Finding]], facts: Facts) -> None:
    by_subject: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for rule in _OUTCOME_RULES.values():
        for finding in by_rule.get(rule, ()):
            by_subject[rule, finding.subject].append(finding)
    for row in rows if by_subject else ():
        if row["outcome"] not in _OUTCOME_RULES:
            continue
        rule, group = _OUTCOME_RULES[row["outcome"]], row["group_id"]
        at = row["outcome_at"] if row["outcome_at"] is not None else row["acquired_at"] or 0
        for subject in (group, f"{group}/{row['member_id']}"):
            for finding in by_subject.get((rule, subject), ()):
                if finding.from_at <= at <= finding.to_at:
                    named = facts.named[key_of(finding)]
                    _count(named.clients, row["client_id"], 1)
                    _count(named.brokers, row["broker_address"], 1)
                    _count(named.partitions, f"{row['topic'] or row['topic_id']}-{row['partition']}", 1)


def _unheld(rows: Iterable[Row], by_rule: Mapping[str, list[Finding]], facts: Facts) -> None:
    """Adds tasks that lost their owner while the group was in trouble; a new task had none to lose."""
    by_group: defaultdict[str, list[Finding]] = defaultdict(list)
    for rule, findings in by_rule.items():
        for finding in findings if rule.startswith("streams_") else ():
            by_group[group_of(finding) or ""].append(finding)
    troubled = {group: Intervals(_reach(finding) for finding in findings) for group, findings in by_group.items()}
    for row in rows if troubled else ():
        group = row["group_id"]
        if row["cause"] != "new" and group in troubled and row["from_at"] in troubled[group]:
            facts.unheld[group].append((row["from_at"], row["to_at"]))


def _reach(finding: Finding) -> tuple[int, int]:
    """The interval in which its consequences may begin."""
    return finding.from_at - SAME_MOMENT_US, finding.to_at + AFTER_US


def _errors(rows: Iterable[Row], by_rule: Mapping[str, list[Finding]], facts: Facts) -> None:
    by_subject: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for rule, findings in by_rule.items():
        for finding in findings:
            by_subject[rule, finding.subject].append(finding)
    outages = Intervals(_reach(finding) for rule in _OUTAGES for finding in by_rule.get(rule, ()))
    for row in rows:
        api, error, client = named_error(row)
        rule, broker, calls = rule_of_error(api, error), row["broker_address"], row["calls"]
        findings = [
            finding
            for subject in (api, client)
            for finding in by_subject.get((rule, subject), ())
            if row["first_at"] <= finding.to_at and row["last_at"] >= finding.from_at
        ]
        for finding in findings:
            named = facts.named[key_of(finding)]
            _count(named.errors, error, calls)
            _count(named.clients, client, calls)
            _count(named.brokers, broker, calls)
        if rule == "api_passing_errors" and broker is not None and row["first_at"] in outages:
            facts.redirects.append(Redirect(row["first_at"], broker, error, calls))


def _unanswered(rows: Iterable[Row], by_rule: Mapping[str, list[Finding]], facts: Facts) -> None:
    for row in rows:
        broker, minute = row["broker_address"], row["minute_at"]
        if row["long_poll"] or not row["unanswered"] or broker is None:
            continue
        findings = [
            finding
            for finding in by_rule.get("api_unanswered", ())
            if finding.subject == row["api"] and finding.from_at <= minute < max(finding.to_at, finding.from_at + 1)
        ]
        for finding in findings:
            _count(facts.named[key_of(finding)].brokers, broker, row["unanswered"])
        if not findings:
            facts.unanswered[minute, broker] += row["unanswered"]


def _count(counter: Counter[str], name: str | None, number: int) -> None:
    if name is not None and (name in counter or len(counter) < _MOST_NAMES):
        counter[name] += number
