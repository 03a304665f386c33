"""A member against a model of a cluster: whatever is lost, moved, fenced or late, nothing is acknowledged that was not
handed out, each acquisition ends once, session epochs go up by one, and every acknowledgement gets one result."""

import copy
import random
from collections import Counter
from typing import Any

import pytest

from kafkascope.client.share.member import Send, ShareMember
from kafkascope.client.share.membership import Membership
from kafkascope.client.share.values import (
    Acknowledge,
    AcquireMode,
    Delivery,
    FetchLimits,
    SharePartition,
)
from tests.client.share.broker_model import MEMBER, Model
from tests.client.share.mangle import fitted, mangled

SEEDS = range(60)
STEPS = 400
FINAL = (Acknowledge.ACCEPT, Acknowledge.ACCEPT, Acknowledge.RELEASE, Acknowledge.REJECT)


class Run:
    """One member, one model, and an application that acknowledges in any order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model(seed)
        mode = self.random.choice(list(AcquireMode))
        membership = Membership("group", MEMBER, ("orders",))
        self.member = ShareMember(membership, FetchLimits(max_records=self.random.randint(1, 40), mode=mode))
        self.flight: list[tuple[Send, dict[str, Any] | None]] = []
        self.held: list[tuple[SharePartition, int]] = []
        self.asked: Counter[tuple[SharePartition, int, int]] = Counter()
        self.got: Counter[tuple[SharePartition, int, int]] = Counter()

    def poll(self, *, fetch: bool, flush: bool) -> None:
        for send in self.member.poll(self.model.now, fetch=fetch, flush=flush):
            # A broker handles it now, whether or not its response arrives.
            lost_before = self.model.faults and self.random.random() < 0.02
            value = copy.deepcopy(send.value)
            response = None if lost_before else self.model.handle(send.api, value, send.node)
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
            self.member.lost(send, self.model.now)
        else:
            self.model.arrived(send.api, send.value, response)
            self.member.received(send, response, self.model.now)
        self.collect()

    def collect(self) -> None:
        while self.member.deliveries:
            delivery: Delivery = self.member.deliveries.popleft()
            for part in delivery.acquired:
                self.held += [(delivery.partition, offset) for offset in range(part.first, part.last + 1)]
        for result in self.member.results:
            for offset in range(result.first, result.last + 1):
                self.got[result.partition, offset, result.type] += 1
        self.member.results.clear()

    def acknowledge(self, kinds: tuple[Acknowledge, ...]) -> None:
        """A run of neighbours, or offsets here and there; now and then twice."""
        if not self.held:
            return
        start = self.random.randrange(len(self.held))
        for partition, offset in self.held[start : start + self.random.randint(1, 8)]:
            kind = self.random.choice(kinds)
            self.asked[partition, offset, int(kind)] += 1
            self.member.acknowledge(self.model.now, partition, offset, offset, kind)
            if kind != Acknowledge.RENEW and self.random.random() < 0.95:
                self.held.remove((partition, offset))
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
