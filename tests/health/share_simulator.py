"""A share-partition that follows the broker's rules, record by record: a seed in, what a recording of it shows and the
true end of every delivery out.

It knows nothing of ranges and of the ledger: each offset has a state, a count, a lock. The rules are those of
SharePartition and ShareSessionCache in Kafka 4.3.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from random import Random

from kafkascope.health.share.events import ACCEPT, GAP, REJECT, RELEASE, RENEW, ShareEvent

LOCK_MS = 3000
DOINGS = "fetch acknowledge renew close cut reset reconnect forget move delete vanish".split()
WEIGHTS = [30, 30, 8, 3, 3, 2, 2, 1, 1, 1, 2]
OUTCOME = {ACCEPT: "accepted", RELEASE: "released", REJECT: "rejected"}


@dataclass(slots=True)
class Truth:
    """One record, delivered once."""

    offset: int
    count: int
    member: str
    exchange: str
    broker: str
    acquired_at: int
    renewals: int = 0
    outcome: str = "open"
    outcome_at: int | None = None
    archived: bool = False


@dataclass(slots=True)
class Record:
    state: str = "free"  # free, held, done
    count: int = 0
    written: int = 0  # the count that a new leader would read
    lock_end: int = 0
    delivery: Truth | None = None
    exists: bool = True


@dataclass(slots=True)
class Member:
    name: str
    connections: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)  # broker to the connection that opened it
    forgot: set[str] = field(default_factory=set)
    busy_until: int = 0


class Simulation:
    def __init__(self, seed: int, *, writes: bool) -> None:
        self.random = Random(seed)
        self.writes = writes
        self.limit = self.random.choice([2, 3, 5])
        self.now = 1_000_000_000
        self.events: list[ShareEvent] = []
        self.records = [Record(exists=self.random.random() > 0.05) for _ in range(self.random.choice([6, 20, 60]))]
        self.members = [Member(f"m{number}") for number in range(self.random.choice([1, 2, 4]))]
        self.broker = "b1"
        self.start = 0
        self.truths: list[Truth] = []
        self.numbers = 0
        self.expired_at = 0

    def run(self) -> "Simulation":
        for _ in range(self.random.choice([5, 40, 150])):
            self.tick(self.random.choice([50, 2_000, 200_000, 900_000]))
            self.calm()
            doing = self.random.choices(DOINGS, WEIGHTS)[0]
            getattr(self, doing)(self.random.choice(self.members))
        if self.random.random() < 0.8:
            self.drain()
        self.tick(0)
        self.event("seen", self.now)
        self.events.sort(key=lambda event: (event.at_us, event.order))
        return self

    def tick(self, micros: int) -> int:
        self.now += micros + 1
        self.expire()
        return self.now

    def calm(self) -> None:
        """Nothing happens so near to a lock's end that the slack of clocks hides which was first."""
        while any(
            abs(end - self.now) < 30_000 for end in (*(record.lock_end for record in self.records), self.expired_at)
        ):
            self.tick(7_000)

    def new(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}{self.numbers}"

    def event(self, kind: str, at: int, member: Member | None = None, **fields: object) -> None:
        where = {"topic_id": "T", "topic": "orders", "partition": 0}
        broker = None if kind == "seen" else self.broker
        who = {} if member is None else {"member_id": member.name, "connection_id": member.connections.get(self.broker)}
        self.events.append(
            ShareEvent(kind, at, len(self.events), "g", **{"broker": broker, **where, **who, **fields})  # type: ignore[arg-type]
        )

    # What the broker does.

    def expire(self) -> None:
        due = [o for o, record in enumerate(self.records) if record.state == "held" and record.lock_end <= self.now]
        for at in sorted({self.records[offset].lock_end for offset in due}):
            self.expired_at = at
            self.finish([offset for offset in due if self.records[offset].lock_end == at], "lock_expired", at)

    def finish(self, offsets: Iterable[int], outcome: str, at: int, *, write_at: int | None = None) -> None:
        """Deliveries that end, and the write that says so."""
        changed = []
        for offset in offsets:
            record = self.records[offset]
            assert record.state == "held" and record.delivery is not None
            done = outcome in ("accepted", "rejected", "gap") or record.count >= self.limit
            record.state = "done" if done else "free"
            record.written = record.count
            truth = record.delivery
            truth.outcome, truth.outcome_at = outcome, at
            truth.archived = done and outcome not in ("accepted", "gap")
            changed.append((offset, 2 if outcome == "accepted" else 4 if done else 0, record.count))
        self.write(changed, at + 7 if write_at is None else write_at)

    def write(self, changed: list[tuple[int, int, int]], at: int) -> None:
        if self.writes and changed:
            exchange = self.new("write")
            for first, last, (state, count) in runs(changed):
                self.event(
                    "state_written",
                    at,
                    first_offset=first,
                    last_offset=last,
                    value=state,
                    delivery_count=count,
                    error_code=0,
                    start_offset=self.start,
                    exchange_id=exchange,
                )
        while self.start < len(self.records) and self.records[self.start].state == "done":
            self.start += 1

    def held(self, member: Member) -> list[int]:
        return [
            offset
            for offset, record in enumerate(self.records)
            if record.state == "held" and record.delivery is not None and record.delivery.member == member.name
        ]

    # What members do.

    def connect(self, member: Member) -> None:
        """Opens connection and session where there are none."""
        broker = self.broker
        if broker not in member.connections:
            member.connections[broker] = self.new("connection")
        if broker not in member.sessions:
            member.sessions[broker] = member.connections[broker]
            member.forgot.discard(broker)
            self.event("session", self.tick(20), member, value=0, error_code=0, exchange_id=self.new("open"))

    def fetch(self, member: Member, most: int | None = None) -> int:
        self.connect(member)
        if member.busy_until > self.now:
            return 0
        asked_at, exchange = self.now, self.new("fetch")
        acquired_at = self.tick(self.random.choice([30, 400_000]))
        # Only writes tell a lock's end from what follows it within the time of an answer.
        answered = acquired_at + self.random.choice([40, 300_000 if self.writes else 400])
        free = [offset for offset in range(self.start, len(self.records)) if self.records[offset].state == "free"]
        took = []
        for offset in free[: most or self.random.randint(1, 12)]:
            record = self.records[offset]
            record.state, record.count, record.lock_end = "held", record.count + 1, acquired_at + LOCK_MS * 1000
            record.delivery = Truth(offset, record.count, member.name, exchange, self.broker, answered)
            self.truths.append(record.delivery)
            took.append((offset, record.count))
        if took:
            member.busy_until = answered
            member.forgot.discard(self.broker)
        for first, last, (count,) in runs(took):
            self.event(
                "acquired",
                answered,
                member,
                first_offset=first,
                last_offset=last,
                delivery_count=count,
                lock_timeout_ms=LOCK_MS,
                exchange_id=exchange,
                asked_us=asked_at,
                answered_us=answered,
            )
        return len(took)

    def acknowledge(self, member: Member, *, closing: bool = False) -> str | None:
        """Of some that it holds, and now and then of some that it does not: then all are refused."""
        if self.broker not in member.sessions or member.busy_until > self.now:
            return None
        known = [
            truth.offset
            for truth in self.truths
            if truth.member == member.name
            and self.records[truth.offset].delivery is truth
            and truth.acquired_at <= self.now
        ]
        stale = self.random.random() < 0.15
        chosen = sorted({o for o in known if self.random.random() < 0.6 and (stale or self.records[o].state == "held")})
        exchange, asked_at = self.new("acknowledge"), self.now
        processed = self.tick(40)
        answered = self.tick(60)
        types = {offset: self.type_of(offset) for offset in chosen}
        right = all(self.records[o].state == "held" and self.records[o].delivery.member == member.name for o in chosen)  # type: ignore[union-attr]
        right = right and all(self.records[offset].lock_end > answered for offset in chosen)
        for first, last, (type_,) in runs([(offset, types[offset]) for offset in chosen]):
            self.say(member, exchange, asked_at, answered, first, last, type_, 0 if right else 121)
        if right:
            for type_ in (GAP, ACCEPT, RELEASE, REJECT):
                self.finish(
                    [o for o in chosen if types[o] == type_], OUTCOME.get(type_, "gap"), asked_at, write_at=processed
                )
        return exchange if closing else None

    def say(
        self,
        member: Member,
        exchange: str,
        asked_at: int,
        answered: int | None,
        first: int,
        last: int,
        type_: int,
        error: int | None,
    ) -> None:
        self.event(
            "acknowledged",
            asked_at,
            member,
            first_offset=first,
            last_offset=last,
            value=type_,
            error_code=error,
            exchange_id=exchange,
            answered_us=answered,
            lock_timeout_ms=LOCK_MS,
        )

    def type_of(self, offset: int) -> int:
        if not self.records[offset].exists:
            return GAP
        return self.random.choices([ACCEPT, RELEASE, REJECT], [6, 4, 1])[0]

    def renew(self, member: Member) -> None:
        chosen = [offset for offset in self.held(member) if self.random.random() < 0.5]
        if self.broker not in member.sessions or member.busy_until > self.now:
            return
        exchange, asked_at = self.new("renew"), self.now
        processed = self.tick(40)
        if any(self.records[offset].state != "held" for offset in chosen):
            return
        answered = self.tick(60)
        if any(self.records[offset].state != "held" for offset in chosen):
            return
        for offset in chosen:
            record = self.records[offset]
            assert record.delivery is not None
            record.lock_end = processed + LOCK_MS * 1000
            record.delivery.renewals += 1
        for first, last, _ in runs([(offset, RENEW) for offset in chosen]):
            self.say(member, exchange, asked_at, answered, first, last, RENEW, 0)

    def close(self, member: Member) -> None:
        if self.broker not in member.sessions or member.busy_until > self.now:
            return
        asked_at = self.now
        exchange = self.acknowledge(member, closing=True)
        self.event("session", asked_at, member, value=-1, error_code=0, exchange_id=exchange)
        self.release(member, "session_closed", asked_at)

    def release(self, member: Member, outcome: str, at: int, write_at: int | None = None) -> None:
        member.sessions.pop(self.broker, None)
        if self.broker not in member.forgot:
            self.finish(self.held(member), outcome, at, write_at=write_at)
        member.forgot.discard(self.broker)

    def cut(self, member: Member, at: int | None = None) -> None:
        """Its connection ends."""
        if member.busy_until > self.now or self.broker not in member.connections:
            return
        at = at or self.now
        self.event("disconnected", at, member)
        connection = member.connections.pop(self.broker)
        if member.sessions.get(self.broker) == connection:
            self.release(member, "disconnected", at, write_at=self.now)

    def vanish(self, member: Member) -> None:
        """It acknowledges, and its connection ends before the answer; only the leader's writes tell what counted."""
        if not self.writes or self.broker not in member.sessions or member.busy_until > self.now:
            return
        exchange, asked_at = self.new("unanswered"), self.now
        chosen = {offset: self.type_of(offset) for offset in self.held(member) if self.random.random() < 0.6}
        counts = self.random.random() < 0.5
        if not counts:
            # A release, or a rejection at the limit, looks like the end of the connection: nobody can tell.
            chosen = {offset: type_ for offset, type_ in chosen.items() if type_ == ACCEPT}
        for first, last, (type_,) in runs(sorted(chosen.items())):
            self.say(member, exchange, asked_at, None, first, last, type_, None)
        processed = self.tick(40)
        chosen = {offset: type_ for offset, type_ in chosen.items() if self.records[offset].state == "held"}
        if counts:
            for type_ in (GAP, ACCEPT, RELEASE, REJECT):
                self.finish(
                    [o for o in chosen if chosen[o] == type_], OUTCOME.get(type_, "gap"), asked_at, write_at=processed
                )
        self.tick(30)
        # The broker may see the end later than the wire does.
        self.cut(member, self.random.choice([asked_at + 5, self.now]))

    def reset(self, member: Member) -> None:
        """Epoch 0 again, over the same connection: nothing is released."""
        if self.broker in member.sessions and member.busy_until <= self.now:
            self.event("session", self.now, member, value=0, error_code=0, exchange_id=self.new("open"))
            member.sessions[self.broker] = member.connections[self.broker]
            member.forgot.discard(self.broker)

    def reconnect(self, member: Member) -> None:
        """A new session over a new connection, then the older connection ends: nothing is released."""
        if self.broker not in member.sessions or member.busy_until > self.now:
            return
        old = member.connections.pop(self.broker)
        del member.sessions[self.broker]
        self.connect(member)
        self.event("disconnected", self.tick(500), member, connection_id=old)

    def forget(self, member: Member) -> None:
        if self.broker in member.sessions and member.busy_until <= self.now:
            self.event("forgotten", self.now, member)
            member.forgot.add(self.broker)

    def move(self, member: Member) -> None:
        """Another broker leads: it reads what was written, and no lock was."""
        if any(each.busy_until > self.now for each in self.members):
            return
        is_reported = self.random.random() < 0.7
        if is_reported:
            self.event("broker_error", self.now, member, error_code=6)
        for record in self.records:
            if record.state == "held":
                assert record.delivery is not None
                record.delivery.outcome, record.delivery.outcome_at = "moved", self.now
                record.delivery.archived = False
                record.state, record.count = "free", record.written
        for each in self.members:
            each.connections.clear()
            each.sessions.clear()
            each.forgot.clear()
        self.broker = self.new("b")
        if not is_reported:
            # All members come back, or what they held stays open: nothing tells.
            self.drain()

    def delete(self, member: Member) -> None:
        """The first records are deleted from the log."""
        del member
        if any(each.busy_until > self.now for each in self.members):
            return
        until = min(len(self.records), self.start + self.random.randint(1, 6))
        self.event("altered", self.now, start_offset=until, topic_id=self.random.choice(["T", None]))
        for offset in range(until):
            record = self.records[offset]
            if record.state == "held":
                assert record.delivery is not None
                record.delivery.outcome, record.delivery.outcome_at = "moved", self.now
            record.state = "done"
        self.start = max(self.start, until)

    def drain(self) -> None:
        """One member takes whatever there is, until nothing comes again."""
        self.tick(LOCK_MS * 1000 + 500_000)
        member = self.members[0]
        while self.fetch(member, most=1000):
            self.tick(400_000)
            exchange, asked_at = self.new("acknowledge"), self.now
            offsets = self.held(member)
            self.tick(5)
            for first, last, _ in runs([(offset, ACCEPT) for offset in offsets]):
                self.say(member, exchange, asked_at, self.now + 1, first, last, ACCEPT, 0)
            self.finish(offsets, "accepted", asked_at, write_at=self.now)
            self.tick(100)


def runs(rows: Sequence[tuple[int, ...]]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Offsets with the same values behind each other, as first, last and values."""
    numbered = enumerate(sorted(rows))
    return [
        (run[0][1][0], run[-1][1][0], run[0][1][1:])
        for _, group in groupby(numbered, key=lambda pair: (pair[1][0] - pair[0], pair[1][1:]))
        for run in [list(group)]
    ]
