"""Walks what the share coordinator wrote about one share partition, and merges it as the coordinator does."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafkascope.health.disks.rows import ShareState

# StateBatch.DeliveryState.
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4
SNAPSHOT, UPDATE, DELETED = "snapshot", "update", "deleted"


class StateBatch(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class ShareWrite(NamedTuple):
    """A record of `__share_group_state`; numbers that it doesn't say are −1."""

    offset: int
    at_us: int | None
    kind: str
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class SharePartitionState:
    """The state after the writes so far."""

    def __init__(self) -> None:
        self.start_offset = -1
        self.snapshot_epoch = self.state_epoch = self.leader_epoch = self.complete_count = -1
        self.batches: list[StateBatch] = []

    def apply(self, write: ShareWrite) -> None:
        if write.kind == DELETED:
            self.__init__()  # type: ignore[misc]
            return
        if write.kind == SNAPSHOT:
            self.batches, self.state_epoch = [], write.state_epoch
            self.start_offset = write.start_offset
        elif write.start_offset >= 0:
            self.start_offset = write.start_offset
        self.snapshot_epoch = write.snapshot_epoch
        self.leader_epoch = write.leader_epoch if write.leader_epoch >= 0 else self.leader_epoch
        self.complete_count = write.delivery_complete_count
        for batch in write.batches:
            self.batches = list(_merged(self.batches, batch))
        self.batches = list(_from(self.batches, self.start_offset))


def states_of(cluster_id: str | None, group_id: str, topic: str | None, topic_id: str, partition: int,
              writes: Iterable[ShareWrite]) -> Iterator[ShareState]:  # fmt: skip
    """A row per write, in the order of their offsets."""
    state = SharePartitionState()
    for write in writes:
        state.apply(write)
        counts = [0] * (ARCHIVED + 1)
        for batch in state.batches:
            if 0 <= batch.delivery_state < len(counts):
                counts[batch.delivery_state] += batch.last_offset - batch.first_offset + 1
        yield ShareState(
            cluster_id, group_id, topic, topic_id, partition, write.at_us, write.offset, write.kind,
            state.snapshot_epoch, _known(state.state_epoch), _known(state.leader_epoch), _known(state.start_offset),
            state.batches[-1].last_offset + 1 if state.batches else _known(state.start_offset),
            counts[AVAILABLE], counts[ACKNOWLEDGED], counts[ARCHIVING] + counts[ARCHIVED],
            max((batch.delivery_count for batch in state.batches), default=0), _known(state.complete_count),
        )  # fmt: skip


def _merged(batches: list[StateBatch], new: StateBatch) -> Iterator[StateBatch]:
    """Where both know an offset, the later delivery wins, and of one delivery the later state, as in Kafka's
    PersisterStateBatchCombiner."""
    pieces: list[StateBatch] = []
    at = new.first_offset
    for batch in batches:
        if batch.last_offset < new.first_offset or batch.first_offset > new.last_offset:
            pieces.append(batch)
            continue
        if batch.first_offset < new.first_offset:
            pieces.append(batch._replace(last_offset=new.first_offset - 1))
        low, high = max(batch.first_offset, new.first_offset), min(batch.last_offset, new.last_offset)
        if low > at:
            pieces.append(new._replace(first_offset=at, last_offset=low - 1))
        pieces.append(max(batch, new, key=_rank)._replace(first_offset=low, last_offset=high))
        at = high + 1
        if batch.last_offset > new.last_offset:
            pieces.append(batch._replace(first_offset=new.last_offset + 1))
    if at <= new.last_offset:
        pieces.append(new._replace(first_offset=at))
    pieces.sort()
    joined: list[StateBatch] = []
    for piece in pieces:
        if joined and joined[-1].last_offset + 1 == piece.first_offset and _rank(joined[-1]) == _rank(piece):
            joined[-1] = joined[-1]._replace(last_offset=piece.last_offset)
        else:
            joined.append(piece)
    yield from joined


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state


def _from(batches: list[StateBatch], start: int) -> Iterator[StateBatch]:
    for batch in batches:
        if batch.last_offset >= start:
            yield batch._replace(first_offset=max(batch.first_offset, start))


def _known(number: int) -> int | None:
    return None if number < 0 else number
