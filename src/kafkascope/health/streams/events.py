"""Defines the events of one streams group as a recording shows them: flat rows of heartbeats, responses and
descriptions, in time order.

The kinds, and the fields that each sets besides `at_us`, `order` and `group_id`:

- `heartbeat`: a StreamsGroupHeartbeat request, at its time: exchange, connection, member, client and process id, member
  epoch, `active`, `standby`, `warmup` as reported, topology epoch, endpoint, `value` 1 if it asks for shutdown.
- `answer`: its response, at its time: the request's member id (an error carries none), member epoch, error code,
  `active`, `standby`, `warmup` as granted, `status`, heartbeat interval, endpoint epoch.
- `described_member`, then `described`: a StreamsGroupDescribe response, its members first, the group last, all with one
  exchange id and time. A member has its assignment, its target, epochs, process id and endpoint; the group its state,
  epochs, `topology`, `stateful` and error code.
- `disconnected`: a connection that carried this group's heartbeats was closed, by FIN or by RST.
- `config`: `value` is the group's `streams.num.standby.replicas`, if known.
- `seen`: the recording continues until here.

Tasks are text, as Kafka writes a task id: `0_0,0_1,1_0`. None means unchanged, an empty string means no tasks (protocol
note 53)."""

from functools import lru_cache
from typing import Literal, NamedTuple

Role = Literal["active", "standby", "warmup"]

# StreamsGroupHeartbeatResponse.Status; 5 since 4.2, 6 with version 1 (4.4)
STATUS_NAMES = {
    0: "STALE_TOPOLOGY",
    1: "MISSING_SOURCE_TOPICS",
    2: "INCORRECTLY_PARTITIONED_TOPICS",
    3: "MISSING_INTERNAL_TOPICS",
    4: "SHUTDOWN_APPLICATION",
    5: "ASSIGNMENT_DELAYED",
    6: "MISSING_CLIENT_TAGS",
}


class StreamsEvent(NamedTuple):
    """Times are microseconds since 1970, UTC. Events of the same time are ordered by `order`."""

    kind: str
    at_us: int
    order: int
    group_id: str
    exchange_id: str | None = None
    connection_id: str | None = None
    member_id: str | None = None
    client_id: str | None = None
    process_id: str | None = None
    member_epoch: int | None = None
    active: str | None = None
    standby: str | None = None
    warmup: str | None = None
    target_active: str | None = None
    target_standby: str | None = None
    target_warmup: str | None = None
    error_code: int | None = None
    status: str | None = None  # one per line, "3 Internal topics are missing: …"; empty is none, None is unchanged
    heartbeat_interval_ms: int | None = None
    topology_epoch: int | None = None
    endpoint: str | None = None  # "host:port" of interactive queries
    endpoint_epoch: int | None = None
    group_state: str | None = None
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    topology: str | None = None  # "0=3,1=3": partitions of each subtopology, if known
    stateful: str | None = None  # "0,1": subtopologies with changelog topics
    value: int | None = None


@lru_cache(maxsize=4096)
def tasks_of(text: str) -> frozenset[str]:
    """The task ids in a list."""
    return frozenset(text.split(",")) if text else frozenset()


@lru_cache(maxsize=65536)
def task_parts(task: str) -> tuple[str, int]:
    """Subtopology and partition of a task id. A named topology may contain underscores: the last one separates."""
    subtopology, _, partition = task.rpartition("_")
    return subtopology, int(partition)


@lru_cache(maxsize=1024)
def statuses_of(text: str) -> tuple[tuple[int, str], ...]:
    """Code and detail of each status."""
    lines = (line.partition(" ") for line in text.split("\n") if line)
    return tuple((int(code), detail) for code, _, detail in lines)


@lru_cache(maxsize=1024)
def topology_tasks(text: str) -> frozenset[str]:
    """The task ids of a topology with these partition counts."""
    counts = (part.rpartition("=") for part in text.split(",") if part)
    return frozenset(f"{subtopology}_{index}" for subtopology, _, count in counts for index in range(int(count)))
