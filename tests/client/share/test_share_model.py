"""A member against a model of a cluster: whatever is lost, moved, fenced or late, nothing is acknowledged that was not
handed out, each acquisition ends once, session epochs go up by one, and every acknowledgement gets one result."""

import copy
import random
from collections import Counter
from typing import Any, NamedTuple

import pytest

from kafkascope.client.share.member import Send, ShareMember
from kafkascope.client.share.membership import Membership
from kafkascope.client.share.values import (
    Acknowledge,
    AcquireMode,
    Delivery,
    DeliveryId,
    FetchLimits,
    SharePartition,
)
from kafkascope.health.share.events import ShareEvent
from kafkascope.health.share.ledger import share_deliveries
from tests.client.share.broker_model import MEMBER, Model
from tests.client.share.mangle import fitted, mangled
from tests.health.share_recorded import body_events


class LedgerRow(NamedTuple):
    partition: SharePartition
    offset: int
    delivery_count: int
    outcome: str


OUTCOMES = {"accepted": Acknowledge.ACCEPT, "released": Acknowledge.RELEASE, "rejected": Acknowledge.REJECT}
SEEDS = range(60)
STEPS = 400
FINAL = (Acknowledge.ACCEPT, Acknowledge.ACCEPT, Acknowledge.RELEASE, Acknowledge.REJECT)


class Wire:
    """What a recording at the brokers would show of the member's share sessions."""

    def __init__(self) -> None:
        self.events: list[ShareEvent] = []
        self.acquired: Counter[tuple[SharePartition, int, int]] = Counter()
        self._connections: Counter[int] = Counter()
        self._last_us = 0

    def exchange(self, send: Send, response: dict[str, Any], now: float) -> None:
        if send.api not in ("ShareFetch", "ShareAcknowledge"):
            return
        asked, answered = self._time(now), self._time(now)
        base = ShareEvent(
            "",
            asked,
            group_id="group",
            exchange_id=f"exchange-{asked}",
            connection_id=self._connection(send.node),
            broker=f"node-{send.node}",
            member_id=MEMBER,
            asked_us=asked,
            answered_us=answered,
            lock_timeout_ms=response["acquisitionLockTimeoutMs"],
        )
        for event in body_events(send.api, send.value, response, base):
            self.events.append(event)
            if event.kind == "acquired":
                partition = SharePartition(event.topic_id, event.partition)  # type: ignore[arg-type]
                for offset in range(event.first_offset, event.last_offset + 1):
                    self.acquired[partition, offset, event.delivery_count or 0] += 1

    def disconnect(self, node: int, now: float) -> None:
        event = ShareEvent("disconnected", self._time(now), group_id="group", connection_id=self._connection(node))
        self.events.append(event)
        self._connections[node] += 1

    def ledger(self) -> list[LedgerRow]:
        """Its rows, one per offset."""
        return [
            LedgerRow(SharePartition(row.topic_id, row.partition), offset, row.delivery_count or 0, row.outcome)  # type: ignore[arg-type]
            for row in share_deliveries(self.events)
            for offset in range(row.first_offset, row.last_offset + 1)
        ]

    def _connection(self, node: int | None) -> str:
        return f"{node}-{self._connections[node or 0]}"

    def _time(self, now: float) -> int:
        """Nothing happens at the same time."""
        self._last_us = max(int(now * 1e6), self._last_us + 1)
        return self._last_us


class Run:
    """One member, one model, and an application that acknowledges in any order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model(seed)
        mode = self.random.choice(list(AcquireMode))
        membership = Membership("group", MEMBER, ("orders",))
        self.member = ShareMember(membership, FetchLimits(max_records=self.random.randint(1, 40), mode=mode))
        self.flight: list[tuple[Send, dict[str, Any] | None]] = []
        self.held: list[tuple[SharePartition, int, DeliveryId]] = []
        # The last delivery of each offset by each broker.
        self.latest: dict[tuple[SharePartition, int, int], DeliveryId] = {}
        self.asked: Counter[tuple[SharePartition, int, int]] = Counter()
        self.got: Counter[tuple[SharePartition, int, int]] = Counter()
        self.confirmed: Counter[tuple[SharePartition, int, int]] = Counter()
        self.unknown: Counter[tuple[SharePartition, int, int]] = Counter()
        self.wire = Wire()

    def poll(self, *, fetch: bool, flush: bool) -> None:
        for send in self.member.poll(self.model.now, fetch=fetch, flush=flush):
            # A broker handles it now, whether or not its response arrives.
            lost_before = self.model.faults and self.random.random() < 0.02
            value = copy.deepcopy(send.value)
            response = None if lost_before else self.model.handle(send.api, value, send.node)
            if response is not None:
                self.wire.exchange(send, response, self.model.now)
            if lost_before and send.node is not None:
                self.model.epochs[send.node].append(value["shareSessionEpoch"])
            self.flight.append((send, response))

    def deliver(self) -> None:
        """One response, any of those under way; or its loss, which is an end of the connection."""
        if not self.flight:
            return
        send, response = self.flight.pop(self.random.randrange(len(self.flight)))
        if response is None or (self.model.faults and self.random.random() < 0.03):
            if send.node is not None:
                self.model.drop_session(send.node)
                self.wire.disconnect(send.node, self.model.now)
            self.member.lost(send, self.model.now)
        else:
            self.model.arrived(send.api, send.value, response)
            self.member.received(send, response, self.model.now)
        self.collect()

    def collect(self) -> None:
        while self.member.deliveries:
            delivery: Delivery = self.member.deliveries.popleft()
            for part in delivery.acquired:
                for offset in range(part.first, part.last + 1):
                    self.held.append((delivery.partition, offset, delivery.id))
                    self.latest[delivery.partition, offset, delivery.node] = delivery.id
        for result in self.member.results:
            for offset in range(result.first, result.last + 1):
                key = result.partition, offset, result.type
                self.got[key] += 1
                self.confirmed[key] += result.code == 0
                self.unknown[key] += result.unknown
        self.member.results.clear()

    def acknowledge(self, kinds: tuple[Acknowledge, ...]) -> None:
        """A run of neighbours, or offsets here and there; now and then twice, or of a delivery before the last."""
        if not self.held:
            return
        start = self.random.randrange(len(self.held))
        for partition, offset, delivery in self.held[start : start + self.random.randint(1, 8)]:
            kind = self.random.choice(kinds)
            self.asked[partition, offset, int(kind)] += 1
            before = len(self.member.results)
            self.member.acknowledge(self.model.now, partition, offset, offset, kind, delivery)
            if delivery != self.latest[partition, offset, delivery.node]:
                refused = self.member.results[before:]
                assert [(result.first, result.sent) for result in refused] == [(offset, False)], (
                    "of an earlier delivery"
                )
            if kind != Acknowledge.RENEW and self.random.random() < 0.95:
                self.held.remove((partition, offset, delivery))
        self.collect()

    def step(self) -> None:
        model, chance = self.model, self.random.random()
        if chance < 0.30:
            self.poll(fetch=self.random.random() < 0.8, flush=self.random.random() < 0.3)
        elif chance < 0.60:
            self.deliver()
        elif chance < 0.80:
            self.acknowledge((*FINAL, Acknowledge.RENEW))
        elif chance < 0.94:
            model.now += self.random.choice((0.01, 0.1, 0.3, 1.0))
        else:
            disturb = (model.move_leader, model.fence, model.reassign, model.steal)
            if chance < 0.98:
                self.random.choice(disturb)()
            else:
                model.drop_session(self.random.randint(1, 2))

    def until_closed(self) -> None:
        self.member.close()
        for _ in range(200):
            self.poll(fetch=False, flush=True)
            self.deliver()
            self.model.now += 0.2
            if self.member.closed and not self.flight:
                break
        self.collect()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_order_loss_or_delay_breaks_an_invariant(seed: int) -> None:
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
    run.until_closed()
    assert run.member.closed
    assert not run.got - run.asked
    # A renewal that isn't sent yet is replaced by the acknowledgement that follows it.
    assert {key for key in run.asked - run.got if key[2] != Acknowledge.RENEW} == set()
    assert run.model.left or run.member.membership.epoch <= 0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_health_ledger_of_the_same_traffic_agrees(seed: int) -> None:
    """Each acquisition is in it once. What the member was told counted is in it; what else it has may have counted, by
    what the member was told. Its accepted records are those of the brokers."""
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
    run.until_closed()
    rows = run.wire.ledger()
    assert Counter((row.partition, row.offset, row.delivery_count) for row in rows) == run.wire.acquired
    counted = Counter(
        (row.partition, row.offset, int(OUTCOMES[row.outcome])) for row in rows if row.outcome in OUTCOMES
    )
    final = {key: times for key, times in run.confirmed.items() if times and key[2] != Acknowledge.RENEW}
    assert Counter(final) - counted == Counter()
    assert counted - Counter(final) - run.unknown == Counter()
    accepted = {
        (partition, number): offset.accepted
        for partition, state in run.model.partitions.items()
        for number, offset in enumerate(state.offsets)
        if offset.accepted
    }
    assert Counter((row.partition, row.offset) for row in rows if row.outcome == "accepted") == Counter(accepted)


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_is_accepted_once_when_the_faults_end(seed: int) -> None:
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
    run.model.faults = False
    run.model.assigned = sorted(run.model.partitions)
    for _ in range(3_000):
        run.poll(fetch=len(run.held) < 20, flush=True)
        run.deliver()
        run.acknowledge((Acknowledge.ACCEPT,))
        run.model.now += 0.05
        if all(offset.done for partition in run.model.partitions.values() for offset in partition.offsets):
            break
    offsets = [offset for partition in run.model.partitions.values() for offset in partition.offsets]
    assert all(offset.done and offset.accepted <= 1 for offset in offsets)


@pytest.mark.parametrize("seed", SEEDS)
def test_hostile_responses_are_ignored_or_become_problems(seed: int) -> None:
    """Numbers out of their ranges and lists out of order never raise, and what is held stays bounded."""
    run = Run(seed)
    run.model._check = lambda *_: None  # type: ignore[method-assign]
    chance = random.Random(seed)
    for _ in range(STEPS):
        for send in run.member.poll(run.model.now, fetch=True, flush=chance.random() < 0.3):
            response = _response(run.model, send)
            run.member.received(send, fitted(mangled(response, chance)), run.model.now)
        for delivery in list(run.member.deliveries):
            first = delivery.acquired[0].first
            run.member.acknowledge(run.model.now, delivery.partition, first, first, chance.choice(FINAL))
        run.member.deliveries.clear()
        run.member.results.clear()
        run.model.now += 0.3
    run.member.close()
    for session in run.member.sessions.values():
        assert session.held_ranges < 10_000


def _response(model: Model, send: Send) -> dict[str, Any]:
    try:
        return model.handle(send.api, copy.deepcopy(send.value), send.node if send.node in (1, 2, None) else 1)
    except (KeyError, IndexError):  # it follows what a hostile response said of partitions and offsets
        return {**model._metadata(), "errorCode": 0, "responses": [], "memberEpoch": 1, "heartbeatIntervalMs": 1}
