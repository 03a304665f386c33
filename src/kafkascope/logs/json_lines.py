"""Writes the batches of a segment and their records as lines of JSON, many at a time. The lines are those that `rows`
gives; what the kernel can't write comes as events, in its place."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.compression import unpack
from kafkascope.codec.records.record_types import COMPRESSIONS, Record, RecordBatch
from kafkascope.columnar.batch_headers import HEADER_FIELDS
from kafkascope.columnar.log import job as jobs
from kafkascope.columnar.log.json_machine import JSON_PLACE, STACK_START
from kafkascope.columnar.log.lines import lines_kernel
from kafkascope.columnar.log.record_walk import RECORD_WORDS
from kafkascope.columnar.log.text import NUMBER_ROOM, SLACK
from kafkascope.errors import DecodeError
from kafkascope.logs.batch_columns import sound_headers
from kafkascope.logs.batches import Batch, Damage, read_batches
from kafkascope.logs.directories import LogFile
from kafkascope.logs.entries import MOST_DEPTH, Entries, entries_of_topic
from kafkascope.logs.selection import Selection
from kafkascope.logs.window import Window

Dumps = Callable[[Any], str]
_OUT_BYTES = 1 << 20
_HEADER_BYTES = 61
_AT = {name: index for index, name in enumerate(HEADER_FIELDS)}
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_INT64 = np.iinfo(np.int64)
_BATCH_NAMES = (
    "size_bytes", "base_offset", "last_offset", "records_count", "", "", "max_timestamp_ms", "delete_horizon_ms",
    "leader_epoch", "producer_id", "producer_epoch", "base_sequence", "last_sequence", "is_transactional", "is_control",
    "crc",
)  # fmt: skip
_RECORD_NAMES = ("timestamp_ms", "leader_epoch", "producer_id", "sequence", "key_bytes", "value_bytes", "value")


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines, each with its end."""

    text: str
    batches: int
    records: int


@dataclass(frozen=True, slots=True)
class CarefulRecord:
    """A record whose line isn't among those before."""

    batch: RecordBatch
    record: Record


class JsonLines:
    """`dumps` writes one row. `records` asks for those of users' topics too. Of careful records, `selection` leaves out
    none by type."""

    def __init__(self, file: LogFile, dumps: Dumps, *, records: bool, selection: Selection = Selection()) -> None:  # noqa: B008
        self._out = np.empty(_OUT_BYTES + SLACK, np.uint8)
        self._stack = np.zeros(STACK_START + JSON_PLACE * MOST_DEPTH, np.int64)
        self._walk = np.zeros(RECORD_WORDS, np.int64)
        self._texts, self._text_places, batch_room, record_room = _texts(file, dumps)
        types = tuple(sorted(selection.types))
        entries = entries_of_topic(file.topic, types)
        self._entries, self._control = entries, entries_of_topic(None, types)
        self._selection = selection
        job = self._job = np.zeros(jobs.JOB_JOB_WORDS, np.int64)
        job[jobs.ROOM] = _address(self._out) + _OUT_BYTES
        job[jobs.BATCH_ROOM], job[jobs.RECORD_ROOM] = batch_room, record_room
        job[jobs.JOB_STACK], job[jobs.JOB_WALK] = _address(self._stack), _address(self._walk)
        job[jobs.KIND] = entries.kind
        if entries.kind == jobs.JOB_CONTROL:
            job[jobs.KIND] = jobs.PLAIN if records and not types else jobs.NO_RECORDS
        job[jobs.ENTRIES], job[jobs.CONTROL_ENTRIES] = entries.address, self._control.address
        job[jobs.JOB_TEXTS] = _address(self._text_places)
        job[jobs.RECORD] = -1
        job[jobs.ONLY_RECORDS] = bool(types)
        for word, limit in ((jobs.FIRST_OFFSET, selection.first_offset), (jobs.FIRST_MS, selection.from_ms)):
            job[word] = _INT64.min if limit is None else limit
        for word, limit in ((jobs.LAST_OFFSET, selection.end_offset), (jobs.LAST_MS, selection.until_ms)):
            job[word] = _INT64.max if limit is None else limit - 1

    def of_window(
        self, window: Window, start: int, *, last: bool, unpack_sets: bool
    ) -> Iterator[Lines | CarefulRecord | Batch | Damage]:
        """A batch comes as such if neither its line nor any of its records is among the lines."""
        for item in sound_headers(window, start, last=last, unpack_sets=unpack_sets):
            if isinstance(item, tuple):
                data, place, numbers, rows = item
                chosen, is_past = self._selection.of_headers(numbers[:, :rows])
                yield from self._of_headers(window, data, place, chosen)
                if is_past:
                    return
            else:
                if isinstance(item, Batch) and self._selection.is_past(item.header.base_offset):
                    return
                yield item

    def _of_headers(
        self, window: Window, data: bytes, place: int, numbers: npt.NDArray[np.int64]
    ) -> Iterator[Lines | CarefulRecord | Batch]:
        rows, stride = numbers.shape[1], numbers.strides[0] // numbers.itemsize
        job, kernel, whole = self._job, lines_kernel(), np.frombuffer(data, np.uint8)
        job[jobs.ROW], job[jobs.JOB_ROWS], job[jobs.RECORD], job[jobs.JOB_UNPACKED_ROW] = 0, rows, -1, -1
        job[jobs.JOB_HEADERS], job[jobs.JOB_STRIDE] = _address(numbers), stride
        job[jobs.JOB_DATA], job[jobs.JOB_PLACE] = _address(whole), place
        self._empty()
        unpacked: Any = None
        careful: Batch | None = None
        records: tuple[Record, ...] | None = None
        while True:
            result = kernel(_address(job))
            row = int(job[jobs.ROW])
            if result == jobs.JOB_UNKNOWN_TYPE:
                self._fill(int(numbers[_AT["attributes"], row]))
                continue
            if result == jobs.JOB_PACKED:
                at = int(numbers[_AT["position"], row]) - place
                payload = data[at + _HEADER_BYTES : at + int(numbers[_AT["size_bytes"], row])]
                compression = COMPRESSIONS[int(numbers[_AT["attributes"], row]) & 7]
                try:
                    unpacked = np.frombuffer(unpack(compression, payload, 2, Budget(), ""), np.uint8)
                except DecodeError:
                    result = jobs.CAREFUL_BATCH
                else:
                    first = _address(unpacked)
                    job[[jobs.JOB_UNPACKED_ROW, jobs.JOB_UNPACKED, jobs.JOB_UNPACKED_END]] = (
                        row,
                        first,
                        first + len(unpacked),
                    )
                    continue
            fresh = job[jobs.OUT] == _address(self._out)
            if not fresh:
                yield self._taken()
            if result == jobs.DONE:
                return
            if result == jobs.NO_SPACE and not fresh:
                continue
            # A record that alone needs more room than there is goes to the careful path too.
            position = int(numbers[_AT["position"], row])
            if careful is None or careful.position != position:
                item = next(read_batches(window, position))
                assert isinstance(item, Batch)
                careful, records = item, None
            if result == jobs.CAREFUL_BATCH:
                yield careful
                job[jobs.ROW] += 1
                continue
            # Read once for all of them: the kernel has checked their framing.
            records = careful.records() if records is None else records
            yield CarefulRecord(careful.header, records[int(job[jobs.RECORD])])
            job[jobs.RECORD] += 1
            job[jobs.RECORD_AT] = job[jobs.AFTER_RECORD]

    def _fill(self, attributes: int) -> None:
        entries = self._control if attributes & 1 << 5 else self._entries
        entries.fill(int(self._job[jobs.NUMBER]), int(self._job[jobs.JOB_VERSION]))

    def _empty(self) -> None:
        self._job[jobs.OUT] = _address(self._out)
        self._job[jobs.BATCHES] = self._job[jobs.JOB_RECORDS] = 0

    def _taken(self) -> Lines:
        job = self._job
        text = self._out[: int(job[jobs.OUT]) - _address(self._out)].tobytes().decode()
        lines = Lines(text, int(job[jobs.BATCHES]), int(job[jobs.JOB_RECORDS]))
        self._empty()
        return lines


def _texts(file: LogFile, dumps: Dumps) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], int, int]:
    """The texts of `job`, their places, and the room that the line of a batch and what surrounds a record need."""
    same = {"broker": file.broker, "topic": file.topic, "partition": file.partition}

    def start(row: dict[str, Any], name: str) -> str:
        return f'{dumps(row)[:-1]}, "{name}": '

    texts = [""] * jobs.TEXT_COUNT
    texts[jobs.AT_POSITION] = start({"kind": "batch", **same, "file": file.path}, "position")
    for index, name in enumerate(_BATCH_NAMES):
        texts[jobs.AT_SIZE + index] = f', "{name}": '
    texts[jobs.AT_COMPRESSION] = ', "magic": 2, "compression": "'
    texts[jobs.AT_TIMESTAMP_TYPE] = '", "timestamp_type": "'
    texts[jobs.AT_MAX_TIMESTAMP] = '", "max_timestamp_ms": '
    texts[jobs.AT_CRC_OK] = ', "crc_ok": true}\n'
    texts[jobs.COMPRESSION_NAMES : jobs.TIMESTAMP_TYPES] = COMPRESSIONS
    texts[jobs.TIMESTAMP_TYPES : jobs.FALSE] = _TIMESTAMP_TYPES
    texts[jobs.FALSE], texts[jobs.TRUE], texts[jobs.JOB_NULL] = "false", "true", "null"
    texts[jobs.AT_OFFSET] = start({"kind": "record", **same}, "offset")
    for index, name in enumerate(_RECORD_NAMES):
        texts[jobs.AT_TIMESTAMP + index] = f', "{name}": '
    texts[jobs.AT_PROBLEM] = ', "problem": null}\n'
    texts[jobs.AT_PLAIN_KEY], texts[jobs.AT_HEADERS] = ', "key": ', ', "headers": ['
    texts[jobs.AT_HEADER_KEY], texts[jobs.AT_NEXT_HEADER] = '{"key": ', ', {"key": '
    texts[jobs.AT_HEADER_VALUE], texts[jobs.AT_RECORD_END] = ', "value": ', "]}\n"
    encoded = [text.encode() for text in texts]
    content = np.frombuffer(b"".join(encoded) + bytes(SLACK), np.uint8).copy()
    sizes = np.array([len(text) for text in encoded], np.int64)
    places = np.empty((len(encoded), 2), np.int64)
    places[:, 0] = _address(content) + np.cumsum(sizes) - sizes
    places[:, 1] = sizes
    batch = int(sizes[: jobs.AT_OFFSET].sum())
    record = int(sizes[jobs.AT_OFFSET :].sum()) + Entries.MOST_TYPE_TEXT
    return content, places, batch + NUMBER_ROOM * jobs.AT_OFFSET, record + NUMBER_ROOM * jobs.TEXT_COUNT


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.ctypes.data)
