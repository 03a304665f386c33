"""All that is made of a recording: packets, exchanges, their columns, objects and decoded bodies; out comes one word.

Anything but an `InputError` is for the caller, and so is what breaks a promise: a table that is not valid, a packet
outside its data, a bound that a kernel was stopped at."""

import mmap
import zlib
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

from kafkascope.capture.exchanges.exchange import to_exchanges
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.messages import Messages
from kafkascope.capture.exchanges.name_cache import NameCache
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.reader import Reading
from kafkascope.capture.resume.run import Part
from kafkascope.errors import InputError
from tests.support.parts import Named
from tests.support.recordings import Drip

REFUSED, ROWS, ROWS_AND_PROBLEMS, PROBLEMS, NOTHING = "refused", "read", "read with problems", "problems", "empty"
# A third of a megabyte for each of a hundred files.
MOST_GROWN = 33_000_000


def read_recording(data: bytes) -> str:
    """As one file, in batches of one size or another; now and then its packets by themselves too."""
    random = Random(zlib.crc32(data))
    chunk = random.choice((len(data), len(data), len(data) + 1, len(data) // 3 + 16, 4_096, 1 << 20))
    outcome = read_files([("0", data)], Part(chunk_bytes=max(chunk, 64)), names=random.random() < 0.5)
    if random.random() < 0.2:
        _check_packets(data, random)
    return outcome


def read_files(files: Sequence[tuple[str, bytes]], part: Part, *, names: bool = False, **options: Any) -> str:
    try:
        reading = Reading([Named(data, uri) for uri, data in files], part=part, names=names, **options)
        rows = _rows(reading, names=names)
    except InputError as error:
        expect_no_kernel_error(error)
        return REFUSED
    kinds = [kind for kind in reading.account.problems if "kernel" in kind]
    assert not kinds, f"a kernel was stopped: {reading.account.kept}"
    if reading.account.problems:
        return ROWS_AND_PROBLEMS if rows else PROBLEMS
    return ROWS if rows else NOTHING


def account_of(data: bytes) -> Counter[str]:
    """How many there are of what a file is known by."""
    reading = Reading(Named(data, "0"))
    try:
        _rows(reading, names=False)
    except InputError as error:
        expect_no_kernel_error(error)
        return Counter({REFUSED: 1})
    account = reading.account
    assert not any("kernel" in kind for kind in account.problems), f"a kernel was stopped: {account.kept}"
    return Counter(
        {
            "exchanges": account.exchanges,
            "packets": account.packets,
            "problems": account.problems.total(),
            "connections": len(account.connections) + sum(count for count, _ in account.forgotten.values()),
            "conflict bytes": sum(connection.conflict_bytes for connection in account.connections),
        }
    )


def read_again(data: bytes) -> str:
    """A hundred times in one process: what a file took is given back with it."""
    for _ in range(20):
        read_files([("0", data)], Part())
    before = _resident_bytes()
    for _ in range(100):
        outcome = read_files([("0", data)], Part())
    grown = _resident_bytes() - before
    assert grown < MOST_GROWN, f"{grown:,} bytes more after 100 files"
    return outcome


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def expect_no_kernel_error(error: InputError) -> None:
    """A bound that a kernel would have broken is a mistake of ours, however well it is told."""
    assert not any("Kernel" in kind.__name__ for kind in type(error).__mro__), repr(error)


def _rows(reading: Reading, *, names: bool) -> int:
    messages, knowledge = Messages(), NameCache()
    rows = 0
    for batch in reading.batches():
        exchanges = to_arrow(batch)
        exchanges.validate(full=True)
        rows += len(exchanges)
        if names:
            knowledge.learn(batch)
            rows += len(list(to_exchanges(batch, knowledge.names(batch))))
        for made in messages.add(batch, exchanges):
            made.table.validate(full=True)
    for made in messages.finish():
        made.table.validate(full=True)
    reading.by_file()
    return rows


def _check_packets(data: bytes, random: Random) -> None:
    source: Any = BytesIO(data) if random.random() < 0.5 else Drip(data, random.choice((7, 100, 999)))
    try:
        for batch in read_packets(source, chunk_bytes=random.choice((512, 2_048, 65_536))):
            assert len(batch.start) == len(batch.link) == len(batch.time_ns)
            assert (batch.start >= 0).all() and (batch.captured >= 0).all() and (batch.original >= 0).all()
            assert (batch.start + batch.captured <= len(batch.data)).all()
    except InputError as error:
        expect_no_kernel_error(error)
