"""`consume` at brokers that wish nobody well: mangled responses of the property tests, as bytes on a socket. It ends
with a documented exit code and no traceback, and acknowledges nothing that these brokers did not hand out."""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from subprocess import CompletedProcess
from time import monotonic
from typing import Any
from uuid import UUID

import pytest

from kafkascope.client import share_consumer
from kafkascope.client.settings import Address
from kafkascope.codec.frame import DecodedFrame, decode_frame
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.errors import DecodeError, UsageError
from tests.client.servers import BROKER, Peer, ranges, serving
from tests.client.share.broker_model import MEMBER, Model
from tests.client.share.mangle import fitted, mangled
from tests.support.cli import process

SEEDS = range(12)
NODES = (1, 2)
OUTCOMES = ("--accept", "--release", "--reject")
# Done, refused, and not reached: what `consume` documents.
EXIT_CODES = {0, 1, 4}
# Responses before the first one that is mangled: from the very first on, or once records have come.
HONEST = (0, 4, 8, 20)
_OF_A_FETCH = ("acknowledgeErrorCode", "acknowledgeErrorMessage", "records", "acquiredRecords")


class Brokers:
    """Two of them, with a model of what they keep. `handed` is every range that a response of theirs acquired."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.model = Model(seed)
        self.model._check = lambda *_: None  # type: ignore[method-assign]
        self.honest = self.chance.choice(HONEST)
        # By node.
        self.versions = {1: BROKER, 2: BROKER}
        self.addresses: dict[int, Address] = {}
        self.handed: list[tuple[UUID, int, int, int]] = []
        self.acknowledged = 0

    async def serve(self, node: int, peer: Peer) -> None:
        while True:
            request = await peer.request()
            value = self.value(request, node)
            self.honest -= 1
            if self.honest < 0 and request.api != "ApiVersions":
                value = fitted(mangled(value, self.chance))
            frame = bytearray(peer.frame(request, value))
            if self.honest < 0 and self.chance.random() < 0.05:
                # After the correlation id, so that it stays this request's response.
                frame[self.chance.randrange(8, len(frame))] ^= 1 << self.chance.randrange(8)
            if self.honest < 0 and self.chance.random() < 0.02:
                await peer.write(bytes(frame[: self.chance.randrange(len(frame))]))
                return
            self.hand_out(request, bytes(frame))
            await peer.write(bytes(frame))

    def value(self, request: DecodedFrame, node: int) -> dict[str, Any]:
        brokers = [{"nodeId": number, "host": at.host, "port": at.port} for number, at in self.addresses.items()]
        if request.api == "ApiVersions":
            return {"apiKeys": ranges(self.versions[node])}
        if request.api == "FindCoordinator":
            return {"coordinators": [{"key": "g", **brokers[0]}]}
        assert request.body is not None and request.api is not None
        asked = dict(request.body.value)
        if request.api == "Fetch":
            return fetched(asked)
        if request.api == "DescribeShareGroupOffsets":
            return {"groups": [{"groupId": "g", "topics": []}]}
        self.model.now = monotonic()
        if request.api == "Metadata":
            return {"brokers": brokers, "controllerId": 1, "clusterId": "c", **self.model._metadata()}
        if not self.check(asked):
            return {"errorCode": 0}
        try:
            value = self.model.handle(request.api, asked | {"memberId": MEMBER}, node)
        except (KeyError, IndexError, AssertionError):  # it follows what a mangled response said
            more = {"memberEpoch": 1, "heartbeatIntervalMs": 500} if request.api == "ShareGroupHeartbeat" else {}
            return {"errorCode": 0} | more
        for topic in value.get("responses", ()):
            for row in topic["partitions"]:
                row["records"] = record_data(row["acquiredRecords"])
                if request.api == "ShareAcknowledge":
                    for name in _OF_A_FETCH:
                        del row[name]
        return value

    def check(self, asked: dict[str, Any]) -> bool:
        """Asserts that what it acknowledges was handed out. Whether the model can apply it, offset by offset."""
        sizes = [0]
        for topic in asked.get("topics", ()):
            for row in topic["partitions"]:
                place = topic["topicId"], row["partitionIndex"]
                handed = sorted(part[2:] for part in self.handed if part[:2] == place)
                for batch in row["acknowledgementBatches"]:
                    first, last = batch["firstOffset"], batch["lastOffset"]
                    self.acknowledged += 1
                    sizes.append(last - first + 1)
                    for start, end in handed:
                        first = max(first, end + 1) if start <= first else first
                    assert first > last, (place, batch["firstOffset"], last, handed)
        return max(sizes) < 10_000

    def hand_out(self, request: DecodedFrame, frame: bytes) -> None:
        """What these bytes acquire, if they can be decoded at all."""
        if request.api != "ShareFetch":
            return
        try:
            body = decode_frame(frame, response_to=(request.api, request.version)).body
        except DecodeError:
            return
        for topic in body.value["responses"] if body is not None else ():
            for row in topic["partitions"]:
                place = topic["topicId"], row["partitionIndex"]
                self.handed += [(*place, part["firstOffset"], part["lastOffset"]) for part in row["acquiredRecords"]]


def record_data(acquired: Any) -> bytes:
    batches = []
    for part in acquired:
        offsets = range(part["firstOffset"], part["lastOffset"] + 1)
        batches.append(new_batch([Record(offset, 1_700_000_000_000, None, b"value") for offset in offsets]))
    return encode_records(batches)


def fetched(asked: dict[str, Any]) -> dict[str, Any]:
    """Ten records of each partition, from the offset that is asked for."""
    responses = []
    for topic in asked["topics"]:
        rows = []
        for row in topic["partitions"]:
            first = row["fetchOffset"]
            data = record_data([{"firstOffset": first, "lastOffset": first + 9}])
            rows.append({"partitionIndex": row["partition"], "highWatermark": first + 10, "records": data})
        responses.append({"topicId": topic["topicId"], "partitions": rows})
    return {"responses": responses}


@asynccontextmanager
async def serving_both(brokers: Brokers) -> AsyncIterator[str]:
    async with (
        serving(lambda peer: brokers.serve(1, peer)) as first,
        serving(lambda peer: brokers.serve(2, peer)) as second,
    ):
        brokers.addresses = {1: first, 2: second}
        yield f"{first.host}:{first.port}"


def consume(seed: int) -> tuple[CompletedProcess[bytes], Brokers]:
    brokers = Brokers(seed)
    flags = ("--share-group", "g", random.Random(seed).choice(OUTCOMES), "--for", "3s", "--timeout", "3")

    async def run() -> CompletedProcess[bytes]:
        async with serving_both(brokers) as host:
            return await asyncio.to_thread(process, "consume", host, "orders", *flags)

    return asyncio.run(run()), brokers


@pytest.fixture(scope="module")
def runs() -> list[tuple[CompletedProcess[bytes], Brokers]]:
    with ThreadPoolExecutor(6) as pool:
        return list(pool.map(consume, SEEDS))


def test_it_ends_as_documented(runs: list[tuple[CompletedProcess[bytes], Brokers]]) -> None:
    for seed, (done, _) in enumerate(runs):
        text = done.stderr.decode()
        assert done.returncode in EXIT_CODES, (seed, done.returncode, text)
        assert all(line.startswith("kafkascope: ") for line in text.splitlines()), (seed, text)


def test_nothing_is_acknowledged_that_was_not_handed_out(
    runs: list[tuple[CompletedProcess[bytes], Brokers]],
) -> None:
    """Each broker asserts it at every request. Here: the runs were about something."""
    assert sum(brokers.acknowledged for _, brokers in runs) > 10
    assert sum(bool(re.search(rb"^orders-\d ", done.stdout)) for done, _ in runs) > 1


# Of Kafka 4.1: without renewal and record limits.
OLD = BROKER | {78: (1, 1), 79: (1, 1)}


@pytest.mark.parametrize(
    ("options", "nodes"), [({}, (1, 2)), ({"renew": True}, (2,)), ({"acquire_mode": "record_limit"}, (2,))]
)
def test_brokers_that_are_too_old_are_an_error_and_not_a_loss(options: dict[str, Any], nodes: tuple[int, ...]) -> None:
    """All of them, or some, as during an upgrade."""
    brokers = Brokers(1)
    brokers.honest, brokers.model.faults = 10**9, False
    brokers.versions |= dict.fromkeys(nodes, OLD)

    async def run() -> None:
        async with (
            serving_both(brokers) as host,
            share_consumer(host, group="g", topics=["orders"], timeout=30.0, **options) as consumer,
        ):
            while True:
                batch = await consumer.take(30.0)
                assert batch is not None
                batch.renew()
                await consumer.commit()
                batch.accept()

    with pytest.raises(UsageError, match=r"need Kafka 4\.2 or newer"):
        asyncio.run(run())
