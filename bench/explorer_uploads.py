"""Uploads to the decode page, sixty at once, while pages are fetched: how long those take, what the uploads get, and
how much memory the server and its processes take.

`python -m bench.explorer_uploads BASE PID [KIND…]` does it to a server that runs already. The kind `lake` asks for 300
pages of its lake in place of uploads."""

import asyncio
import lzma
import os
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from multiprocessing import Event, Pipe, Process
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event as EventType
from pathlib import Path
from time import perf_counter
from urllib.parse import urlsplit

from bench.explorer_load import load
from kafkascope.codec.frame import encode_frame
from kafkascope.limits import MAX_UPLOAD_BYTES, MAX_URLENCODED_BYTES

UPLOADS, _SMALL_UPLOADS, _LAKE_PAGES = 60, 600, 300
_OCTETS, _FORM = "application/octet-stream", "application/x-www-form-urlencoded"
# Of which half a megabyte unpacks to four gigabytes.
_BOMB_BYTES = 4 << 30
# Reference pages, of which the server has not made all before.
_PAGES = ["index.html", "errors.html", *(f"message/FetchRequest/{version}.html" for version in range(4, 18))]
PAUSE = 0.1
_CHUNK = 1 << 18
_CAPTURES = Path(__file__).parents[1] / "tests" / "captures"


@dataclass(frozen=True, slots=True)
class Flood:
    statuses: Counter[int]
    without_retry: int  # 503 that don't say when to try again
    pages: list[float]  # seconds of each, sorted
    peak_bytes: dict[str, int]  # of each process, by its command


def flood(base: str, pid: int, kind: str = "frame") -> Flood:
    """`pid` is the server's. Pages are fetched by a process of their own, which the uploads don't slow down."""
    load(base, _PAGES[:3], connections=1)
    ours, theirs = Pipe()
    ended = Event()
    fetching = Process(target=_fetch, args=(base, pid, ended, theirs))
    fetching.start()
    responses = asyncio.run(_requests(base, kind))
    ended.set()
    times, peaks = ours.recv()
    fetching.join()
    without = sum(status == 503 and not retry for status, retry in responses)
    return Flood(Counter(status for status, _ in responses), without, sorted(times), peaks)


async def _requests(base: str, kind: str) -> list[tuple[int, bool]]:
    requests: list[Coroutine[None, None, tuple[int, bool]]]
    if kind == "lake":
        paths = ("lake/report.html", "lake/index.html", "lake/exchanges.html", "lake/findings.html")
        requests = [_request(base, f"GET /{paths[number % len(paths)]}", b"") for number in range(_LAKE_PAGES)]
    else:
        content, count = _CONTENTS[kind](), _SMALL_UPLOADS if kind == "small" else UPLOADS
        form = _FORM if kind == "form" else _OCTETS
        requests = [_request(base, "POST /decode.json", content, form) for _ in range(count)]
    return await asyncio.gather(*requests)


def _largest() -> bytes:
    """One frame that takes the decoder seconds: arrays of many small things."""
    topic = {"name": "t", "partitions": [{"partitionIndex": index} for index in range(1_000)]}
    value = {"groupId": "g", "topics": [topic] * (MAX_UPLOAD_BYTES // 4_100)}
    frame = encode_frame("OffsetDeleteRequest", 0, value, {"correlationId": 1, "clientId": "load"})
    assert MAX_UPLOAD_BYTES * 9 // 10 < len(frame) <= MAX_UPLOAD_BYTES
    return frame


def _recording() -> bytes:
    """Packets of a recorded incident, over and over."""
    content = lzma.decompress((_CAPTURES / "share" / "capture.pcap.xz").read_bytes())
    return content[:24] + _repeated(content[24:], MAX_UPLOAD_BYTES - 24)


def _log() -> bytes:
    return _repeated(lzma.decompress((_CAPTURES / "clients" / "request-1.log.xz").read_bytes()), MAX_UPLOAD_BYTES)


def _repeated(content: bytes, most: int) -> bytes:
    return content * (most // len(content))


def _bomb() -> bytes:
    """A recording of one packet, and zeros without end."""
    import cramjam

    head = lzma.decompress((_CAPTURES / "share" / "capture.pcap.xz").read_bytes())[:24]
    return bytes(cramjam.zstd.compress(head + bytes(_BOMB_BYTES), 1))


# What is sent by kind: each takes the server another way.
_CONTENTS: dict[str, Callable[[], bytes]] = {
    "frame": _largest,
    "recording": _recording,
    "zeros": lambda: bytes(MAX_UPLOAD_BYTES),
    "form": lambda: b"data=" + b"%41" * ((MAX_URLENCODED_BYTES - 5) // 3),
    "log": _log,
    "bomb": _bomb,
    "small": lambda: encode_frame("HeartbeatRequest", 0, {}, {"correlationId": 1, "clientId": "load"}),
}


async def _request(base: str, request_line: str, content: bytes, kind: str = _OCTETS) -> tuple[int, bool]:
    """Its status, 0 where there is no response, and whether that says when to try again."""
    where = urlsplit(base)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    head = f"{request_line} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: {kind}\r\n"
    writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode())

    async def send() -> None:
        for at in range(0, len(content), _CHUNK):
            writer.write(content[at : at + _CHUNK])
            await writer.drain()

    sending = asyncio.create_task(send())
    try:
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
    except (asyncio.IncompleteReadError, ConnectionError):
        answer = b"none 0"
    sending.cancel()
    writer.close()
    return int(answer.split()[1]), b"\r\nretry-after:" in answer


def _fetch(base: str, pid: int, ended: EventType, result: Connection) -> None:
    times: list[float] = []
    peaks: dict[int, int] = {}
    number = 0
    while not ended.wait(PAUSE):
        start = perf_counter()
        load(base, [_PAGES[number % len(_PAGES)]], connections=1)
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
    peaks = [line for line in _text(Path(f"/proc/{pid}/status")).splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0].split()[1]) << 10 if peaks else 0


def _text(path: Path) -> str:
    """Empty where the process is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""


def main(base: str, pid: int, kinds: list[str]) -> None:
    for kind in kinds or [*_CONTENTS, "lake"]:
        start = perf_counter()
        result = flood(base, pid, kind)
        statuses = ", ".join(f"{count} times {status}" for status, count in sorted(result.statuses.items()))
        pages, peaks = result.pages, ", ".join(f"{name} {peak >> 20} MiB" for name, peak in result.peak_bytes.items())
        print(
            f"{kind:<10} {statuses}, {result.without_retry} without Retry-After; {len(pages)} pages, median"
            f" {1e3 * pages[len(pages) // 2]:.0f} ms, slowest {1e3 * pages[-1]:.0f} ms; {peaks};"
            f" {perf_counter() - start:.0f} s, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
