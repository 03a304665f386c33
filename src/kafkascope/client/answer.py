"""The result of a call: the decoded response with its node, times and bytes."""

from dataclasses import dataclass
from typing import Any

from kafkascope.client.settings import Address


@dataclass(frozen=True, slots=True)
class Broker:
    """A node as the cluster names it: of a cluster reached by its controllers, a controller."""

    node_id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`value` is what `kafkascope.decode` gives. Bytes are frames without the length before them, and empty for SASL,
    whose frames hold secrets; times are nanoseconds since the epoch. A request that nobody answers (Produce with
    acks 0) has an empty value."""

    api: str
    api_version: int
    value: dict[str, Any]
    node: int | None
    address: Address
    request_bytes: bytes
    response_bytes: bytes
    sent_at: int
    received_at: int
    correlation_id: int
    exact: bool
    reasons: tuple[str, ...]
    # Which connection it was: our end, empty where the socket doesn't know it, and when it was made.
    client_address: str = ""
    connected_at: int = 0
    # Bytes of memory that it takes, at the most; and rows of a list of brokers that were left out.
    memory: int = 0
    left_out: int = 0
