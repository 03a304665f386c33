"""Compares the ends of recorded deliveries of a share partition with what its brokers wrote about the same offsets."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafkascope.health.disks.intervals import Offsets
from kafkascope.health.disks.rows import ShareAgreement
from kafkascope.health.disks.share_state import ACKNOWLEDGED, ARCHIVED, ARCHIVING, AVAILABLE, ShareWrite

AGREE, ONLY_RECORDED, ONLY_WRITTEN = "agree", "only_recorded", "only_written"
_STATES = {AVAILABLE: "available", ACKNOWLEDGED: "acknowledged", ARCHIVING: "archived", ARCHIVED: "archived"}
_ENDS = {
    "accepted": "acknowledged",
    "rejected": "archived",
    "released": "available",
    "lock_expired": "available",
    "disconnected": "available",
    "session_closed": "available",
}
# The recorder's clock isn't the brokers', and a write comes before the response that the recording has.
SLACK_US = 2_000_000

# A state and which delivery of the offsets it ends.
_End = tuple[str, int]


class EndedDelivery(NamedTuple):
    """A row of `share_deliveries`."""

    first_offset: int
    last_offset: int
    delivery_count: int | None
    outcome: str
    archived: bool
    acquired_at: int
    outcome_at: int | None


def agreement_of(
    cluster_id: str | None, group_id: str, topic: str | None, topic_id: str, partition: int,
    deliveries: Iterable[EndedDelivery], writes: Iterable[ShareWrite], read_at: int | None,
) -> Iterator[ShareAgreement]:  # fmt: skip
    """`read_at` is until when the brokers' disks were read. Nothing if one side is empty."""
    written, inner, first_write, last_write = _written(writes)
    recorded, unsure, first_seen, last_seen = _recorded(deliveries, first_write, read_at or last_write)
    if first_seen is None or last_seen is None or first_write is None:
        return
    between: defaultdict[_End, Offsets] = defaultdict(Offsets)
    for end, at, first, last in inner:
        if first_seen + SLACK_US < at < last_seen - SLACK_US:
            between[end].add(first, last)
    for end in sorted({*recorded, *between}):
        agreed, missing = recorded[end].split(written[end])
        _, unrecorded = between[end].split(recorded[end])
        _, unrecorded = unrecorded.split(unsure[end[1]])
        for verdict, offsets in ((AGREE, agreed), (ONLY_RECORDED, missing), (ONLY_WRITTEN, unrecorded)):
            for first, last in offsets:
                yield ShareAgreement(
                    cluster_id, group_id, topic, topic_id, partition, first, last, end[1], end[0], verdict
                )


def _written(
    writes: Iterable[ShareWrite],
) -> tuple[defaultdict[_End, Offsets], list[tuple[_End, int, int, int]], int | None, int | None]:
    """Snapshots repeat earlier ends: they agree with a delivery, but aren't an end of their own."""
    written: defaultdict[_End, Offsets] = defaultdict(Offsets)
    updates: list[tuple[_End, int, int, int]] = []
    first_at = last_at = None
    for write in writes:
        if write.at_us is not None:
            first_at = write.at_us if first_at is None else first_at
            last_at = write.at_us
        for batch in write.batches:
            state = _STATES.get(batch.delivery_state)
            if state is None:
                continue
            end = (state, batch.delivery_count)
            written[end].add(batch.first_offset, batch.last_offset)
            if write.kind == "update" and write.at_us is not None:
                updates.append((end, write.at_us, batch.first_offset, batch.last_offset))
    return written, updates, first_at, last_at


def _recorded(
    deliveries: Iterable[EndedDelivery], written_from: int | None, written_to: int | None
) -> tuple[defaultdict[_End, Offsets], defaultdict[int, Offsets], int | None, int | None]:
    """Ends by state and delivery count, and deliveries whose end the recording doesn't show."""
    recorded: defaultdict[_End, Offsets] = defaultdict(Offsets)
    unsure: defaultdict[int, Offsets] = defaultdict(Offsets)
    first_seen = last_seen = None
    for row in deliveries:
        first_seen = row.acquired_at if first_seen is None else min(first_seen, row.acquired_at)
        last_at = row.acquired_at if row.outcome_at is None else row.outcome_at
        last_seen = last_at if last_seen is None else max(last_seen, last_at)
        state = "archived" if row.archived else _ENDS.get(row.outcome)
        if row.delivery_count is None:
            continue
        at = row.outcome_at
        known = at is not None and written_from is not None and written_to is not None
        if state is None or not known or not written_from <= at <= written_to - SLACK_US:  # type: ignore[operator]
            unsure[row.delivery_count].add(row.first_offset, row.last_offset)
        else:
            recorded[state, row.delivery_count].add(row.first_offset, row.last_offset)
    return recorded, unsure, first_seen, last_seen
