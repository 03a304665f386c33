"""A recording's name in, what its programs logged and what the capture has of the same out, in the same shape."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from kafkascope.capture.exchanges.exchange import Exchange
from kafkascope.codec.json_form import to_json
from kafkascope.codec.result import Decoded
from tests.capture.same_exchanges import captured
from tests.captures import truth

Event = dict[str, Any]
# (topic id, partition, offset)
Record = tuple[str, int, int]

# 4.4 named this field of v0 anew; the programs run 4.3
RENAMED = {"acceptableRecoveryLagLegacy": "acceptableRecoveryLag"}


def events(name: str, kind: str, who: str | None = None) -> list[Event]:
    return [event for event in truth(name) if event["event"] == kind and who in (None, event["who"])]


def exchanges(name: str, api: str, who: str) -> list[Exchange]:
    """Of one program: Streams makes client ids of its own that begin with the one given."""
    return [
        exchange
        for exchange in captured(name)
        if exchange.api == api and f"{exchange.client_id}-".startswith(f"{who}-")
    ]


def body(exchange: Exchange, kind: str) -> Any:
    """The request or response in Kafka's JSON form: uuids as Java prints them."""
    decoded = exchange.request if kind == "request" else exchange.response
    return None if decoded is None else _renamed(_json(decoded, exchange.api_version or 0))


def _json(decoded: Decoded, version: int) -> Any:
    return to_json(decoded.name, version, decoded.value)


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {RENAMED.get(name, name): _renamed(item) for name, item in value.items()}
    return [_renamed(item) for item in value] if isinstance(value, list) else value


def acquired(name: str, who: str) -> Iterator[Event]:
    """Ranges of the ShareFetch answers, in order."""
    for exchange in exchanges(name, "ShareFetch", who):
        response = body(exchange, "response")
        for topic in response["responses"] if response else ():
            for partition in topic["partitions"]:
                for batch in partition["acquiredRecords"]:
                    place = {"topicId": topic["topicId"], "partition": partition["partitionIndex"]}
                    yield {"correlationId": exchange.correlation_id, **place, **batch}


def acknowledged(name: str, who: str) -> Iterator[tuple[Exchange, str, int, list[tuple[int, int]]]]:
    """(exchange, topic id, partition, (offset, type) of each record) of ShareFetch and ShareAcknowledge, by time."""
    candidates = exchanges(name, "ShareFetch", who) + exchanges(name, "ShareAcknowledge", who)
    for exchange in sorted(candidates, key=lambda exchange: exchange.packet):
        for topic in body(exchange, "request")["topics"]:
            for partition in topic["partitions"]:
                records = [pair for batch in partition["acknowledgementBatches"] for pair in _types(batch)]
                if records:
                    yield exchange, topic["topicId"], partition["partitionIndex"], records


def _types(batch: Event) -> Iterator[tuple[int, int]]:
    """One type for the whole range, or one for each offset (protocol note 46)."""
    offsets = range(batch["firstOffset"], batch["lastOffset"] + 1)
    types = batch["acknowledgeTypes"]
    yield from zip(offsets, types * len(offsets) if len(types) == 1 else types, strict=True)


def acknowledge_error(exchange: Exchange, topic_id: str, partition: int) -> int:
    """What the broker answered to the acknowledgements of a partition."""
    response = body(exchange, "response")
    field = "acknowledgeErrorCode" if exchange.api == "ShareFetch" else "errorCode"
    (error,) = (
        place[field]
        for topic in response["responses"]
        if topic["topicId"] == topic_id
        for place in topic["partitions"]
        if place["partitionIndex"] == partition
    )
    return int(error)


def topic_ids(name: str) -> dict[str, str]:
    """Topic to id, as any Metadata answer has it."""
    return {
        topic["name"]: topic["topicId"]
        for exchange in captured(name)
        if exchange.api == "Metadata" and exchange.response is not None
        for topic in body(exchange, "response")["topics"]
        if topic.get("topicId") not in (None, str(UUID(int=0)))
    }


def tasks(listed: list[Event] | None) -> list[str] | None:
    """Task ids as Streams prints them; None where a heartbeat leaves them as they were."""
    return (
        None
        if listed is None
        else sorted(f"{subtopology['subtopologyId']}_{p}" for subtopology in listed for p in subtopology["partitions"])
    )
