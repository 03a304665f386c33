"""Follows the sequence numbers of the producers of a partition: a gap means that a batch was lost.

A gap counts only if no offset is missing between the two batches: compaction and retention take batches away."""

from kafkascope.codec.records.record_types import RecordBatch
from kafkascope.limits import MAX_FOLLOWED_PRODUCERS
from kafkascope.logs.check.finding import FindingList

_HIGHEST = 0x7FFF_FFFF
# producer.id.expiration.ms: a broker forgets a producer that is idle so long, and then takes any sequence from it.
_FORGOTTEN_MS = 86_400_000


class Producers:
    """One partition, its batches in order."""

    __slots__ = ("_hole", "_known")

    def __init__(self) -> None:
        # producer id: (epoch, last sequence, last offset, time), the one idle longest first
        self._known: dict[int, tuple[int, int, int, int]] = {}
        self._hole = -1

    def missing_before(self, offset: int) -> None:
        """Offsets right before this one aren't in the log."""
        self._hole = offset

    def add(self, batch: RecordBatch, position: int, findings: FindingList) -> None:
        producer = batch.producer_id
        if batch.magic < 2 or producer < 0:
            return
        known = self._known.pop(producer, None)
        sequence = -1 if batch.is_control else last_sequence(batch)
        if known is not None:
            epoch, last, offset, time = known
            place = {"position": position, "offset": batch.base_offset}
            if batch.producer_epoch < epoch:
                detail = f"producer {producer} continues with epoch {batch.producer_epoch} after {epoch}"
                findings.add("producer epoch goes back", detail, **place)
            elif batch.is_control:
                sequence = last if batch.producer_epoch == epoch else -1
            elif batch.producer_epoch == epoch and last >= 0 and offset >= self._hole:
                expected = 0 if last == _HIGHEST else last + 1
                if batch.base_sequence != expected and batch.max_timestamp - time < _FORGOTTEN_MS:
                    detail = f"producer {producer} continues with sequence {batch.base_sequence}, {expected} expected"
                    findings.add("sequence gap", detail, **place)
        elif len(self._known) >= MAX_FOLLOWED_PRODUCERS:
            del self._known[next(iter(self._known))]
        self._known[producer] = (batch.producer_epoch, sequence, batch.last_offset, batch.max_timestamp)


def last_sequence(batch: RecordBatch) -> int:
    """Sequences turn over to 0; −1 without a producer."""
    if batch.base_sequence < 0:
        return -1
    return (batch.base_sequence + batch.last_offset_delta) & _HIGHEST
