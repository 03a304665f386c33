"""Many frames of one message into columns: MB/s of `decode_columns` against kio's objects and Kafka's own Java codec.

Same bytes for all three, one thread each, processor time. `decode_columns` is timed whole, from Arrow array to table.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from math import exp, log
from pathlib import Path
from random import Random
from time import process_time
from typing import Any
from uuid import UUID

import pyarrow as pa

from bench.kio_peer import peer
from bench.messages import Case, cases
from kafkascope.codec.message import decode, encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.columnar.decode import decode_columns
from kafkascope.columnar.kernel.entry import warm_up
from tests.judge.java import CACHE, COMPILED_AGAINST, jars

_SOURCE = Path(__file__).parent / "java" / "ReadFrames.java"
# A call has 16 MB of frames. Of large ones that are few, and the call itself would be most of it where only the headers
# of their record batches are looked at: then it has this number, in memory that every machine has.
_CALL_BYTES, _CALL_FRAMES, _MOST_BYTES = 16 << 20, 2_000, 256 << 20
_KIO_SECONDS = 0.5
_JAVA_SECONDS = 3.0
_VARIANTS = 200
_SEED = 20
_AIM_KIO, _AIM_JAVA = 20, 3
_FLOOR_KIO, _FLOOR_JAVA = 10, 1.5
HEAD = (
    f"{'':<52}{'bytes a':>9} |{'decode_columns':>15} |{'kio':>8} |{'Java':>8} |{'times':>8}{'times':>8}\n"
    f"{'':<52}{'frame':>9} |{'MB/s':>15} |{'MB/s':>8} |{'MB/s':>8} |{'kio':>8}{'Java':>8}"
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Different frames of one message, repeated until there are enough."""

    label: str
    name: str
    version: int
    frames: list[bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self.frames))

    def repeated(self) -> list[bytes]:
        """What one call has."""
        size = min(max(_CALL_BYTES, _CALL_FRAMES * self.size // len(self.frames)), _MOST_BYTES)
        return self.frames * max(1, round(size / self.size))


def lines(only: str = "", seconds: float = _JAVA_SECONDS) -> Iterable[str]:
    """One line per message, and what the ratios come to; `only` keeps messages whose label holds it."""
    warm = warm_up()
    yield f"kernel {'loaded' if warm.from_disk else 'compiled'} in {warm.seconds:.2f} s; kept in {warm.folder}"
    yield f"{_CALL_BYTES >> 20} MB of frames a call, of large ones {_CALL_FRAMES:,} or {_MOST_BYTES >> 20} MB;"
    yield f"{_VARIANTS} different ones, seed {_SEED}; by processor time;"
    yield f"decode_columns from array to table, kio's native reader, Kafka {COMPILED_AGAINST}'s own after {seconds} s"
    chosen = [case for case in cases() if only.lower() in case.label.lower()]
    plain = [case for case in chosen if not _has_records(case.value)]
    yield from _table("messages without record data", plain, seconds)
    yield from _table(
        "with record data: a row a batch header; Java walks the headers too, kio leaves bytes",
        [case for case in chosen if case not in plain],
        seconds,
    )


def _table(title: str, chosen: list[Case], seconds: float) -> Iterable[str]:
    if not chosen:
        return
    yield f"\n{title}\n{HEAD}"
    ratios = []
    for case in chosen:
        frames = _corpus(case)
        ours, kio, java = _decode_columns_speed(frames), _kio_speed(frames), _java_speed(frames, seconds)
        ratios.append((ours / kio, ours / java))
        yield (
            f"{frames.label:<52}{frames.size // len(frames.frames):9,} |{ours / 1e6:15,.0f} |{kio / 1e6:8,.0f}"
            f" |{java / 1e6:8,.0f} |{ours / kio:8.1f}{ours / java:8.2f}"
        )
    for label, combine in (("geometric mean", _mean), ("least", min)):
        of_kio, of_java = (combine(column) for column in zip(*ratios, strict=True))
        yield f"{label:<52}{'':>9} |{'':>15} |{'':>8} |{'':>8} |{of_kio:8.1f}{of_java:8.2f}"
    for peer_name, column, aim, floor in (("kio", 0, _AIM_KIO, _FLOOR_KIO), ("Java", 1, _AIM_JAVA, _FLOOR_JAVA)):
        of = [ratio[column] for ratio in ratios]
        above, reached = sum(ratio >= floor for ratio in of), sum(ratio >= aim for ratio in of)
        yield f"{peer_name}: {above} of {len(of)} at {floor} times or more (floor), {reached} at {aim} or more (aim)"


def _has_records(value: Any) -> bool:
    if isinstance(value, dict):
        return "records" in value or any(map(_has_records, value.values()))
    return isinstance(value, list) and any(map(_has_records, value))


def _mean(ratios: Iterable[float]) -> float:
    logarithms = [log(ratio) for ratio in ratios]
    return exp(sum(logarithms) / len(logarithms))


def _corpus(case: Case) -> Corpus:
    """Frames like the case's, no two alike: a kernel that reads one frame repeatedly would have it in the caches."""
    random = Random(f"{case.label} {_SEED}")
    count = min(_VARIANTS, max(4, (4 << 20) // len(case.data)))
    frames = []
    for _ in range(count):
        value = _varied(case.value, random)
        data = encode(case.name, case.version, value)
        frames.append(data)
    for data in frames[:3]:
        # AssertionError if kio reads other values.
        peer(Case(case.label, case.name, case.version, data, decode(case.name, case.version, data).value))
    return Corpus(case.label, case.name, case.version, frames)


def _varied(value: Any, random: Random, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _varied(item, random, key) for key, item in value.items()}
    if isinstance(value, list):
        kept = value if len(value) < 4 else value[: random.randint(len(value) * 3 // 4, len(value))]
        return [_varied(item, random, name) for item in kept]
    if isinstance(value, bool) or value is None or name.endswith("rrorCode"):
        return value
    if isinstance(value, int):
        return random.randint(value // 2, value) if value > 0 else value
    if isinstance(value, str):
        return value + "abcdefgh"[: random.randint(0, 8)] if value else value
    if isinstance(value, UUID):
        return UUID(bytes=random.randbytes(16))
    return _record_data(len(value), random)


def _record_data(size: int, random: Random) -> bytes:
    """Batches of at most 16 KB, as a producer's default makes them."""
    batches = []
    offset = random.randint(0, 1 << 40)
    while size > 100:
        part = min(size, 16_384)
        record = Record(offset, 1_763_200_000_000, None, random.randbytes(part - 80))
        batches.append(new_batch([record]))
        offset += 1
        size -= part
    return encode_records(batches)


def _decode_columns_speed(messages: Corpus) -> float:
    frames = pa.array(messages.repeated(), type=pa.binary())
    size: int = frames.nbytes - 4 * (len(frames) + 1)
    table = decode_columns(messages.name, messages.version, frames)
    assert table["_error"].null_count == len(frames)
    return size / _best(partial(decode_columns, messages.name, messages.version, frames), 15)


def _kio_speed(messages: Corpus) -> float:
    from kio.serial import entity_reader

    reader = entity_reader(_kio_type(messages.name, messages.version))

    def read() -> None:
        for frame in messages.frames:
            reader(frame, 0)

    return messages.size / _best(read, max(5, int(_KIO_SECONDS / max(_best(read, 1), 1e-6))))


def _kio_type(name: str, version: int) -> Any:
    api, kind = re.fullmatch(r"(.*)(Request|Response)", name).groups()  # type: ignore[union-attr]
    folder = re.sub(r"(?<!^)(?=[A-Z])", "_", api).lower()
    return getattr(import_module(f"kio.schema.{folder}.v{version}.{kind.lower()}"), name)


def _best(call: Callable[[], Any], rounds: int) -> float:
    least = float("inf")
    for _ in range(rounds):
        start = process_time()
        call()
        least = min(least, process_time() - start)
    return least


def _java_speed(messages: Corpus, seconds: float) -> float:
    frames = messages.repeated()
    with tempfile.NamedTemporaryFile() as file:
        for frame in frames:
            file.write(len(frame).to_bytes(4, "big") + frame)
        file.flush()
        classpath = os.pathsep.join(str(entry) for entry in (_classes(), *jars(COMPILED_AGAINST)))
        done = subprocess.run(
            ["java", "-Xmx2g", "-XX:+UseSerialGC", "-cp", classpath, "ReadFrames", messages.name, str(messages.version),
             file.name, str(seconds)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
            preexec_fn=_one_core,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"java exited with {done.returncode}: {done.stderr[-2000:]}")
    return sum(map(len, frames)) / int(done.stdout) * 1e9


def _one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _classes() -> Path:
    folder = CACHE / "bench-classes"
    if not (folder / "ReadFrames.class").is_file() or (
        (folder / "ReadFrames.class").stat().st_mtime < _SOURCE.stat().st_mtime
    ):
        folder.mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join(map(str, jars(COMPILED_AGAINST)))
        subprocess.run(["javac", "-proc:none", "-cp", path, "-d", str(folder), str(_SOURCE)], check=True, timeout=300)
    return folder


if __name__ == "__main__":
    for line in lines(" ".join(sys.argv[1:])):
        print(line, flush=True)
