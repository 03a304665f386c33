"""Defines the events of one share group as a recording shows them: flat rows of fetches, acknowledgements, sessions and
state writes, in time order.

The kinds, and the fields that each sets besides `at_us`, `order` and `group_id`:

- `acquired`: one range of AcquiredRecords of a ShareFetch response, at the response's time: exchange, connection,
  broker, member, client, topic, partition, offsets, `delivery_count`, `lock_timeout_ms`, `asked_us`.
- `acknowledged`: one run of one type of an AcknowledgementBatch, at the request's time: the same identifiers, `value`
  the type, `answered_us`, `error_code` of the partition in the response, or of the whole response if that isn't 0; None
  means no response. `lock_timeout_ms` if the response has it.
- `session`: a ShareFetch or ShareAcknowledge request with session epoch 0 or −1, or of any epoch whose response was
  SHARE_SESSION_NOT_FOUND, at the request's time: `value` the epoch, `error_code` of the whole response. Within one
  request the acknowledgements come first.
- `linked`: a member acquired over this connection for the first time, from whatever partition: member, broker,
  connection. Only a ledger of one partition needs it, which doesn't see the acquisitions of others.
- `forgotten`: a partition in ForgottenTopicsData, at the request's time: member, broker, topic, partition.
- `disconnected`: a connection that carried this group's ShareFetch was closed by FIN or RST, or the broker logged it.
- `state_written`: one batch of a WriteShareGroupState request, at its time: offsets, `value` the delivery state,
  `delivery_count`, `start_offset`, `error_code` of the partition in the response. `first_offset` is −1 without a batch.
- `altered`: what an AlterShareGroupOffsets, DeleteShareGroupOffsets, DeleteRecords or DeleteTopics did to a partition,
  if its response had no error. With `start_offset`, only the offsets before it are gone; None means all of them.
- `broker_error`: a partition's error in a ShareFetch response: broker, topic, partition, `error_code`.
- `seen`: the recording of `broker`, or of all brokers if that is None, continues until here.

A member that leaves the group by heartbeat makes no event: the partition leader doesn't learn of it (KIP-932).
`topic_id` is Kafka's base64 form; it is None if only the topic's name is known (`altered`).
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Outcome = Literal["accepted", "released", "rejected", "lock_expired", "disconnected", "session_closed", "moved", "open"]

# AcknowledgementBatch.AcknowledgeTypes (KIP-932, Renew KIP-1222)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

OUTCOME_OF: dict[int | None, Outcome] = {ACCEPT: "accepted", RELEASE: "released", REJECT: "rejected"}

# StateBatch.DeliveryState; ARCHIVING lasts until the dead-letter record is written (KIP-1191)
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4


class ShareEvent(NamedTuple):
    """Times are microseconds since 1970, UTC. Events of the same time are ordered by `order`, their place in the
    recording."""

    kind: str
    at_us: int
    order: int = 0
    group_id: str = ""
    exchange_id: str | None = None
    connection_id: str | None = None
    broker: str | None = None
    member_id: str | None = None
    client_id: str | None = None
    topic_id: str | None = None
    topic: str | None = None
    partition: int = -1
    first_offset: int = -1
    last_offset: int = -1
    value: int | None = None
    delivery_count: int | None = None
    lock_timeout_ms: int | None = None
    error_code: int | None = None
    asked_us: int | None = None
    answered_us: int | None = None
    start_offset: int | None = None


# Not frozen: creating a frozen one takes four times as long, and a large recording has millions.
@dataclass(slots=True)
class Delivery:
    """One offset range of one delivery. `rule` decided its outcome; `uncertain` is what the recording leaves open."""

    group_id: str
    topic: str | None
    topic_id: str | None
    partition: int
    first_offset: int
    last_offset: int
    delivery_count: int | None
    member_id: str | None
    client_id: str | None
    acquired_at: int | None
    lock_timeout_ms: int | None
    renewals: int
    outcome: Outcome
    outcome_at: int | None
    archived: bool
    acquire_exchange_id: str | None
    outcome_exchange_id: str | None
    broker_address: str | None
    rule: str
    uncertain: str | None
