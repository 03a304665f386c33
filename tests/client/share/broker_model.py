"""A model of a cluster with share groups, and of the network to it: what brokers keep of sessions and locks, without
records' bytes. It checks each request of a member against what was handed to that member."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafkascope.client.share.values import SharePartition

LOCK = 3.0
MEMBER = "member-under-test"
_OTHER = "another-member"
TOPIC = UUID(int=77)
_SESSION_NOT_FOUND, _INVALID_EPOCH, _LIMIT_REACHED = 122, 123, 133
_INVALID_RECORD_STATE, _NOT_LEADER, _FENCED, _UNKNOWN_MEMBER = 121, 6, 110, 25
_COORDINATOR_NOT_AVAILABLE = 15


@dataclass(slots=True)
class Offset:
    """One offset of a share partition, as its leader keeps it."""

    owner: str | None = None
    until: float = 0.0
    deliveries: int = 0
    done: bool = False
    # The delivery that the member's last final acknowledgement was a success for, as far as the member was told.
    confirmed: int = -1
    accepted: int = 0


@dataclass(slots=True)
class Partition:
    leader: int
    epoch: int
    offsets: list[Offset]


@dataclass(slots=True)
class Session:
    epoch: int
    partitions: set[SharePartition]


@dataclass(slots=True)
class Handed:
    """What responses that arrived have handed to the member: the last delivery of each offset."""

    deliveries: dict[tuple[SharePartition, int], int] = field(default_factory=dict)


class Model:
    """Two brokers and one coordinator. `step` methods change the world; `handle` responds to a request."""

    def __init__(self, seed: int, partitions: int = 3, offsets: int = 60) -> None:
        self.random = random.Random(seed)
        self.now = 1_000.0
        self.partitions = {
            SharePartition(TOPIC, number): Partition(self.random.randint(1, 2), 1, [Offset() for _ in range(offsets)])
            for number in range(partitions)
        }
        self.sessions: dict[int, Session] = {}
        self.epochs: dict[int, list[int]] = {1: [], 2: []}
        self.member_epoch = 0
        self.assigned: list[SharePartition] = sorted(self.partitions)
        self.handed = Handed()
        self.left = False
        self.faults = True

    # -- requests

    def handle(self, api: str, value: dict[str, Any], node: int | None) -> dict[str, Any]:
        if api == "ShareGroupHeartbeat":
            return self._heartbeat(value)
        if api == "Metadata":
            return self._metadata()
        assert node is not None
        return self._fetch(value, node) if api == "ShareFetch" else self._acknowledge(value, node)

    def arrived(self, api: str, request: dict[str, Any], response: dict[str, Any]) -> None:
        """The member got this response: what it acquires is handed out now, what it confirms is final."""
        if api not in ("ShareFetch", "ShareAcknowledge") or response["errorCode"]:
            return
        name = "acknowledgeErrorCode" if api == "ShareFetch" else "errorCode"
        codes = {
            (topic["topicId"], row["partitionIndex"]): row[name]
            for topic in response["responses"]
            for row in topic["partitions"]
        }
        for partition, offset, kind in acknowledged(request):
            if codes.get(partition, -1) == 0 and kind != 4 and offset < len(self.partitions[partition].offsets):
                self.partitions[partition].offsets[offset].confirmed = self.handed.deliveries[partition, offset]
        for topic in response["responses"] if api == "ShareFetch" else ():
            for row in topic["partitions"]:
                partition = SharePartition(topic["topicId"], row["partitionIndex"])
                for part in row["acquiredRecords"]:
                    for offset in range(part["firstOffset"], min(part["lastOffset"], 10_000) + 1):
                        self.handed.deliveries[partition, offset] = part["deliveryCount"]

    def _check(self, value: dict[str, Any], api: str, node: int) -> None:
        """The invariants that a request must keep."""
        epoch = value["shareSessionEpoch"]
        seen = self.epochs[node]
        if epoch > 0:
            assert seen and seen[-1] == epoch - 1, f"session epoch {epoch} after {seen[-1:]}"
        elif epoch == -1:
            assert seen and seen[-1] >= 0 and api == "ShareAcknowledge"
        else:
            assert api == "ShareFetch" and not list(acknowledged(value)), "acknowledgements on a first fetch"
        seen.append(epoch)
        renews = False
        for topic in value["topics"]:
            for row in topic["partitions"]:
                last = -1
                for batch in row["acknowledgementBatches"]:
                    size = batch["lastOffset"] - batch["firstOffset"] + 1
                    assert batch["firstOffset"] > last and size > 0 and len(batch["acknowledgeTypes"]) in (1, size)
                    last = batch["lastOffset"]
        for partition, offset, kind in acknowledged(value):
            renews = renews or kind == 4
            delivery = self.handed.deliveries.get((partition, offset))
            assert delivery is not None, f"{partition.partition}-{offset} acknowledged and never handed out"
            state = self.partitions[partition].offsets[offset]
            assert state.confirmed != delivery, f"{partition.partition}-{offset} ended twice"
        assert value["isRenewAck"] == renews
        if api == "ShareFetch" and renews:
            assert not (value["maxWaitMs"] or value["minBytes"] or value["maxBytes"] or value["maxRecords"])

    def _heartbeat(self, value: dict[str, Any]) -> dict[str, Any]:
        empty = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "memberId": MEMBER, "memberEpoch": 0}
        empty |= {"heartbeatIntervalMs": 500, "assignment": None}
        epoch = value["memberEpoch"]
        assert value["memberId"] == MEMBER
        if epoch == -1:
            self.left = True
            return {**empty, "memberEpoch": -1}
        if epoch == 0:
            assert value["subscribedTopicNames"] == ["orders"]
            self.member_epoch += 1
        elif epoch != self.member_epoch:
            return {**empty, "errorCode": _FENCED}
        topics = [{"topicId": TOPIC, "partitions": [partition.partition for partition in self.assigned]}]
        return {**empty, "memberEpoch": self.member_epoch, "assignment": {"topicPartitions": topics}}

    def _metadata(self) -> dict[str, Any]:
        rows = [
            {"errorCode": 0, "partitionIndex": key.partition, "leaderId": part.leader, "leaderEpoch": part.epoch}
            for key, part in self.partitions.items()
        ]
        return {"topics": [{"errorCode": 0, "name": "orders", "topicId": TOPIC, "partitions": rows}]}

    def _session(self, value: dict[str, Any], node: int) -> int:
        """The error code for its session epoch; the session is updated."""
        epoch, session = value["shareSessionEpoch"], self.sessions.get(node)
        if epoch == 0:
            self.sessions[node] = Session(1, set())
            return 0
        if session is None:
            return _SESSION_NOT_FOUND
        if epoch == -1:
            return 0
        if epoch != session.epoch:
            return _INVALID_EPOCH
        session.epoch += 1
        return 0

    def _fetch(self, value: dict[str, Any], node: int) -> dict[str, Any]:
        self._check(value, "ShareFetch", node)
        response: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "nodeEndpoints": []}
        response |= {"acquisitionLockTimeoutMs": int(LOCK * 1000), "responses": []}
        code = self._session(value, node)
        if code == 0 and self.faults and self.random.random() < 0.03:
            code = self.random.choice((_LIMIT_REACHED, _SESSION_NOT_FOUND, 56, 9_999))
        if code:
            if code in (_LIMIT_REACHED, _SESSION_NOT_FOUND):
                self.drop_session(node)
            return {**response, "errorCode": code}
        session = self.sessions[node]
        named = {
            SharePartition(topic["topicId"], row["partitionIndex"])
            for topic in value["topics"]
            for row in topic["partitions"]
        }
        session.partitions |= named
        for topic in value["forgottenTopicsData"]:
            session.partitions -= {SharePartition(topic["topicId"], number) for number in topic["partitions"]}
        codes = self._apply(value, node)
        left = value["maxRecords"]
        rows: dict[SharePartition, dict[str, Any]] = {}
        for partition in sorted(session.partitions | set(codes)):
            rows[partition] = row = _row(partition.partition, codes.get(partition, 0))
            if partition not in session.partitions:
                continue
            state = self.partitions[partition]
            if state.leader != node:
                named_leader = self.random.random() < 0.5
                row["errorCode"] = _NOT_LEADER
                row["currentLeader"] = {
                    "leaderId": state.leader if named_leader else -1,
                    "leaderEpoch": state.epoch if named_leader else -1,
                }
                continue
            taken = self._acquire(state, min(left, self.random.randint(0, 12)))
            left -= len(taken)
            row["acquiredRecords"] = _ranges(taken, state)
        responses = [row for row in rows.values() if row["errorCode"] or row["acquiredRecords"]]
        responses += [row for partition, row in rows.items() if partition in codes and row not in responses]
        return {**response, "responses": [{"topicId": TOPIC, "partitions": responses}] if responses else []}

    def _acknowledge(self, value: dict[str, Any], node: int) -> dict[str, Any]:
        self._check(value, "ShareAcknowledge", node)
        response: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "nodeEndpoints": []}
        response |= {"acquisitionLockTimeoutMs": int(LOCK * 1000), "responses": []}
        code = self._session(value, node)
        if code:
            return {**response, "errorCode": code}
        codes = self._apply(value, node)
        if value["shareSessionEpoch"] == -1:
            self.drop_session(node)
        rows = [{**_row(partition.partition, 0), "errorCode": code} for partition, code in codes.items()]
        return {**response, "responses": [{"topicId": TOPIC, "partitions": rows}] if rows else []}

    def _apply(self, value: dict[str, Any], node: int) -> dict[SharePartition, int]:
        """All acknowledgements of a partition, or none of them."""
        wanted: dict[SharePartition, list[tuple[int, int]]] = {}
        for partition, offset, kind in acknowledged(value):
            wanted.setdefault(partition, []).append((offset, kind))
        codes: dict[SharePartition, int] = {}
        for partition, offsets in wanted.items():
            state = self.partitions[partition]
            ours = all(
                state.offsets[offset].owner == MEMBER and self.now < state.offsets[offset].until
                for offset, _ in offsets
            )
            if state.leader != node:
                codes[partition] = _NOT_LEADER
            elif not ours:
                codes[partition] = _INVALID_RECORD_STATE
            elif self.faults and self.random.random() < 0.05:
                codes[partition] = _COORDINATOR_NOT_AVAILABLE
            else:
                codes[partition] = 0
                for offset, kind in offsets:
                    self._apply_one(state.offsets[offset], kind)
        return codes

    def _apply_one(self, offset: Offset, kind: int) -> None:
        if kind == 4:
            offset.until = self.now + LOCK
            return
        offset.owner = None
        offset.done = kind in (0, 1, 3)
        offset.accepted += kind == 1

    def _acquire(self, state: Partition, most: int) -> list[int]:
        taken: list[int] = []
        for number, offset in enumerate(state.offsets):
            if len(taken) == most:
                break
            if offset.done or (offset.owner is not None and self.now < offset.until):
                continue
            offset.owner, offset.until = MEMBER, self.now + LOCK
            offset.deliveries += 1
            taken.append(number)
        return taken

    # -- what happens in the world

    def drop_session(self, node: int) -> None:
        """Closed, evicted or disconnected: what the member held there is released."""
        self.sessions.pop(node, None)
        for state in self.partitions.values():
            if state.leader == node:
                self._release(state)

    def move_leader(self) -> None:
        state = self.random.choice(list(self.partitions.values()))
        self._release(state)
        state.leader, state.epoch = 3 - state.leader, state.epoch + 1

    def fence(self) -> None:
        self.member_epoch += 1

    def reassign(self) -> None:
        self.assigned = sorted(
            self.random.sample(sorted(self.partitions), self.random.randint(0, len(self.partitions)))
        )

    def steal(self) -> None:
        """Another member gets offsets whose lock has run out, and accepts them."""
        for state in self.partitions.values():
            for offset in state.offsets:
                if not offset.done and offset.owner == MEMBER and self.now >= offset.until:
                    offset.owner, offset.until = _OTHER, self.now + 1
                    offset.deliveries += 1

    def _release(self, state: Partition) -> None:
        for offset in state.offsets:
            if offset.owner == MEMBER:
                offset.owner = None


def acknowledged(value: dict[str, Any]) -> Iterator[tuple[SharePartition, int, int]]:
    """Each acknowledged offset of a request, with its type."""
    for topic in value["topics"]:
        for row in topic["partitions"]:
            partition = SharePartition(topic["topicId"], row["partitionIndex"])
            for batch in row["acknowledgementBatches"]:
                types = batch["acknowledgeTypes"]
                for index, offset in enumerate(range(batch["firstOffset"], batch["lastOffset"] + 1)):
                    yield partition, offset, types[index] if len(types) > 1 else types[0]


def _row(number: int, code: int) -> dict[str, Any]:
    return {
        "partitionIndex": number,
        "errorCode": 0,
        "errorMessage": None,
        "acknowledgeErrorCode": code,
        "acknowledgeErrorMessage": None,
        "currentLeader": {"leaderId": -1, "leaderEpoch": -1},
        "records": b"",
        "acquiredRecords": [],
    }


def _ranges(offsets: list[int], state: Partition) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = []
    for offset in offsets:
        count = state.offsets[offset].deliveries
        if rows and rows[-1]["lastOffset"] == offset - 1 and rows[-1]["deliveryCount"] == count:
            rows[-1]["lastOffset"] = offset
        else:
            rows.append({"firstOffset": offset, "lastOffset": offset, "deliveryCount": count})
    return rows
