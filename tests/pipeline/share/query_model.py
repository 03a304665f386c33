"""A model of a streaming query that reads a share group: Spark's offset log and commit log, a sink that takes each
batch once, and crashes at any moment. Brokers are those of `broker_model`."""

import copy
import json
import random
from collections import Counter
from typing import Any

from kafkascope.client.share.member import Send, ShareMember
from kafkascope.client.share.membership import Membership
from kafkascope.client.share.values import FetchLimits, SharePartition
from kafkascope.pipeline.share.batch_offset import BatchOffset, Sets, parse_offset
from kafkascope.pipeline.share.batches import Batches
from kafkascope.pipeline.share.ledger import spans
from kafkascope.pipeline.share.ranges import OffsetSet
from tests.client.share.broker_model import MEMBER, Model

Place = tuple[SharePartition, int]


class Query:
    """`rows` counts how often the sink has each offset."""

    def __init__(self, seed: int, *, renews: bool = True) -> None:
        self.random = random.Random(seed)
        self.model = Model(seed)
        self.renews = renews
        # As in the checkpoint: JSON, which is all that a restart has.
        self.log: list[str] = [json.dumps(BatchOffset(0, MEMBER).to_json())]
        self.committed = 0
        self.sink: set[int] = set()
        self.rows: Counter[Place] = Counter()
        self.released: Counter[Place] = Counter()
        self.verdicts: dict[int, tuple[Sets, Sets]] = {}
        self.flight: list[tuple[Send, dict[str, Any] | None]] = []
        self.restarts = 0
        self.start()

    def start(self) -> None:
        """A new process: it knows the logs. A logged batch that isn't committed runs again first."""
        self.batches: Batches | None = None
        if len(self.log) - 1 > self.committed:
            self.run_batch()

    def crash(self) -> None:
        """Brokers see the end of the connections."""
        self.restarts += 1
        self.flight.clear()
        for node in (1, 2):
            self.model.drop_session(node)
        self.start()

    def open(self) -> Batches:
        """Joins with the first look for records."""
        if self.batches is None:
            membership = Membership("group", MEMBER, ("orders",))
            member = ShareMember(membership, FetchLimits(max_records=self.random.randint(1, 40)))
            self.batches = Batches(member, self.last(), renews=self.renews)
        return self.batches

    def last(self) -> BatchOffset:
        return parse_offset(json.loads(self.log[self.committed]))

    def next_batch(self) -> None:
        """Spark asks for a batch, logs it, and runs it; or dies in between."""
        batches = self.open()
        now = self.model.now
        batches.before_poll(now)
        start = self.last()
        release, reject = self.verdicts.get(start.batch, ({}, {}))
        if start.batch > batches.committed:
            for partition, offsets in release.items():
                for first, last in offsets:
                    self.released.update((partition, offset) for offset in range(first, last + 1))
        batches.commit(start, now, release, reject)
        batch = batches.make(start, self.random.randint(1, 30), now, now)
        if batch is None:
            return None
        for _ in range(self.random.randint(0, 6)):
            self.network()
        if self.model.faults and self.random.random() < 0.05:
            return self.crash()
        self.log.append(json.dumps(batch.to_json()))
        if self.model.faults and self.random.random() < 0.1:
            return self.crash()
        for _ in range(self.random.randint(0, 6)):
            self.network()
        self.run_batch()
        return None

    def run_batch(self) -> None:
        """The sink takes a batch once, and then Spark's commit log has it."""
        batch = parse_offset(json.loads(self.log[-1]))
        if batch.batch not in self.sink:
            for partition, first, last in spans(batch.records):
                self.rows.update((partition, offset) for offset in range(first, last + 1))
            self.sink.add(batch.batch)
            self.verdicts[batch.batch] = self.verdict(batch)
        if self.model.faults and self.random.random() < 0.1:
            return self.crash()
        self.committed = len(self.log) - 1
        return None

    def verdict(self, batch: BatchOffset) -> tuple[Sets, Sets]:
        """Now and then a record is released, or rejected."""
        sets: tuple[Sets, Sets] = ({}, {})
        for partition, first, last in spans(batch.records):
            for offset in range(first, last + 1):
                chance = self.random.random()
                if chance < 0.04:
                    sets[chance < 0.02].setdefault(partition, OffsetSet()).add(offset, offset)
        return sets

    def network(self) -> None:
        """Something is sent, comes back, is lost, or takes time."""
        if self.batches is None:
            return
        model, member, chance = self.model, self.batches.member, self.random.random()
        if chance < 0.45:
            self.batches.before_poll(model.now)
            for send in member.poll(model.now, fetch=self.random.random() < 0.8, flush=self.random.random() < 0.3):
                value = copy.deepcopy(send.value)
                self.flight.append((send, model.handle(send.api, value, send.node)))
        elif chance < 0.80 and self.flight:
            send, response = self.flight.pop(self.random.randrange(len(self.flight)))
            if model.faults and self.random.random() < 0.03:
                if send.node is not None:
                    model.drop_session(send.node)
                member.lost(send, model.now)
            else:
                assert response is not None
                model.arrived(send.api, send.value, response)
                member.received(send, response, model.now)
            self.batches.take_results()
        else:
            model.now += self.random.choice((0.01, 0.1, 0.3, 1.0))

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.15:
            self.next_batch()
        elif chance < 0.95:
            self.network()
        elif self.model.faults:
            self.random.choice((self.model.move_leader, self.model.fence, self.model.steal, self.crash, self.prune))()

    def prune(self) -> None:
        """A look at the group, as `GroupLook` takes it."""
        if self.batches is None:
            return
        starts = {}
        for partition, state in self.model.partitions.items():
            open_offsets = (number for number, offset in enumerate(state.offsets) if not offset.done)
            starts[partition] = next(open_offsets, len(state.offsets))
        self.batches.prune(starts, set())

    def offsets(self) -> list[Place]:
        return [(partition, number) for partition, state in self.model.partitions.items()
                for number in range(len(state.offsets))]  # fmt: skip
