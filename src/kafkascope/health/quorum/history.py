"""Builds the rows of `quorum_replicas` and `quorum_events` from the events of one cluster's quorum, in one pass in time
order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafkascope.health.quorum.elections import Elections
from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.replicas import Replicas
from kafkascope.health.quorum.rows import QuorumHappening, QuorumReplica


@dataclass(frozen=True, slots=True)
class QuorumHistory:
    """The rows of both tables for one cluster, by time."""

    replicas: list[QuorumReplica]
    events: list[QuorumHappening]


def history_of(events: Iterable[QuorumEvent]) -> QuorumHistory:
    elections = Elections()
    replicas = Replicas(elections)
    for event in events:
        elections.feed(event)
        replicas.feed(event)
    rows = list(replicas.finish())
    happenings = sorted([*elections.finish(), *replicas.changes], key=lambda row: row.occurred_at)
    return QuorumHistory(rows, happenings)


def replica_rows_of(events: Iterable[QuorumEvent]) -> Iterator[QuorumReplica]:
    """The rows of `quorum_replicas`."""
    yield from history_of(events).replicas


def event_rows_of(events: Iterable[QuorumEvent]) -> Iterator[QuorumHappening]:
    """The rows of `quorum_events`."""
    yield from history_of(events).events
