"""Defines the events of a KRaft quorum as a recording shows them: flat rows of raft traffic and descriptions, by time.

The kinds, and the fields that each sets besides `at_us` and `order`; all are about `__cluster_metadata`, partition 0:

- `fetch`: a Fetch request, at its time: exchange, connection, broker (the address it was sent to), `node_id`
  (ReplicaState, or ReplicaId before version 15), `directory_id`, `leader_epoch` (CurrentLeaderEpoch), `offset`,
  `max_wait_ms`.
- `fetch_answer`: its response, at its time: the request's broker, `node_id`, `directory_id` and `offset`, and of the
  partition `error_code`, `leader_id` and `leader_epoch` (CurrentLeader), `high_watermark`, `records_bytes`,
  `end_offset` (one past the last record, if known), `how` "diverging" or "snapshot" if it is one of these.
- `vote`: a Vote request: `node_id` and `directory_id` of the candidate, `peer_id` (VoterId), `epoch` (ReplicaEpoch),
  `offset` (LastOffset), `pre_vote`. `vote_answer`: the same, and `granted`, `leader_id`, `leader_epoch`, `error_code`.
- `begin`: a BeginQuorumEpoch request: `leader_id`, `leader_epoch`, `peer_id` (VoterId). `begin_answer`: the voter's
  response: `peer_id`, `leader_id`, `leader_epoch`, `error_code`.
- `end`, `end_answer`: the same for EndQuorumEpoch.
- `described`: one replica of a DescribeQuorum response: `node_id`, `directory_id`, `voter`, `offset` (LogEndOffset),
  `last_fetch_ms`, `last_caught_up_ms`, and of the partition `leader_id`, `leader_epoch`, `high_watermark`,
  `error_code`. The rows of one response share an exchange id and are adjacent.
- `disconnected`: a connection that carried raft requests was closed: `connection_id`, `how` "fin" or "reset".
- `seen`: the recording continues until here.

`error_code` is that of the body or, if that is 0, of its partition.
"""

from typing import NamedTuple


class QuorumEvent(NamedTuple):
    """Times are microseconds since 1970, UTC; those of DescribeQuorum are milliseconds of the leader's clock."""

    kind: str
    at_us: int
    order: int
    exchange_id: str | None = None
    connection_id: str | None = None
    broker: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    peer_id: int | None = None
    leader_id: int | None = None
    leader_epoch: int | None = None
    epoch: int | None = None
    offset: int | None = None
    high_watermark: int | None = None
    end_offset: int | None = None
    records_bytes: int | None = None
    max_wait_ms: int | None = None
    last_fetch_ms: int | None = None
    last_caught_up_ms: int | None = None
    error_code: int | None = None
    granted: bool | None = None
    pre_vote: bool | None = None
    voter: bool | None = None
    how: str | None = None
