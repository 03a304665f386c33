"""Joins findings into stories: each finding shows a cause, is a consequence of one, or stays alone. The order of the
findings doesn't matter."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kafkascope.health.findings.diagnosis import Finding
from kafkascope.health.findings.episodes import MINUTE_US
from kafkascope.health.incidents.causes import CAUSES, Cause, Join
from kafkascope.health.incidents.facts import AFTER_US, SAME_MOMENT_US, Facts
from kafkascope.health.incidents.incident import FindingKey, key_of
from kafkascope.health.incidents.subjects import Entity, touches

# The most specific first: two findings about one member are one story rather than two about one group.
_KINDS = (
    "share_member",
    "streams_member",
    "share_partition",
    "streams_task",
    "client",
    "node",
    "broker",
    "group",
    "coordinator",
    "quorum",
    "api",
    "recording",
)
# Rules that count by the minute: their findings begin up to a minute before the cause.
_BY_THE_MINUTE = (
    "api_",
    "client_throttled",
    "share_lag_growing",
    "share_near_limit",
    "share_no_members",
    "share_redelivery_storm",
    "share_slow_acknowledgement",
    "share_standing_still",
    "streams_fenced_members",
    "streams_many_moves",
    "streams_shutdown",
    "streams_standbys_missing",
)


def _joins() -> dict[tuple[str, str], list[tuple[int, Join]]]:
    """Maps cause and rule of the consequence to the place of the cause in the table, and how it joins."""
    joins: dict[tuple[str, str], list[tuple[int, Join]]] = {}
    for order, cause in enumerate(CAUSES):
        for join in cause.joins:
            for rule in join.rules:
                joins.setdefault((cause.name, rule), []).append((order, join))
    return joins


_JOINS = _joins()


@dataclass(slots=True)
class Story:
    """`consequences` are roles and findings. `cause` is None if a finding stays alone."""

    cause: Cause | None
    anchors: list[Finding]
    entities: set[Entity]
    from_at: int
    to_at: int
    consequences: list[tuple[str, Finding]] = field(default_factory=list)

    def findings(self) -> list[Finding]:
        return [*self.anchors, *(finding for _, finding in self.consequences)]


class Stories:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._stories: list[Story] = []
        self._touched: dict[FindingKey, frozenset[Entity]] = {}

    def _touches(self, finding: Finding) -> frozenset[Entity]:
        key = key_of(finding)
        if key not in self._touched:
            self._touched[key] = touches(finding, self._facts)
        return self._touched[key]

    def join(self, findings: Iterable[Finding]) -> list[Story]:
        """Each finding is in one story; one that neither shows a cause nor has one is a story by itself."""
        left = sorted(findings, key=lambda finding: (finding.from_at, *key_of(finding)))
        for cause in CAUSES:
            left = self._tell(cause, left)
        alone = [Story(None, [finding], set(), finding.from_at, finding.to_at) for finding in self._explain(left)]
        return self._stories + alone

    def _tell(self, cause: Cause, findings: list[Finding]) -> list[Finding]:
        """A finding that an earlier cause explains doesn't show a later one."""
        others, opened = [], list[Story]()
        for finding in findings:
            shows = finding.rule in cause.anchors and (cause.takes is None or cause.takes(finding, self._facts))
            if not shows or self._best(finding, self._stories) is not None:
                others.append(finding)
                continue
            entities = self._touches(finding)
            story = next((story for story in opened if _is_one(cause, story, finding, entities)), None)
            if story is None:
                opened.append(Story(cause, [finding], set(entities), finding.from_at, finding.to_at))
                continue
            story.anchors.append(finding)
            story.entities |= entities
            story.to_at = max(story.to_at, finding.to_at)
        self._stories += opened
        return others

    def _explain(self, findings: list[Finding]) -> list[Finding]:
        unexplained = []
        for finding in findings:
            best = self._best(finding, self._stories)
            if best is None:
                unexplained.append(finding)
            else:
                role, story = best
                story.consequences.append((role, finding))
        return unexplained

    def _best(self, finding: Finding, stories: list[Story]) -> tuple[str, Story] | None:
        """Picks the story with the most specific entity in common; among equals the one whose cause is earliest in the
        table, then the one that began nearest to the finding: a finding that counts by the minute may begin before its
        cause."""
        best: tuple[tuple[int, int, int, int], str, Story] | None = None
        for story in stories:
            for order, join in _JOINS.get((story.cause.name, finding.rule), ()) if story.cause else ():
                telling = self._telling(join, story, finding)
                if telling is None:
                    continue
                rank = (telling, order, abs(story.from_at - finding.from_at), -story.from_at)
                if best is None or rank < best[0]:
                    best = (rank, join.role, story)
        return None if best is None else best[1:]

    def _telling(self, join: Join, story: Story, finding: Finding) -> int | None:
        """Ranks what they have in common, 0 being the most specific; None if the finding isn't a consequence."""
        if not _follows(story, finding, join.after_us):
            return None
        if join.errors is not None:
            named = self._facts.named.get(key_of(finding))
            if named is None or not named.errors or not set(named.errors) <= join.errors:
                return None
        if join.apis is not None and not _is_about(finding, join.apis):
            return None
        if not join.shares:
            return len(_KINDS)
        if join.cause_apis is not None and not any(_is_about(anchor, join.cause_apis) for anchor in story.anchors):
            return None
        shared = self._shared(story, self._touches(finding))
        kinds = [_KINDS.index(str(kind)) for kind, *_ in shared if kind in join.shares]
        if kinds and join.apis is not None:
            # The node that responds and those that it waits for are equally suspect.
            return _KINDS.index("node")
        return min(kinds, default=None)

    def _shared(self, story: Story, entities: frozenset[Entity]) -> set[Entity]:
        """Includes the coordinator of a group, which is a node of the cause."""
        shared = story.entities & entities
        coordinated = {entity for entity in entities if entity[0] == "coordinator"}
        return shared | {entity for entity in coordinated if ("node", *entity[1:]) in story.entities}


def _is_one(cause: Cause, story: Story, finding: Finding, entities: frozenset[Entity]) -> bool:
    if not cause.one_by:
        return True
    shared = {entity[0] for entity in story.entities & entities}
    return not shared.isdisjoint(cause.one_by) and finding.from_at <= story.to_at + AFTER_US


def _is_about(finding: Finding, apis: frozenset[str]) -> bool:
    return finding.subject.partition(" at ")[0] in apis


def _follows(story: Story, finding: Finding, after_us: int) -> bool:
    early = MINUTE_US if finding.rule.startswith(_BY_THE_MINUTE) else SAME_MOMENT_US
    return story.from_at - early <= finding.from_at <= story.to_at + after_us
