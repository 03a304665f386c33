"""A recording's name in, the events of its share group out, in time order: what the pipeline does in columns, done one
exchange at a time."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from io import BytesIO
from itertools import groupby
from typing import Any

from kafkascope.capture.exchanges.exchange import Exchange
from kafkascope.capture.reader import Reading, read
from kafkascope.codec.json_form import to_json
from kafkascope.codec.result import Decoded
from kafkascope.health.share.events import ShareEvent
from kafkascope.health.share.group_health import ShareGroupEvent
from tests.captures import capture

SHARE_SESSION_NOT_FOUND = 122
# When it was closed, in microseconds, and its two ports.
Closed = tuple[int, tuple[int, int]]


@cache
def exchanges(name: str) -> list[Exchange]:
    return sorted(read(BytesIO(capture(name))), key=lambda exchange: exchange.packet)


@cache
def _closed(name: str) -> tuple[Closed, ...]:
    return tuple(closed_connections(BytesIO(capture(name))))


def share_events(name: str, group: str) -> list[ShareEvent]:
    return events_of(exchanges(name), _closed(name), group)


def events_of(recorded: Sequence[Exchange], closed: Iterable[Closed], group: str) -> list[ShareEvent]:
    """In one exchange: acknowledgements, forgotten partitions, session, and at the answer's time what was acquired."""
    events = [event for exchange in recorded for event in _events(exchange, group)]
    fetching = {
        exchange.client_address: exchange.connection_id for exchange in recorded if exchange.api == "ShareFetch"
    }
    events.extend(_disconnected(closed, group, fetching))
    numbered = [event._replace(order=order) for order, event in enumerate(events)]
    return sorted(numbered, key=lambda event: (event.at_us, event.order))


def _events(exchange: Exchange, group: str) -> Iterator[ShareEvent]:
    if exchange.api == "WriteShareGroupState":
        yield from _written(exchange, group)
    if exchange.api not in ("ShareFetch", "ShareAcknowledge"):
        return
    request_body, answer = body(exchange, "request"), body(exchange, "response")
    if request_body["groupId"] != group:
        return
    base = ShareEvent(
        "",
        micros(exchange.request_at),
        group_id=group,
        exchange_id=exchange.exchange_id,
        connection_id=exchange.connection_id,
        broker=exchange.broker_address,
        member_id=request_body["memberId"],
        client_id=exchange.client_id,
        asked_us=micros(exchange.request_at),
        answered_us=micros(exchange.response_at) if answer else None,
        lock_timeout_ms=answer.get("acquisitionLockTimeoutMs") if answer else None,
    )
    yield from body_events(exchange.api, request_body, answer, base)


def body_events(api: str, request_body: Any, answer: Any, base: ShareEvent) -> Iterator[ShareEvent]:
    """Of a ShareFetch or ShareAcknowledge. `base` has what they share, at the request's time."""
    whole = answer["errorCode"] if answer else None
    places = {
        (topic["topicId"], place["partitionIndex"]): place
        for topic in (answer or {}).get("responses", ())
        for place in topic["partitions"]
    }
    field = "acknowledgeErrorCode" if api == "ShareFetch" else "errorCode"
    for topic in request_body["topics"]:
        for place in topic["partitions"]:
            key = (topic["topicId"], place["partitionIndex"])
            error = whole or (places[key][field] if key in places else whole)
            for batch in place["acknowledgementBatches"]:
                for first, last, type_ in _runs(batch):
                    yield base._replace(
                        kind="acknowledged",
                        topic_id=key[0],
                        partition=key[1],
                        first_offset=first,
                        last_offset=last,
                        value=type_,
                        error_code=error,
                    )
    for topic in request_body.get("forgottenTopicsData", ()):
        for number in topic["partitions"]:
            yield base._replace(kind="forgotten", topic_id=topic["topicId"], partition=number)
    epoch = request_body["shareSessionEpoch"]
    if epoch in (0, -1) or whole == SHARE_SESSION_NOT_FOUND:
        yield base._replace(kind="session", value=epoch, error_code=whole)
    for (topic_id, number), place in places.items():
        at = base._replace(topic_id=topic_id, partition=number, at_us=base.answered_us or 0)
        if place["errorCode"]:
            yield at._replace(kind="broker_error", error_code=place["errorCode"])
        for batch in place.get("acquiredRecords", ()):
            yield at._replace(
                kind="acquired",
                first_offset=batch["firstOffset"],
                last_offset=batch["lastOffset"],
                delivery_count=batch["deliveryCount"],
            )


def _runs(batch: dict[str, Any]) -> Iterator[tuple[int, int, int]]:
    types, offset = batch["acknowledgeTypes"], batch["firstOffset"]
    if len(types) == 1:
        yield offset, batch["lastOffset"], types[0]
        return
    for type_, run in groupby(types):
        length = len(list(run))
        yield offset, offset + length - 1, type_
        offset += length


def _written(exchange: Exchange, group: str) -> Iterator[ShareEvent]:
    request_body, answer = body(exchange, "request"), body(exchange, "response")
    errors = {
        (topic["topicId"], place["partition"]): place["errorCode"]
        for topic in (answer or {}).get("results", ())
        for place in topic["partitions"]
    }
    for topic in request_body["topics"] if request_body["groupId"] == group else ():
        for place in topic["partitions"]:
            base = ShareEvent(
                "state_written",
                micros(exchange.request_at),
                group_id=group,
                exchange_id=exchange.exchange_id,
                topic_id=topic["topicId"],
                partition=place["partition"],
                start_offset=place["startOffset"],
                error_code=errors.get((topic["topicId"], place["partition"])),
            )
            for batch in place["stateBatches"]:
                yield base._replace(
                    first_offset=batch["firstOffset"],
                    last_offset=batch["lastOffset"],
                    value=batch["deliveryState"],
                    delivery_count=batch["deliveryCount"],
                )


def closed_connections(recording: Any) -> Iterator[Closed]:
    """The last packet of a connection that was closed stands for its FIN."""
    reading = Reading(recording)
    for _ in reading.batches():
        pass
    for connection in reading.account.connections:
        if connection.closed is not None:
            ends = connection.ends
            yield connection.last_ns // 1000, (ends.port_a, ends.port_b)


def _disconnected(closed: Iterable[Closed], group: str, fetching: dict[str, str]) -> Iterator[ShareEvent]:
    for at_us, ports in closed:
        for port in ports:
            number = fetching.get(f"127.0.0.1:{port}")
            if number is not None:
                yield ShareEvent("disconnected", at_us, group_id=group, connection_id=number)


def group_events(name: str, group: str) -> list[ShareGroupEvent]:
    events: list[ShareGroupEvent] = []
    for exchange in exchanges(name):
        answer = body(exchange, "response")
        if answer is None:
            continue
        base = ShareGroupEvent("", micros(exchange.response_at), len(events), group, exchange.exchange_id)
        if exchange.api == "ShareGroupHeartbeat" and (request_body := body(exchange, "request"))["groupId"] == group:
            assignment = answer["assignment"]
            events.append(
                base._replace(
                    kind="heartbeat",
                    at_us=micros(exchange.request_at),
                    member_id=request_body["memberId"],
                    member_epoch=request_body["memberEpoch"],
                    group_epoch=answer["memberEpoch"],
                    error_code=answer["errorCode"],
                    assigned=None
                    if assignment is None
                    else sum(len(topic["partitions"]) for topic in assignment["topicPartitions"]),
                )
            )
        elif exchange.api == "ShareGroupDescribe":
            events.extend(
                base._replace(
                    kind="described",
                    state=described["groupState"],
                    group_epoch=described["groupEpoch"],
                    assignment_epoch=described["assignmentEpoch"],
                    members=len(described["members"]),
                    assigned=sum(
                        len(topic["partitions"])
                        for member in described["members"]
                        for topic in member["assignment"]["topicPartitions"]
                    ),
                    error_code=described["errorCode"],
                )
                for described in answer["groups"]
                if described["groupId"] == group
            )
        elif exchange.api == "DescribeShareGroupOffsets":
            events.extend(
                base._replace(
                    kind="offsets",
                    topic=topic["topicName"],
                    topic_id=topic["topicId"],
                    partition=place["partitionIndex"],
                    start_offset=place["startOffset"],
                    lag=place.get("lag"),
                    error_code=place["errorCode"],
                )
                for described in answer["groups"]
                if described["groupId"] == group
                for topic in described["topics"]
                for place in topic["partitions"]
            )
    return sorted(events, key=lambda event: (event.at_us, event.order))


def body(exchange: Exchange, kind: str) -> Any:
    decoded: Decoded | None = exchange.request if kind == "request" else exchange.response
    return None if decoded is None else to_json(decoded.name, exchange.api_version or 0, decoded.value)


def micros(at: Any) -> int:
    return 0 if at is None else round(at.timestamp() * 1_000_000)
