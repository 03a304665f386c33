"""Defines the result of a call: the decoded response with its node, times and bytes."""

from dataclasses import dataclass
from typing import Any

from kafkascope.client.settings import Address


@dataclass(frozen=True, slots=True)
class Broker:
    """A node as the cluster names it: a broker, or a controller if the cluster was reached by its controllers."""

    node_id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`value` is the result of `kafkascope.decode`. Bytes are frames without their length; they are empty for SASL,
    whose frames hold secrets. Times are nanoseconds since the epoch. A request without a response (Produce with acks 0)
    has an empty value."""

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
    # The connection: our end, empty if the socket doesn't know it, and when it was opened.
    client_address: str = ""
    connected_at: int = 0
    # The most bytes of memory that it takes, and the rows left out of a list of brokers.
    memory: int = 0
    left_out: int = 0
