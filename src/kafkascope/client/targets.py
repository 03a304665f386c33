"""Defines the targets of a request, and parses their text form: `leader:orders-0` is `Leader("orders", 0)`."""

from dataclasses import dataclass
from uuid import UUID

from kafkascope.codec.json_form import uuid_text
from kafkascope.errors import UsageError
from kafkascope.schema.names import clip, parse_number

# FindCoordinator's key type by kind (KIP-98, KIP-932).
COORDINATOR_KEY_TYPES = {"group": 0, "transaction": 1, "share": 2}
_FORMS = "any, controller, node:ID, leader:TOPIC-PARTITION or coordinator:[group:|transaction:|share:]KEY"


@dataclass(frozen=True, slots=True)
class AnyBroker:
    """Any broker, or any controller if the cluster was reached by its controllers."""

    def __str__(self) -> str:
        return "any"


@dataclass(frozen=True, slots=True)
class Node:
    """One node by its id."""

    id: int

    def __str__(self) -> str:
        return f"node:{self.id}"


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition; the topic by name or by id."""

    topic: str | UUID
    partition: int

    def __str__(self) -> str:
        topic = self.topic if isinstance(self.topic, str) else uuid_text(self.topic)
        return f"leader:{topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a `group`, of a `transaction` by its transactional id, or of `share` group state by
    `group:topic id:partition`."""

    kind: str
    key: str

    def __str__(self) -> str:
        return f"coordinator:{self.kind}:{self.key}"


@dataclass(frozen=True, slots=True)
class Controller:
    """The active controller. If only brokers can be reached, the broker that metadata names for it, which forwards
    (KIP-500)."""

    def __str__(self) -> str:
        return "controller"


Target = AnyBroker | Node | Leader | Coordinator | Controller


def parse_target(text: str) -> Target:
    """Parses the value of `--to`."""
    kind, _, argument = text.strip().partition(":")
    kind = kind.lower()
    if kind == "any" and not argument:
        return AnyBroker()
    if kind == "controller" and not argument:
        return Controller()
    if kind in ("node", "broker"):
        number = parse_number(argument)
        if number is None or number < 0:
            raise UsageError(f"'{clip(text)}': a node is a number; write node:1")
        return Node(number)
    if kind == "leader":
        topic, _, partition = argument.rpartition("-")
        number = parse_number(partition)
        if not topic or number is None:
            raise UsageError(f"'{clip(text)}': a partition is TOPIC-NUMBER; write leader:orders-0")
        return Leader(topic, number)
    if kind == "coordinator" and argument:
        key_type, colon, key = argument.partition(":")
        if colon and key_type in COORDINATOR_KEY_TYPES:
            if not key:
                raise UsageError(f"'{clip(text)}': the key is missing; write coordinator:{key_type}:KEY")
            return Coordinator(key_type, key)
        return Coordinator("group", argument)
    raise UsageError(f"'{clip(text)}' isn't a target; write {_FORMS}")
