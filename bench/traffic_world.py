"""A cluster in numbers: its topics, groups, members and record batches, by a random number generator; each exchange
that is made of them is a `Case`."""

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from kafkascope.codec.records.record_data import Record, encode_records, new_batch

Value = dict[str, Any]
NOW_MS = 1_763_200_000_000
MAX_INT = 2**31 - 1
_WORDS = "paid shipped refused returned pending checkout basket invoice stock north south sensor limit device".split()
_COMPRESSIONS = ("none", "none", "lz4", "zstd", "snappy", "gzip")
_MEMBERS = 64


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: UUID
    partitions: int


@dataclass(frozen=True, slots=True)
class Case:
    """`waits` is a long poll that found nothing; `silent` gets no response (acks 0)."""

    request: Value
    response: Value
    waits: bool = False
    silent: bool = False


@dataclass(slots=True)
class World:
    """One cluster: what its clients name repeatedly."""

    random: Random
    topics: list[Topic] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    batches: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        random = self.random
        for number in range(40):
            name = f"{random.choice(_WORDS)}-{random.choice(_WORDS)}s-{number}"
            self.topics.append(Topic(name, self.uuid(), random.choice((3, 6, 12, 24))))
        self.groups = [f"{random.choice(_WORDS)}-service-{number}" for number in range(24)]
        self.members = [str(self.uuid()) for _ in range(_MEMBERS)]
        self.batches = [self._batch(random.choice((1, 1, 2, 3, 5, 12))) for _ in range(1_200)]

    def uuid(self) -> UUID:
        return UUID(bytes=self.random.randbytes(16))

    def _batch(self, records: int) -> bytes:
        random = self.random
        first, at = random.randint(0, 1 << 40), NOW_MS + random.randint(0, 1 << 20)
        held = [Record(first + n, at + n, self._key(), self._record(), self._headers()) for n in range(records)]
        batch = new_batch(
            held,
            compression=random.choice(_COMPRESSIONS) if records > 1 else "none",
            partition_leader_epoch=random.randint(0, 40),
            producer_id=random.choice((-1, random.randint(1_000, 90_000))),
            producer_epoch=random.randint(0, 3),
            base_sequence=random.randint(0, 1 << 20),
            is_transactional=random.random() < 0.1,
        )
        return encode_records([batch])

    def _key(self) -> bytes | None:
        return f"{self.random.randint(0, 1 << 30):010}".encode() if self.random.random() < 0.8 else None

    def _record(self) -> bytes:
        random = self.random
        words = [random.choice(_WORDS) for _ in range(random.randint(2, 40))]
        event = {"id": random.getrandbits(60), "at": NOW_MS + random.randint(0, 1 << 20), "state": words[0]}
        return json.dumps(event | {"text": " ".join(words), "amount": random.randint(1, 10**6) / 100}).encode()

    def _headers(self) -> tuple[tuple[str, bytes | None], ...]:
        return (("trace-id", self.random.randbytes(16)),) if self.random.random() < 0.2 else ()

    def records(self, batches: int) -> bytes:
        return b"".join(self.random.choices(self.batches, k=batches))

    def some(self, most: int) -> list[tuple[Topic, list[int]]]:
        """Topics, and partitions of each, `most` partitions together or a few more."""
        out: list[tuple[Topic, list[int]]] = []
        count, most_partitions = 0, self.random.randint(1, most)
        for topic in self.random.sample(self.topics, len(self.topics)):
            chosen = sorted(self.random.sample(range(topic.partitions), min(topic.partitions, most_partitions - count)))
            out.append((topic, chosen))
            count += len(chosen)
            if count >= most_partitions:
                break
        return out

    def offset(self) -> int:
        return self.random.randint(0, 1 << 40)

    def error(self, *codes: int, share: float = 0.02) -> int:
        return self.random.choice(codes) if self.random.random() < share else 0

    def throttle(self) -> int:
        return self.random.randint(1, 900) if self.random.random() < 0.01 else 0

    def group(self) -> str:
        return self.random.choice(self.groups)

    def member(self) -> str:
        return self.random.choice(self.members)


def named(topic: Topic, **more: Any) -> Value:
    return {"name": topic.name, "topic": topic.name, "topicId": topic.id, **more}
