"""The largest uploads to the decode page, sixty at once, while pages are fetched: how long those take, what the uploads
get, and how much memory the server and its processes take."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from multiprocessing import Event, Pipe, Process
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event as EventType
from pathlib import Path
from time import perf_counter
from urllib.parse import urlsplit

from bench.explorer_load import load
from kafkascope.codec.frame import encode_frame
from kafkascope.limits import MAX_UPLOAD_BYTES

UPLOADS = 60
# Reference pages, of which the server has not made all before.
PAGES = ["index.html", "errors.html", *(f"message/FetchRequest/{version}.html" for version in range(4, 18))]
PAUSE = 0.1
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Flood:
    statuses: Counter[int]
    without_retry: int  # 503 that don't say when to try again
    pages: list[float]  # seconds of each, sorted
    peak_bytes: dict[str, int]  # of each process, by its command


def flood(base: str, pid: int) -> Flood:
    """`pid` is the server's. Pages are fetched by a process of their own, which the uploads don't slow down."""
    load(base, PAGES[:3], connections=1)
    ours, theirs = Pipe()
    ended = Event()
    fetching = Process(target=_fetch, args=(base, pid, ended, theirs))
    fetching.start()
    found = asyncio.run(_uploads(base))
    ended.set()
    times, peaks = ours.recv()
    fetching.join()
    without = sum(status == 503 and not retry for status, retry in found)
    return Flood(Counter(status for status, _ in found), without, sorted(times), peaks)


async def _uploads(base: str) -> list[tuple[int, bool]]:
    content = largest()
    return await asyncio.gather(*(_upload(base, content) for _ in range(UPLOADS)))


def largest() -> bytes:
    """One frame that takes the decoder seconds: arrays of many small things."""
    topic = {"name": "t", "partitions": [{"partitionIndex": index} for index in range(1_000)]}
    value = {"groupId": "g", "topics": [topic] * (MAX_UPLOAD_BYTES // 4_100)}
    frame = encode_frame("OffsetDeleteRequest", 0, value, {"correlationId": 1, "clientId": "load"})
    assert MAX_UPLOAD_BYTES * 9 // 10 < len(frame) <= MAX_UPLOAD_BYTES
    return frame


async def _upload(base: str, content: bytes) -> tuple[int, bool]:
    """Its status, and whether the response says when to try again."""
    where = urlsplit(base)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    head = f"POST /decode.json HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/octet-stream\r\n"
    writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode())

    async def send() -> None:
        for at in range(0, len(content), _CHUNK):
            writer.write(content[at : at + _CHUNK])
            await writer.drain()

    sending = asyncio.create_task(send())
    answer = (await reader.readuntil(b"\r\n\r\n")).lower()
    sending.cancel()
    writer.close()
    return int(answer.split()[1]), b"\r\nretry-after:" in answer


def _fetch(base: str, pid: int, ended: EventType, result: Connection) -> None:
    times: list[float] = []
    peaks: dict[int, int] = {}
    number = 0
    while not ended.wait(PAUSE):
        start = perf_counter()
        load(base, [PAGES[number % len(PAGES)]], connections=1)
        times.append(perf_counter() - start)
        number += 1
        for process in _tree(pid):
            peaks[process] = max(peaks.get(process, 0), _peak(process))
    children = max((peak for process, peak in peaks.items() if process != pid), default=0)
    result.send((times, {"server": peaks[pid], "largest process that decodes": children}))


def _tree(pid: int) -> list[int]:
    children = [int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in _text(task).split()]
    return [pid, *(process for child in children for process in _tree(child))]


def _peak(pid: int) -> int:
    found = [line for line in _text(Path(f"/proc/{pid}/status")).splitlines() if line.startswith("VmHWM:")]
    return int(found[0].split()[1]) << 10 if found else 0


def _text(path: Path) -> str:
    """Empty where the process is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""
