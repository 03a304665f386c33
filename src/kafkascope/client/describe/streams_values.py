"""Defines the values of a streams group's view: topology, processes with members and tasks, input lag."""

from dataclasses import dataclass

from kafkascope.client.describe.gaps import Gap
from kafkascope.client.describe.values import NodeAddress, Setting


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """`partitions` is 0 if the coordinator decides."""

    name: str
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class TopologyNode:
    """A node of a sub-topology's graph; `kind` is SOURCE, PROCESSOR or SINK."""

    name: str
    kind: str
    source_topics: tuple[str, ...]
    sink_topic: str | None
    stores: tuple[str, ...]
    successors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subtopology:
    """`nodes` are filled if the broker keeps the whole topology (StreamsGroupDescribe version 1, 4.4)."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    changelog_topics: tuple[InternalTopic, ...]
    nodes: tuple[TopologyNode, ...]


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks by role, each as `subtopology_partition`, the way Kafka Streams names them."""

    active: tuple[str, ...]
    standby: tuple[str, ...]
    warmup: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskOffset:
    """The position of a member's copy of a task's state; None means unknown."""

    task: str
    offset: int | None
    end_offset: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """`assignment` is what it may hold now, `target` what it is to hold."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    member_epoch: int
    topology_epoch: int
    classic: bool
    assignment: Tasks
    target: Tasks
    task_offsets: tuple[TaskOffset, ...]
    client_tags: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StreamsProcess:
    """A process is one instance of the application, with one member per thread."""

    process_id: str
    endpoint: str | None
    members: tuple[StreamsMember, ...]


@dataclass(frozen=True, slots=True)
class InputPartition:
    """`leader_epoch` was committed with the offset. `lag` is the end less the committed offset, or less the first
    offset if nothing is committed yet."""

    topic: str
    partition: int
    task: str
    current_offset: int | None
    leader_epoch: int | None
    end_offset: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class TopologyStatus:
    """A status, named as in heartbeats; derived from topics and epochs, since descriptions don't have it."""

    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class StreamsGroupView:
    """`lag` is the sum over `inputs`; None if one is unknown. `waits` explains what a rebalance waits for."""

    group_id: str
    state: str
    coordinator: NodeAddress | None
    group_epoch: int
    assignment_epoch: int
    assignor: str | None
    topology_epoch: int | None
    topology_description: str | None  # NOT_STORED, AVAILABLE…; None if the broker doesn't report it
    lag: int | None
    subtopologies: tuple[Subtopology, ...]
    processes: tuple[StreamsProcess, ...]
    inputs: tuple[InputPartition, ...]
    statuses: tuple[TopologyStatus, ...]
    waits: tuple[str, ...]
    settings: tuple[Setting, ...]
    gaps: tuple[Gap, ...]

    @property
    def members(self) -> tuple[StreamsMember, ...]:
        return tuple(member for process in self.processes for member in process.members)
