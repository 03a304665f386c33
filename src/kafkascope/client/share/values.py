"""Defines the values that the share group protocol works with: partitions, acquired ranges, acknowledgements and their
results. All are frozen."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from kafkascope.schema.errors.error_codes import error_name


class Acknowledge(IntEnum):
    """The types of an acknowledgement. `GAP` means no record at that offset, `RENEW` restarts the lock (KIP-1222)."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AcquireMode(IntEnum):
    """How a broker counts the records of a fetch (KIP-1206): up to the end of a batch, or at most the limit."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class SharePartition(NamedTuple):
    """A partition by the id of its topic. A topic that is created again has another id."""

    topic_id: UUID
    partition: int


class Range(NamedTuple):
    """Offsets from `first` to `last`, both inclusive."""

    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class Acquired(NamedTuple):
    """Offsets that a broker locked for us with this delivery."""

    first: int
    last: int
    delivery_count: int


class AcknowledgeRange(NamedTuple):
    """One acknowledgement for all offsets from `first` to `last`."""

    first: int
    last: int
    type: int


# Why an acknowledgement has no code of a broker. All numbers of Kafka's are above.
NO_RESULT, CONNECTION_LOST, DELIVERED_AGAIN, LOCK_EXPIRED, NOT_HELD = -1001, -1002, -1003, -1004, -1005
_OWN_REASONS = {
    NO_RESULT: "the response has no result for it",
    CONNECTION_LOST: "the connection to the leader was lost, which releases its records",
    DELIVERED_AGAIN: "the broker has delivered the record again since",
    LOCK_EXPIRED: "its lock has expired",
    NOT_HELD: "it isn't held, or is acknowledged already",
}
# The leader couldn't store it in time, and may have stored it nevertheless: after a change of leaders it may count.
_AMBIGUOUS = frozenset((-1, 5, 7, 13, 14, 15, 16, 56))
UNKNOWN_OUTCOMES = frozenset((NO_RESULT, CONNECTION_LOST)) | _AMBIGUOUS


@dataclass(frozen=True, slots=True)
class AcknowledgeResult:
    """The outcome of an acknowledgement of a range. `code` is 0, an error code of Kafka, or a reason of our own below
    −1000. `sent` is False if the broker never got it; `unknown` means that it may have counted in spite of its code."""

    partition: SharePartition
    first: int
    last: int
    type: int
    code: int
    sent: bool
    unknown: bool = False

    @property
    def records(self) -> int:
        return self.last - self.first + 1

    @property
    def reason(self) -> str:
        return _OWN_REASONS.get(self.code) or f"{error_name(self.code)} ({self.code})"


class DeliveryId(NamedTuple):
    """Which response acquired a record: a broker, and a number that no other response has. An offset that is delivered
    again has another id, even if a new leader counts the delivery as the same."""

    node: int
    number: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """Records that one response acquired in one partition: the ranges, which don't overlap, and the record data, which
    may have other records too. `locked_at` is the time of the response, `lock` the seconds from then."""

    partition: SharePartition
    id: DeliveryId
    acquired: tuple[Acquired, ...]
    data: bytes
    locked_at: float
    lock: float

    @property
    def node(self) -> int:
        return self.id.node

    @property
    def offsets(self) -> int:
        return sum(piece.last - piece.first + 1 for piece in self.acquired)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Of one ShareFetch; seconds and Kafka's defaults."""

    max_wait: float = 0.5
    min_bytes: int = 1
    max_bytes: int = 16_777_216
    max_records: int = 500
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED


@dataclass(frozen=True, slots=True)
class Problem:
    """An error code of a broker. The application gets a `severe` one as an error, others as a note."""

    api: str
    code: int
    message: str | None
    severe: bool
    partition: SharePartition | None = None


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """A broker that names another leader than itself (KIP-951); `leader` −1 if it doesn't know."""

    partition: SharePartition
    leader: int
    epoch: int
