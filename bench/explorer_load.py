"""Loads a web server and measures its response times: a client over asyncio with connections that stay open, like
`wrk`."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from time import perf_counter
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Load:
    seconds: float
    times: list[float]  # of each response, sorted
    bytes: int

    @property
    def a_second(self) -> float:
        return len(self.times) / self.seconds

    def percentile(self, part: float) -> float:
        return self.times[min(len(self.times) - 1, int(part * len(self.times)))]


def load(base: str, paths: list[str], *, connections: int, seconds: float | None = None, packed: bool = False) -> Load:
    """Each path in turn, repeated for this long; without `seconds` each once. `packed` accepts gzip, as browsers do."""
    return asyncio.run(_load(base, paths, connections, seconds, "Accept-Encoding: gzip\r\n" if packed else ""))


async def _load(base: str, paths: list[str], connections: int, seconds: float | None, header: str) -> Load:
    started = perf_counter()
    left: Iterator[str] = iter(paths) if seconds is None else cycle(paths)
    deadline = float("inf") if seconds is None else started + seconds
    workers = [_worker(base, left, deadline, header) for _ in range(connections)]
    results = await asyncio.gather(*workers)
    times = sorted(time for some, _ in results for time in some)
    return Load(perf_counter() - started, times, sum(size for _, size in results))


async def _worker(base: str, left: Iterator[str], deadline: float, header: str) -> tuple[list[float], int]:
    where = urlsplit(base)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    times: list[float] = []
    total = 0
    try:
        for path in left:
            start = perf_counter()
            if start > deadline:
                break
            writer.write(f"GET /{path} HTTP/1.1\r\nHost: {where.netloc}\r\n{header}\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head[:20]:
                raise RuntimeError(f"{path}: {head[:60]!r}")
            size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(size)
            times.append(perf_counter() - start)
            total += size
    finally:
        writer.close()
        await writer.wait_closed()
    return times, total
