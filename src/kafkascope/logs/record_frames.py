"""Finds the records of batches in memory and sorts them by type, with the bytes of their keys and values as Arrow
arrays. What isn't in the one form that Kafka writes is read by the careful reader, in its place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.compression import unpack
from kafkascope.codec.records.record_types import COMPRESSIONS, Record
from kafkascope.columnar.log import framing as ops
from kafkascope.columnar.log import job as jobs
from kafkascope.columnar.log.framing import framing_kernel
from kafkascope.columnar.log.record_walk import RECORD_WORDS
from kafkascope.errors import DecodeError
from kafkascope.logs.batches import Batch, Damage, DamageKind, read_batches
from kafkascope.logs.typed_records import FRAMED_VALUES, Framed, Messages, framer_of, messages_of, record_kind
from kafkascope.logs.window import WINDOW_BYTES, Window
from kafkascope.schema.catalog import index

_ROWS = 16_384
_HEADER_BYTES = 61
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Frames:
    """Records of one type in the order of the file; a value is null for a tombstone, whose version is −1. `batch` is
    the row of each record's batch."""

    type: str
    key_message: str | None
    key_version: int
    value_message: str
    offset: Numbers
    timestamp: Numbers
    batch: Numbers
    version: Numbers
    key: pa.Array | None
    value: pa.Array


class RecordFrames:
    """Of one topic."""

    def __init__(self, topic: str) -> None:
        framer = framer_of(topic)
        assert framer is not None
        self._topic, self._framer = topic, framer
        self._walk = np.zeros(RECORD_WORDS, np.int64)
        self._table = np.empty((ops.COLUMNS, _ROWS), np.int64)
        self._job = np.zeros(ops.FRAMING_JOB_WORDS, np.int64)
        self._job[ops.FRAMING_WALK] = _address(self._walk)
        self._job[ops.KIND] = jobs.JOB_FRAMED if record_kind(topic) == FRAMED_VALUES else jobs.JOB_COORDINATOR

    def read(self, window: Window, positions: Numbers, careful: npt.NDArray[np.bool_]) -> Iterator[Frames | Damage]:
        """`positions` are those of batches, in order; `careful` are those that no kernel may read."""
        row, count = 0, len(positions)
        while row < count:
            if careful[row]:
                yield from self._carefully(window, row, int(positions[row]))
                row += 1
                continue
            position = int(positions[row])
            data, at = window.stretch(position)
            end = self._held(data, position - at, positions, careful, row)
            if end == row:
                data, at = window.stretch(position, again=True)
                end = self._held(data, position - at, positions, careful, row)
            if end == row:
                # It was there when its header was read, and has been cut off since.
                return
            yield from self._of_data(window, data, position - at, positions, row, end)
            row = end

    @staticmethod
    def _held(data: bytes, place: int, positions: Numbers, careful: npt.NDArray[np.bool_], row: int) -> int:
        """The first batch from `row` on that isn't whole in `data`, or that no kernel may read."""
        stops = np.flatnonzero(careful[row:])
        end = row + int(stops[0]) if len(stops) else len(positions)
        end = row + int(np.searchsorted(positions[row:end], place + len(data)))
        if end > row:
            last = int(positions[end - 1]) - place
            size = int.from_bytes(data[last + 8 : last + 12], "big", signed=True) + 12
            if len(data) - last < max(size, _HEADER_BYTES):
                end -= 1
        return end

    def _of_data(
        self, window: Window, data: bytes, place: int, positions: Numbers, row: int, end: int
    ) -> Iterator[Frames | Damage]:
        job, kernel, whole = self._job, framing_kernel(), np.frombuffer(data, np.uint8)
        job[ops.ROW], job[ops.FRAMING_ROWS], job[ops.POSITIONS] = row, end, _address(positions)
        job[ops.FRAMING_DATA], job[ops.FRAMING_PLACE], job[ops.USED], job[ops.FRAMING_UNPACKED_ROW] = (
            _address(whole),
            place,
            0,
            -1,
        )
        job[ops.TABLE], job[ops.FRAMING_STRIDE] = _address(self._table), self._table.shape[1]
        kept: list[Any] = [whole]
        while True:
            result = kernel(ops.FRAME, _address(job))
            at = int(positions[min(int(job[ops.ROW]), end - 1)])
            if result == ops.FRAMING_PACKED:
                start = at - place
                size = int.from_bytes(data[start + 8 : start + 12], "big", signed=True) + 12
                compression = COMPRESSIONS[data[start + 22] & 7]
                try:
                    unpacked = unpack(compression, data[start + _HEADER_BYTES : start + size], 2, Budget(), "")
                except DecodeError:
                    result = ops.FRAMING_CAREFUL
                else:
                    kept.append(held := np.frombuffer(unpacked, np.uint8))
                    job[ops.FRAMING_UNPACKED_ROW] = job[ops.ROW]
                    job[ops.FRAMING_UNPACKED], job[ops.FRAMING_UNPACKED_END] = (
                        _address(held),
                        _address(held) + len(held),
                    )
                    # What has been decompressed is kept only until the next table.
                    if sum(map(len, kept[1:-1])) <= WINDOW_BYTES:
                        continue
                    result = ops.FRAMING_FULL
            used = int(job[ops.USED])
            if used:
                yield from self._by_type(self._table[:, :used], positions)
                kept = [whole, *kept[-1:]]
                job[ops.USED] = 0
            if result == ops.DONE:
                return
            if result == ops.FRAMING_CAREFUL:
                yield from self._carefully(window, int(job[ops.ROW]), at)
                job[ops.ROW] += 1
            elif result == ops.FRAMING_FULL and not used:
                self._grow(int.from_bytes(data[at - place + 57 : at - place + 61], "big"))

    def _grow(self, rows: int) -> None:
        if rows > self._table.shape[1]:
            self._table = np.empty((ops.COLUMNS, rows), np.int64)
            self._job[ops.TABLE], self._job[ops.FRAMING_STRIDE] = _address(self._table), rows

    def _by_type(self, table: Numbers, positions: Numbers) -> Iterator[Frames | Damage]:
        numbers, versions = table[ops.AT_NUMBER], table[ops.AT_VERSION]
        by_number: dict[int, Messages] = {}
        good = np.zeros(table.shape[1], np.bool_)
        for number in np.unique(numbers).tolist():
            known = messages_of(self._topic, number)
            if known is None:
                continue
            by_number[number] = known
            own = numbers == number
            for version in np.unique(versions[own]).tolist():
                if version in index()[known[3]].versions:
                    good |= own & (versions == version)
            if record_kind(self._topic) != FRAMED_VALUES:
                good |= own & (table[ops.AT_VALUE_SIZE] < 0)
        for row in np.flatnonzero(~good).tolist():
            yield self._problem(table[:, row], int(positions[table[ops.AT_BATCH, row]]))
        for number, known in by_number.items():
            rows = np.flatnonzero(good & (numbers == number))
            if len(rows):
                yield _frames(known, table if len(rows) == table.shape[1] else table[:, rows])

    def _problem(self, row: Numbers, position: int) -> Damage:
        """A record as the careful reader frames it, which says what is wrong with it."""
        typed = row[ops.AT_NUMBER] != ops.NO_TYPE
        key, value = _bytes(row[ops.AT_KEY], row[ops.AT_KEY_SIZE]), _bytes(row[ops.AT_VALUE], row[ops.AT_VALUE_SIZE])
        number, version = int(row[ops.AT_NUMBER]), int(row[ops.AT_VERSION])
        if typed and record_kind(self._topic) == FRAMED_VALUES:
            value = bytes([1]) + _uvarint(number) + _uvarint(version) + (value or b"")
        elif typed:
            key = number.to_bytes(2, "big", signed=True) + (key or b"")
            value = None if value is None else version.to_bytes(2, "big", signed=True) + value
        offset = int(row[ops.AT_OFFSET])
        return problem_at(position, offset, problem_of(self._framer(Record(offset, 0, key, value))) or "")

    def _carefully(self, window: Window, row: int, position: int) -> Iterator[Frames | Damage]:
        item = next(read_batches(window, position, unpack_sets=True))
        if isinstance(item, Damage):
            return
        try:
            records = item.records()
        except DecodeError as error:
            yield Damage(item.position, item.size, DamageKind.UNREADABLE, str(error).partition(": ")[2])
            return
        yield from self._framed(item, row, records)

    def _framed(self, item: Batch, row: int, records: tuple[Record, ...]) -> Iterator[Frames | Damage]:
        by_type: dict[str, list[tuple[Record, Framed]]] = {}
        for record in records:
            framed = self._framer(record)
            if problem := problem_of(framed):
                yield problem_at(item.position, record.offset, problem)
            else:
                by_type.setdefault(framed.type or "", []).append((record, framed))
        for type_, pairs in by_type.items():
            first = pairs[0][1]
            known = messages_of(self._topic, first.type_number or 0)
            assert known is not None
            key = None if known[1] is None else pa.array([framed.key for _, framed in pairs], pa.binary())
            yield Frames(
                type_,
                *known[1:],
                np.array([record.offset for record, _ in pairs], np.int64),
                np.array([record.timestamp for record, _ in pairs], np.int64),
                np.full(len(pairs), row),
                np.array([-1 if framed.version is None else framed.version for _, framed in pairs], np.int64),
                key,
                pa.array([framed.value for _, framed in pairs], pa.binary()),
            )


def problem_of(framed: Framed) -> str | None:
    """Why a record isn't a row of its type's table."""
    if framed.problem is not None or framed.value_message is None:
        return framed.problem
    if framed.version is None or framed.version not in index()[framed.value_message].versions:
        return f"{framed.value_message} has no version {framed.version}"
    return None


def problem_at(position: int, offset: int, problem: str) -> Damage:
    return Damage(position, 0, DamageKind.UNREADABLE, f"offset {offset}: {problem}")


def _frames(known: Messages, table: Numbers) -> Frames:
    key = None if known[1] is None else _binary(table[ops.AT_KEY], table[ops.AT_KEY_SIZE])
    value = _binary(table[ops.AT_VALUE], table[ops.AT_VALUE_SIZE])
    offset, timestamp, batch, version = (
        table[at].copy() for at in (ops.AT_OFFSET, ops.AT_TIMESTAMP, ops.AT_BATCH, ops.AT_VERSION)
    )
    return Frames(*known, offset, timestamp, batch, version, key, value)


def _binary(sources: Numbers, sizes: Numbers) -> pa.Array:
    """The bytes at these addresses; null for a size below 0."""
    count = len(sizes)
    sources, sizes = np.ascontiguousarray(sources), np.ascontiguousarray(sizes)
    missing = sizes < 0
    ends, content = np.empty(count + 1, np.int32), np.empty(int(np.maximum(sizes, 0).sum()), np.uint8)
    job = np.array([_address(sources), _address(sizes), count, _address(ends), _address(content)], np.int64)
    framing_kernel()(ops.GATHER, _address(job))
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    return pa.Array.from_buffers(pa.binary(), count, [valid, pa.py_buffer(ends), pa.py_buffer(content)])


def _bytes(address: Any, size: Any) -> bytes | None:
    if size < 0:
        return None
    sources, sizes = np.array([address], np.int64), np.array([size], np.int64)
    content: bytes = _binary(sources, sizes)[0].as_py()
    return content


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.ctypes.data)
