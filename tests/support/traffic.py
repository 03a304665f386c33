"""Conversations between a Kafka client and a broker: a random source in, messages of both directions out, with the
frames that they are made of."""

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from kafkascope.codec.frame import encode_frame
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.examples import example
from tests.support.flows import Message

REQUEST, RESPONSE = 0, 1


@dataclass(frozen=True, slots=True)
class SentFrame:
    offset: int
    body: bytes
    token: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    messages: list[Message]
    frames: tuple[list[SentFrame], list[SentFrame]]


@cache
def _pairs() -> list[tuple[str, int]]:
    """APIs that clients use, in all their versions."""
    names = (
        "Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat SyncGroup "
        "ApiVersions CreateTopics InitProducerId DescribeGroups ShareFetch StreamsGroupHeartbeat ConsumerGroupHeartbeat"
    ).split()
    known = set(apis().values())
    assert known.issuperset(names)
    return [(name, version) for name in names for version in message(f"{name}Request").all_versions()]


def request(api: str, version: int, correlation_id: int, client_id: str | None = "orders-app", **fields: Any) -> bytes:
    header = {"correlationId": correlation_id, "clientId": client_id}
    return encode_frame(f"{api}Request", version, example(f"{api}Request", version) | fields, header)


def response(api: str, version: int, correlation_id: int, **fields: Any) -> bytes:
    value = example(f"{api}Response", version) | fields
    return encode_frame(f"{api}Response", version, value, {"correlationId": correlation_id})


def produce(correlation_id: int, size: int, fill: bytes = b"\x5a") -> bytes:
    value = example("ProduceRequest", 9)
    value["topicData"][0]["partitionData"][0]["records"] = (fill * size)[:size]
    return request("Produce", 9, correlation_id, topicData=value["topicData"])


def framed(token: bytes) -> bytes:
    return len(token).to_bytes(4, "big") + token


def conversation(random: Random, exchanges: int, *, sasl: bool = False, pipelined: int = 3) -> Conversation:
    """Requests, up to `pipelined` of them before their responses, which keep their order."""
    messages: list[Message] = []
    waiting: list[bytes] = []
    identity = random.choice((0, 1, 2_147_483_640, random.randrange(2**31 - 1_000)))
    messages += [(REQUEST, request("ApiVersions", 3, identity)), (RESPONSE, response("ApiVersions", 3, identity))]
    tokens: set[int] = set()
    if sasl:
        identity += 1
        tokens.update(range(len(messages) + 2, len(messages) + 4))
        messages += [
            (REQUEST, request("SaslHandshake", 0, identity)), (RESPONSE, response("SaslHandshake", 0, identity)),
            (REQUEST, framed(b"\0alice\0alice-secret")), (RESPONSE, framed(b"")),
        ]  # fmt: skip
    for _ in range(exchanges):
        identity = (identity + 1) % 2**31
        if random.random() < 0.15:
            messages.append((REQUEST, produce(identity, random.choice((100, 2_000, 12_000)), random.randbytes(61))))
            waiting.append(response("Produce", 9, identity))
        else:
            api, version = random.choice(_pairs())
            messages.append((REQUEST, request(api, version, identity)))
            waiting.append(response(api, version, identity))
        while waiting and (len(waiting) > pipelined or random.random() < 0.5):
            messages.append((RESPONSE, waiting.pop(0)))
    messages += [(RESPONSE, answer) for answer in waiting]
    frames: tuple[list[SentFrame], list[SentFrame]] = ([], [])
    offsets = [0, 0]
    for place, (direction, data) in enumerate(messages):
        frames[direction].append(SentFrame(offsets[direction], data[4:], place in tokens))
        offsets[direction] += len(data)
    return Conversation(messages, frames)
