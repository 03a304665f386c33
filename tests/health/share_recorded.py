"""A recording's name in, the events of its share group out, in time order: what the pipeline does in columns, done one
exchange at a time."""

from collections.abc import Iterator
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


@cache
def exchanges(name: str) -> list[Exchange]:
    return sorted(read(BytesIO(capture(name))), key=lambda one: one.packet)


def share_events(name: str, group: str) -> list[ShareEvent]:
    """In one exchange: acknowledgements, forgotten partitions, session, and at the answer's time what was acquired."""
    events = [event for one in exchanges(name) for event in _events(one, group)]
    fetching = {one.client_address: one.connection_id for one in exchanges(name) if one.api == "ShareFetch"}
    events.extend(_disconnected(name, group, fetching))
    numbered = [event._replace(order=order) for order, event in enumerate(events)]
    return sorted(numbered, key=lambda event: (event.at_us, event.order))


def _events(one: Exchange, group: str) -> Iterator[ShareEvent]:
    if one.api == "WriteShareGroupState":
        yield from _written(one, group)
    if one.api not in ("ShareFetch", "ShareAcknowledge"):
        return
    asked, answer = body(one, "request"), body(one, "response")
    if asked["groupId"] != group:
        return
    base = ShareEvent(
        "",
        micros(one.request_at),
        group_id=group,
        exchange_id=one.exchange_id,
        connection_id=one.connection_id,
        broker=one.broker_address,
        member_id=asked["memberId"],
        client_id=one.client_id,
        asked_us=micros(one.request_at),
        answered_us=micros(one.response_at) if answer else None,
        lock_timeout_ms=answer.get("acquisitionLockTimeoutMs") if answer else None,
    )
    whole = answer["errorCode"] if answer else None
    places = {
        (topic["topicId"], place["partitionIndex"]): place
        for topic in (answer or {}).get("responses", ())
        for place in topic["partitions"]
    }
    field = "acknowledgeErrorCode" if one.api == "ShareFetch" else "errorCode"
    for topic in asked["topics"]:
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
    for topic in asked.get("forgottenTopicsData", ()):
        for number in topic["partitions"]:
            yield base._replace(kind="forgotten", topic_id=topic["topicId"], partition=number)
    epoch = asked["shareSessionEpoch"]
    if epoch in (0, -1) or whole == SHARE_SESSION_NOT_FOUND:
        yield base._replace(kind="session", value=epoch, error_code=whole)
    for (topic_id, number), place in places.items():
        at = base._replace(topic_id=topic_id, partition=number, at_us=micros(one.response_at))
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


def _written(one: Exchange, group: str) -> Iterator[ShareEvent]:
    asked, answer = body(one, "request"), body(one, "response")
    errors = {
        (topic["topicId"], place["partition"]): place["errorCode"]
        for topic in (answer or {}).get("results", ())
        for place in topic["partitions"]
    }
    for topic in asked["topics"] if asked["groupId"] == group else ():
        for place in topic["partitions"]:
            base = ShareEvent(
                "state_written",
                micros(one.request_at),
                group_id=group,
                exchange_id=one.exchange_id,
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


def _disconnected(name: str, group: str, fetching: dict[str, str]) -> Iterator[ShareEvent]:
    """The last packet of a connection that was closed stands for its FIN."""
    reading = Reading(BytesIO(capture(name)))
    for _ in reading.batches():
        pass
    for connection in reading.account.connections:
        ends = connection.ends
        for port in (ends.port_a, ends.port_b):
            number = fetching.get(f"127.0.0.1:{port}")
            if number is not None and connection.closed is not None:
                yield ShareEvent("disconnected", connection.last_ns // 1000, group_id=group, connection_id=number)


def group_events(name: str, group: str) -> list[ShareGroupEvent]:
    events: list[ShareGroupEvent] = []
    for one in exchanges(name):
        answer = body(one, "response")
        if answer is None:
            continue
        base = ShareGroupEvent("", micros(one.response_at), len(events), group, one.exchange_id)
        if one.api == "ShareGroupHeartbeat" and (asked := body(one, "request"))["groupId"] == group:
            assignment = answer["assignment"]
            events.append(
                base._replace(
                    kind="heartbeat",
                    at_us=micros(one.request_at),
                    member_id=asked["memberId"],
                    member_epoch=asked["memberEpoch"],
                    group_epoch=answer["memberEpoch"],
                    error_code=answer["errorCode"],
                    assigned=None
                    if assignment is None
                    else sum(len(topic["partitions"]) for topic in assignment["topicPartitions"]),
                )
            )
        elif one.api == "ShareGroupDescribe":
            events.extend(
                base._replace(
                    kind="described",
                    state=found["groupState"],
                    group_epoch=found["groupEpoch"],
                    assignment_epoch=found["assignmentEpoch"],
                    members=len(found["members"]),
                    assigned=sum(
                        len(topic["partitions"])
                        for member in found["members"]
                        for topic in member["assignment"]["topicPartitions"]
                    ),
                    error_code=found["errorCode"],
                )
                for found in answer["groups"]
                if found["groupId"] == group
            )
        elif one.api == "DescribeShareGroupOffsets":
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
                for found in answer["groups"]
                if found["groupId"] == group
                for topic in found["topics"]
                for place in topic["partitions"]
            )
    return sorted(events, key=lambda event: (event.at_us, event.order))


def body(one: Exchange, kind: str) -> Any:
    decoded: Decoded | None = one.request if kind == "request" else one.response
    return None if decoded is None else to_json(decoded.name, one.api_version or 0, decoded.value)


def micros(at: Any) -> int:
    return 0 if at is None else round(at.timestamp() * 1_000_000)
