"""Builds the rows of `quorum_replicas` and `quorum_events` from the events of one cluster's quorum, in one pass in time
order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafkascope.health.quorum.elections import Elections
from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.replicas import Replicas
from kafkascope.health.quorum.rows import QuorumHappening, QuorumReplica
from kafkascope.health.state import decoded, encoded


@dataclass(frozen=True, slots=True)
class QuorumHistory:
    """The rows of both tables for one cluster, by time."""

    replicas: list[QuorumReplica]
    events: list[QuorumHappening]


class QuorumWalk:
    """Goes through the events of one cluster, from the beginning or from the state that an earlier walk left."""

    def __init__(self, state: object = None) -> None:
        """`ValueError` for a state that no walk leaves."""
        if state is None:
            self._replicas = Replicas(Elections())
            return
        self._replicas = decoded(state, Replicas)
        self._replicas.changes, self._replicas._rows, self._replicas.elections.rows = [], [], []

    def feed(self, event: QuorumEvent) -> None:
        self._replicas.elections.feed(event)
        self._replicas.feed(event)

    def state(self) -> object:
        """For JSON. Take the rows first."""
        return encoded(self._replicas, Replicas)

    def taken(self) -> QuorumHistory:
        """The rows so far, in no order: later events leave them as they are, except for roles (`is_as_assumed`)."""
        replicas = self._replicas
        changes, replicas.changes = replicas.changes, []
        return QuorumHistory(replicas.taken(), [*replicas.elections.taken(), *changes])

    @property
    def is_as_assumed(self) -> bool:
        return self._replicas.is_as_assumed

    def finish(self) -> QuorumHistory:
        """The remaining rows by time, with those that the end of the recording makes."""
        rows = list(self._replicas.finish())
        happenings = [*self._replicas.elections.finish(), *self._replicas.changes]
        return QuorumHistory(rows, sorted(happenings, key=lambda row: row.occurred_at))


def history_of(events: Iterable[QuorumEvent]) -> QuorumHistory:
    walk = QuorumWalk()
    for event in events:
        walk.feed(event)
    return walk.finish()


def replica_rows_of(events: Iterable[QuorumEvent]) -> Iterator[QuorumReplica]:
    """The rows of `quorum_replicas`."""
    yield from history_of(events).replicas


def event_rows_of(events: Iterable[QuorumEvent]) -> Iterator[QuorumHappening]:
    """The rows of `quorum_events`."""
    yield from history_of(events).events
