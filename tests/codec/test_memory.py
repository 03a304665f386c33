"""What a frame may cost: decoding stays within 16 MiB + 128 times the frame, in every engine, whatever the frame says.

Counted by tracemalloc, at the peak. Most frames here are small, so they are held to 128 times their size alone: the
16 MiB are for what comes once.
"""

import re
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import pytest

import kafkascope
from kafkascope.schema.layouts.layout import Layout, LayoutField, layout
from tests.support.mutations import uvarint
from tests.support.pairs import CHUNKS, Place, chunk_of, every_place
from tests.support.values import random_value
from tests.support.variety import careful, fast_engines

ONCE = 16 * 2**20
A_BYTE = 128
SMALL = 20_000
# The result object, the engine's own lists and caches.
SLACK = 16_000

# Numbers outside the interpreter's cache of small ones: each is an object of its own.
DEAREST = {
    "bool": True,
    "int8": -128,
    "int16": -(2**15),
    "uint16": 2**16 - 1,
    "int32": -(2**31),
    "uint32": 2**32 - 1,
    "int64": -(2**63),
    "float64": 1.5,
    "uuid": UUID(int=2**127 + 5),
    "string": "",
    "bytes": b"",
    "records": b"",
}
Path = tuple[LayoutField, ...]


def peak_of(work: Callable[[], Any]) -> int:
    """Bytes at the peak of what `work` allocates; a DecodeError is as good an outcome as a value."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        try:
            kept = work()
        except kafkascope.DecodeError as error:
            kept = str(error)
        peak = tracemalloc.get_traced_memory()[1] - before
        del kept
    finally:
        tracemalloc.stop()
    return peak


def engines(place: Place, data: bytes) -> list[tuple[str, Callable[[], Any]]]:
    name, version, release = place
    works: list[tuple[str, Callable[[], Any]]] = [
        (engine, partial(read, data, 0)) for engine, read in fast_engines(layout(name, version, release)).items()
    ]
    return [*works, ("careful", partial(careful, name, version, data, release))]


def dearest(field: LayoutField, inner: int) -> Any:
    """An element that takes few bytes on the wire and much memory; `inner` elements in each array below it."""
    if field.type != "struct":
        return DEAREST[field.type]
    return {child.name: dear_field(child, inner) for child in field.fields}


def dear_field(field: LayoutField, inner: int) -> Any:
    if field.tag is not None:
        # Comes for nothing: the default is made although no byte says so.
        return field.default_value()
    if field.array:
        return [dearest(field, inner)] * inner
    # A presence byte and a struct of five names more: cheap only when absent.
    return None if field.type == "struct" and field.nullable else dearest(field, inner)


def array_paths(fields: tuple[LayoutField, ...], above: Path = ()) -> Iterator[Path]:
    for field in fields:
        if field.array:
            yield (*above, field)
        yield from array_paths(field.fields, (*above, field))


def filled(fields: tuple[LayoutField, ...], path: Path, elements: list[Any]) -> dict[str, Any]:
    """A value with these elements at this place, one element in each array on the way, and defaults around."""
    value = {field.name: field.default_value() for field in fields}
    field = path[0]
    if len(path) == 1:
        value[field.name] = elements
    else:
        inside = filled(field.fields, path[1:], elements)
        value[field.name] = [inside] if field.array else inside
    return value


def signature(field: LayoutField) -> tuple[Any, ...]:
    """Elements with the same signature cost the same."""
    children = tuple(signature(child) for child in field.fields)
    return field.type, field.array, field.nullable, field.tag, field.default, field.compact, children


def distinct_arrays() -> list[tuple[Place, Path]]:
    places: dict[tuple[Any, ...], tuple[Place, Path]] = {}
    for place in every_place():
        known = layout(*place)
        for path in array_paths(known.fields):
            places.setdefault((known.flexible, signature(path[-1])), (place, path))
    return list(places.values())


def frame_of(known: Layout, place: Place, path: Path, inner: int, size: int) -> bytes:
    element = dearest(path[-1], inner)
    name, version, release = place
    few = [len(kafkascope.encode(name, version, filled(known.fields, path, [element] * n), release)) for n in (0, 100)]
    count = max(1, size * 100 // (few[1] - few[0]))
    return kafkascope.encode(name, version, filled(known.fields, path, [element] * count), release)


def deep_size(value: Any) -> int:
    """Bytes of a value's own objects; what the interpreter keeps for all (small numbers, empty strings) is free."""
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(map(deep_size, value.values()))
    if isinstance(value, list):
        return size + sum(map(deep_size, value))
    if isinstance(value, UUID):
        return size + sys.getsizeof(value.int)
    free = value is None or value in ("", b"", True, False) or (isinstance(value, int) and -5 <= value <= 256)
    return 0 if free else size


def estimates() -> list[tuple[float, Place, Path, int]]:
    """Memory a byte of every array of the catalog, the dearest first, from a hundred elements each."""
    costs = []
    for place, path in distinct_arrays():
        name, version, release = place
        known = layout(*place)
        for inner in (0, 1, 5) if any(True for _ in array_paths(path[-1].fields)) else (0,):
            data = frame_of(known, place, path, inner, 2_000)
            value = kafkascope.decode(name, version, data, release).value
            costs.append((deep_size(value) / len(data), place, path, inner))
    return sorted(costs, key=lambda item: -item[0])


def test_no_array_of_the_catalog_takes_more_than_128_times_its_bytes() -> None:
    costs = estimates()
    assert len(costs) > 500
    for a_byte, place, path, inner in costs:
        # What stands around the array comes once: a few hundred bytes in two thousand.
        assert a_byte <= A_BYTE * 1.02, f"{place}, {path[-1].name}, {inner} inside: {a_byte:.1f} bytes a byte"


@pytest.mark.parametrize("chunk", range(4))
def test_the_dearest_arrays_take_no_more_than_128_times_their_bytes(chunk: int) -> None:
    for _, place, path, inner in estimates()[:24][chunk::4]:
        data = frame_of(layout(*place), place, path, inner, SMALL)
        for engine, work in engines(place, data):
            work()  # compiles, fills caches
            peak = peak_of(work)
            where = f"{place}, {'.'.join(field.name for field in path)}, {inner} inside, {engine}"
            assert peak <= A_BYTE * len(data) + SLACK, f"{where}: {peak / len(data):.1f} bytes a byte"


def compact(count: int) -> bytes:
    return uvarint(count + 1)


HALF = 24_000
# (what it is, message, version, the frame): bytes that no Kafka writes, but anyone can send.
HOSTILE: list[tuple[str, str, int, bytes]] = [
    ("an unknown tag of no bytes, again and again", "ApiVersionsRequest", 3,
     b"\x01\x01" + uvarint(HALF) + b"\x05\x00" * HALF),
    ("unknown tags of no bytes in every element", "DescribeTopicPartitionsRequest", 0,
     compact(HALF // 3) + b"\x01\x02\x01\x00\x02\x00" * (HALF // 3) + bytes(4) + b"\xff\x00"),
    ("128 unknown tags in every element", "DescribeTopicPartitionsRequest", 0,
     compact(200) + (b"\x01\x80\x01" + b"".join(bytes([t, 0]) for t in range(128))) * 200 + bytes(4) + b"\xff\x00"),
    ("unknown tags of rising numbers", "ApiVersionsRequest", 3,
     b"\x01\x01" + uvarint(10_000) + b"".join(uvarint(200 + t) + b"\x00" for t in range(10_000))),
    ("broken UTF-8 in every string", "DeleteGroupsRequest", 2, compact(HALF) + b"\x02\xff" * HALF + b"\x00"),
    ("broken UTF-8 in every struct", "DescribeTopicPartitionsRequest", 0,
     compact(HALF * 2 // 3) + b"\x02\xff\x00" * (HALF * 2 // 3) + bytes(4) + b"\xff\x00"),
    ("stretched varints everywhere", "CreatePartitionsRequest", 2,
     b"\x02\x01" + bytes(4) + compact(HALF // 2) + b"\x81\x00\x80\x00" * (HALF // 2) + bytes(5) + b"\x00\x00"),
    ("a bool of 2 in every struct", "MetadataResponse", 9,
     bytes(4) + b"\x01\x00" + bytes(4) + compact(8_000) + b"\x00\x00\x01\x02\x01\x00" * 8_000 + bytes(4) + b"\x00"),
    ("a known tag of its default, again and again", "AbortTransactionRecord", 0,
     uvarint(HALF * 2 // 3) + b"\x00\x01\x00" * (HALF * 2 // 3)),
    ("a good frame that is cut at its end", "CreatePartitionsRequest", 2,
     b"\x02\x01" + bytes(4) + compact(HALF) + b"\x01\x00" * HALF + b"\x00" + bytes(4)),
    ("bytes after the message", "ApiVersionsRequest", 0, b"\x00" * HALF),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "data"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_frames_made_to_hurt_take_no_more_than_128_times_their_bytes(name: str, version: int, data: bytes) -> None:
    with suppress(kafkascope.DecodeError):
        kafkascope.decode(name, version, data[:40])  # compiles the engine
    peak = peak_of(lambda: kafkascope.decode(name, version, data))
    assert peak <= A_BYTE * len(data) + SLACK, f"{peak / len(data):.1f} bytes a byte ({len(data)} bytes)"


BIG = 4_000_000
# The worst of the catalog by memory a byte, and arrays that look harmless.
WORST: list[tuple[str, int, str]] = [
    ("CreatePartitionsRequest", 2, "topics.assignments"),
    ("MetadataRequest", 12, "topics"),
    ("ShareFetchRequest", 2, "topics.partitions.acknowledgementBatches.acknowledgeTypes"),
]


@pytest.mark.parametrize(("name", "version", "at"), WORST, ids=[f"{name}-{at}" for name, _, at in WORST])
def test_four_megabytes_of_the_cheapest_elements_stay_within_the_bound(name: str, version: int, at: str) -> None:
    place = (name, version, None)
    known = layout(*place)
    path = next(p for p in array_paths(known.fields) if ".".join(field.name for field in p) == at)
    data = frame_of(known, place, path, 0, BIG)
    assert BIG * 0.99 <= len(data) <= BIG * 1.01
    # tracemalloc slows the careful engine tenfold: it is measured on small frames above.
    peak = peak_of(lambda: kafkascope.decode(name, version, data))
    assert peak <= ONCE + A_BYTE * len(data), f"{peak / len(data):.1f} bytes a byte"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_counts_far_beyond_the_frame_allocate_nothing(chunk: int) -> None:
    # protocol note 22
    for name, version, release in chunk_of(every_place(), chunk):
        known = layout(name, version, release)
        data = kafkascope.encode(name, version, random_value(known, 1), release)
        spans = kafkascope.decode(name, version, data, release, spans=True).spans
        # One of each field: the elements of an array are read alike.
        counts = {re.sub(r"\[\d+\]", "", s.path): s for s in spans if s.path.endswith(("#count", "#length", "#tags"))}
        for span in counts.values():
            size = span.end - span.start
            most = uvarint(2**31 - 1) if span.type == "uvarint" else (2 ** (8 * size - 1) - 1).to_bytes(size, "big")
            huge = data[: span.start] + most + data[span.end :]
            with pytest.raises(kafkascope.DecodeError):
                kafkascope.decode(name, version, huge, release)
            peak = peak_of(partial(kafkascope.decode, name, version, huge, release))
            assert peak <= A_BYTE * len(huge) + SLACK, f"{name} v{version}, {span}: {peak} bytes"
