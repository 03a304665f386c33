"""Row types of the quorum's marts: replicas as observed, and changes of leadership.

Times are microseconds since 1970, UTC. Unknown values are None.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """One replica in one observation: a row of `quorum_replicas`."""

    observed_at: int
    source: str  # describe or fetch
    leader_id: int
    leader_epoch: int
    high_watermark: int | None
    replica_id: int
    directory_id: str | None
    role: str | None  # leader, follower, observer
    log_end_offset: int | None
    lag: int | None
    lag_bound: str | None  # exact, or at_least if the leader's log may have grown unseen
    lag_ms: int | None  # since it was last caught up; 0 if it is
    fetch_age_ms: int | None  # since its last fetch
    last_fetch_at: int | None
    last_caught_up_at: int | None
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class QuorumHappening:
    """A row of `quorum_events`. `duration_ms` is the time without a visible leader, `voting_ms` the time since the
    first vote."""

    occurred_at: int
    kind: str
    epoch: int | None
    node_id: int | None
    cause: str | None = None
    duration_ms: int | None = None
    voting_ms: int | None = None
    rounds: int | None = None
    previous_leader_id: int | None = None
    voter_id: int | None = None
    granted: bool | None = None
    detail: str | None = None
    exchange_id: str | None = None
