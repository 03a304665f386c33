"""Renewals and acknowledgements of a share consumer a second, beside Java's, and its memory over a million records."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from kafkascope.client import share_consumer

SECONDS = 120.0
ACCEPTS, RENEWALS = 200, 20_000
MILLION = 1_000_000
_LOOKS = 10
Prepare = Callable[[int, int, int], tuple[str, str]]
Java = Callable[..., float]


def ack_lines(bootstrap: str, prepare: Prepare, java: Java) -> Iterator[str]:
    """`prepare` makes a topic and a group; `java` runs a program beside this one and returns its rate."""
    yield f"{'a second':<38}{'kafkascope':>12}{'Java':>12}{'times Java':>12}"
    cases = (
        ("accept", "records accepted, each waited for", ACCEPTS),
        ("renew", "renewals, by the batch", RENEWALS),
    )
    for how, label, count in cases:
        best = {"ours": 0.0, "java": 0.0}
        for _ in range(3):
            topic, group = prepare(100, 1_000, 100)
            best["ours"] = max(best["ours"], asyncio.run(_rate(how, bootstrap, group, topic, count)))
            topic, group = prepare(100, 1_000, 100)
            best["java"] = max(best["java"], java("ShareAcks", how, bootstrap, group, topic, str(count)))
        yield f"{label:<38}{best['ours']:>12,.0f}{best['java']:>12,.0f}{times(best['ours'], best['java']):>12.2f}"


def times(ours: float, theirs: float) -> float:
    """How many times as fast as a peer, whose runs may all have stalled."""
    return ours / theirs if theirs else float("nan")


async def _rate(how: str, bootstrap: str, group: str, topic: str, count: int) -> float:
    async with share_consumer(bootstrap, group=group, topics=topic, timeout=SECONDS) as consumer:
        batch = await consumer.take(SECONDS)
        assert batch is not None
        begun, done = perf_counter(), 0
        while done < count:
            if how == "renew":
                batch.renew()
                await consumer.commit()
                done += len(batch)
                continue
            for record in batch:
                record.accept()
                await consumer.commit()
            done += len(batch)
            if done < count:
                batch = await consumer.take(SECONDS)
                assert batch is not None
        seconds = perf_counter() - begun
        assert consumer.metrics.renewed + consumer.metrics.accepted == done
        batch.accept()
    return done / seconds


async def consume_all(bootstrap: str, group: str, topic: str, count: int) -> list[int]:
    """Bytes resident after each tenth."""
    sizes: list[int] = []
    taken = 0
    async with share_consumer(bootstrap, group=group, topics=topic, timeout=SECONDS) as consumer:
        while taken < count:
            batch = await consumer.take(SECONDS)
            assert batch is not None, f"{taken} of {count} records"
            for record in batch:
                record.accept()
            taken += len(batch)
            if taken * _LOOKS >= count * (len(sizes) + 1):
                sizes.append(_resident())
        await consumer.commit()
    return sizes


def _resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    _bootstrap, _group, _topic, _count = sys.argv[1:]
    print(json.dumps(asyncio.run(consume_all(_bootstrap, _group, _topic, int(_count)))))
