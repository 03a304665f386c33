"""Decodes records of magic 2 with care, and notes what Kafka would write differently. What Kafka's Java reader can't
read is a `DecodeError`.

It notes each place where encoding the record again would make other bytes: longer varints than needed, null as -2.
"""

from kafkascope.codec.records.budget import Budget, note
from kafkascope.codec.records.record_types import BatchStart, Header, Record
from kafkascope.codec.varint import read_zigzag, wrap_int64
from kafkascope.errors import DecodeError

# Length, attributes, two deltas, two lengths and a header count of one byte each.
LEAST_RECORD_BYTES = 7
_LEAST_HEADER_BYTES = 2


class RecordWalk:
    """One pass over the records of one batch; it reports what it can't read and notes what it couldn't write."""

    __slots__ = ("batch", "budget", "data", "end", "place", "position", "reasons", "where")

    def __init__(
        self, batch: BatchStart, data: bytes, start: int, end: int, budget: Budget, where: str, place: str
    ) -> None:
        self.batch = batch
        self.data = data
        self.position = start
        self.end = end
        self.budget = budget
        self.where = where
        self.place = place
        self.reasons: list[str] = []

    def records(self) -> tuple[list[Record], list[str]]:
        records = [self._record(f"{self.where}.records[{index}]") for index in range(self.batch.records_count)]
        if self.position != self.end:
            raise self._fail(self.where, f"{self.end - self.position} bytes after the last record")
        return records, self.reasons

    def _record(self, path: str) -> Record:
        length = self._varint(path, "length")
        if not LEAST_RECORD_BYTES - 1 <= length <= self.end - self.position:
            raise self._fail(path, f"length {length}, {self.end - self.position} left")
        outer, self.end = self.end, self.position + length
        attributes = self.data[self.position]
        self.position += 1
        timestamp = wrap_int64(self.batch.base_timestamp + self._varint(path, "timestamp delta", long=True))
        offset = wrap_int64(self.batch.base_offset + self._varint(path, "offset delta"))
        key = self._bytes(path, "key")
        value = self._bytes(path, "value")
        headers = self._headers(path)
        if self.position != self.end:
            raise self._fail(path, f"length {length} is {self.end - self.position} more than it holds")
        self.end = outer
        return Record(offset, timestamp, key, value, headers, attributes - 256 if attributes > 0x7F else attributes)

    def _headers(self, path: str) -> tuple[Header, ...]:
        count = self._varint(path, "header count")
        if not 0 <= count * _LEAST_HEADER_BYTES <= self.end - self.position:
            raise self._fail(path, f"{count} headers, {self.end - self.position} bytes left")
        self.budget.take_items(count, self.where)
        return tuple(self._header(f"{path}.headers[{index}]") for index in range(count))

    def _header(self, path: str) -> Header:
        at = self.position
        raw = self._bytes(path, "key")
        if raw is None:
            raise self._fail(path, "a header key is null", at)
        try:
            key = raw.decode()
        except UnicodeDecodeError:
            key = raw.decode(errors="replace")
            self._inexact(path, "key is invalid UTF-8, shown with replacement characters", at)
        return key, self._bytes(path, "value")

    def _bytes(self, path: str, label: str) -> bytes | None:
        start = self.position
        length = self._varint(path, f"{label} length")
        if length > self.end - self.position:
            raise self._fail(path, f"{label} of {length} bytes, {self.end - self.position} left")
        if length < 0:
            if length != -1:
                self._inexact(path, f"{label} length {length}, written as -1", start)
            return None
        start = self.position
        self.position += length
        return self.data[start : self.position]

    def _varint(self, path: str, label: str, *, long: bool = False) -> int:
        start = self.position
        varint = read_zigzag(self.data, start, self.end, long=long)
        if varint is None:
            raise self._fail(path, f"{label} is cut off or too long")
        value, self.position, shortest = varint
        if not shortest:
            self._inexact(path, f"{label} takes {self.position - start} bytes, fewer would do", start)
        return value

    def _fail(self, path: str, problem: str, offset: int | None = None) -> DecodeError:
        return DecodeError(f"{path}: {problem} (offset {self.position if offset is None else offset}{self.place})")

    def _inexact(self, path: str, problem: str, offset: int) -> None:
        note(self.reasons, f"{path}: {problem} (offset {offset}{self.place})")
