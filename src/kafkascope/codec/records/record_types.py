"""Defines `Records`, `RecordBatch` and `Record`. A message of a message set is a batch too.

Everything is frozen; `dataclasses.replace` makes the changed copy that `encode_records` writes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from kafkascope.codec.write import number_text, shown
from kafkascope.errors import EncodeError

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_CREATE_TIME, _LOG_APPEND_TIME, _NO_TIMESTAMP_TYPE = "CreateTime", "LogAppendTime", "NoTimestampType"
# Kafka's values for a missing timestamp, producer, epoch or sequence.
NONE = -1

_NUMBERS = Struct(">qqb")
_NUMBER_BITS = (("offset", 64), ("timestamp", 64), ("attributes", 8))
_BYTES_OR_NULL = (bytes, type(None))
_COMPRESSION_BITS = 0b111
LOG_APPEND_BIT = 1 << 3
_TRANSACTIONAL_BIT = 1 << 4
_CONTROL_BIT = 1 << 5
_DELETE_HORIZON_BIT = 1 << 6

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Record:
    """One record. A null key or value is None, an empty one is b"". `timestamp` is what a consumer sees."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    attributes: int = 0


class Draft:
    """A `Record` under construction: the same slots, not yet frozen. Setting its `__class__` makes it one, in a quarter
    of the time that creating a frozen dataclass takes."""

    __slots__ = ("attributes", "headers", "key", "offset", "timestamp", "value")

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    attributes: int


def make_record(
    offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[Header, ...], attributes: int
) -> Record:
    """Creates a `Record` through a `Draft`."""
    draft = Draft()
    draft.offset = offset
    draft.timestamp = timestamp
    draft.key = key
    draft.value = value
    draft.headers = headers
    draft.attributes = attributes
    draft.__class__ = Record  # type: ignore[assignment]
    return draft  # type: ignore[return-value]


def check_record(record: object, path: str) -> None:
    """Raises an `EncodeError` that names the field with an impossible value: a time as a float, headers as a dict."""
    if not isinstance(record, Record):
        raise EncodeError(f"{path}: expected a Record, got {shown(record)}")
    try:
        _NUMBERS.pack(record.offset, record.timestamp, record.attributes)
        # numpy's numbers can be packed, but overflow in sums.
        plain = type(record.offset) is type(record.timestamp) is type(record.attributes) is int
    except StructError:
        plain = False
    if not plain:
        _check_numbers(record, path)
    for name, data in (("key", record.key), ("value", record.value)):
        if not isinstance(data, _BYTES_OR_NULL):
            raise EncodeError(f"{path}.{name}: expected bytes or null, got {shown(data)}")
    pairs = "pairs of a string and bytes or null"
    if not isinstance(record.headers, (tuple, list)):
        raise EncodeError(f"{path}.headers: expected {pairs}, got {shown(record.headers)}")
    for header in record.headers:
        match header:
            case (str(), bytes() | None):
                pass
            case _:
                raise EncodeError(f"{path}.headers: expected {pairs}")


def _check_numbers(record: Record, path: str) -> None:
    for name, bits in _NUMBER_BITS:
        number: object = getattr(record, name)
        if not isinstance(number, int):
            raise EncodeError(f"{path}.{name}: expected int{bits}, got {shown(number)}")
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise EncodeError(f"{path}.{name}: {number_text(number)} doesn't fit int{bits}")


class BatchStart(NamedTuple):
    """The fields of a header of magic 2 that its records need."""

    base_offset: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    records_count: int


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A batch and its place: `start` inclusive, `end` exclusive, both from the first byte of the record data.

    A compressed message of magic 0 or 1 has only the offset of its last record: `base_offset` plus `last_offset_delta`
    is that number, and while it is compressed both have its meaning. Without its records the number of them is unknown
    (`records_count` None). With `has_delete_horizon`, `base_timestamp` is the delete horizon.

    `payload` is what followed the header, kept if encoding the records again would make other bytes. It is used as long
    as it matches `records`.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    crc_ok: bool
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int | None
    start: int
    end: int
    payload: bytes | None = field(repr=False)
    records: tuple[Record, ...] | None

    @property
    def compression(self) -> str:
        return COMPRESSIONS[self.attributes & _COMPRESSION_BITS]

    @property
    def timestamp_type(self) -> str:
        if self.magic == 0:
            return _NO_TIMESTAMP_TYPE
        return _LOG_APPEND_TIME if self.attributes & LOG_APPEND_BIT else _CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.magic > 1 and bool(self.attributes & _TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return self.magic > 1 and bool(self.attributes & _CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        return self.magic > 1 and bool(self.attributes & _DELETE_HORIZON_BIT)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta


@dataclass(frozen=True, slots=True)
class Records:
    """All batches of some record data; `truncated_bytes` of an incomplete last batch follow them.

    `exact` means that encoding every record again makes the same bytes; `reasons` are why not. For unchanged batches
    only a wrong checksum and a cut last batch change the result of `encode_records`: it writes a kept payload
    unchanged.
    """

    batches: tuple[RecordBatch, ...]
    truncated_bytes: int
    reasons: tuple[str, ...]
    exact: bool


def new_batch(
    records: Iterable[Record],
    *,
    magic: int = 2,
    compression: str = "none",
    timestamp_type: str = _CREATE_TIME,
    base_offset: int | None = None,
    partition_leader_epoch: int = NONE,
    producer_id: int = NONE,
    producer_epoch: int = NONE,
    base_sequence: int = NONE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> RecordBatch:
    """A batch to encode, with the header that Kafka's own builder gives these records."""
    held = tuple(records)
    for index, record in enumerate(held):
        check_record(record, f"records[{index}]")
    if compression not in COMPRESSIONS:
        raise EncodeError(f"unknown compression {compression!r}; use one of {', '.join(COMPRESSIONS)}")
    if not held and (base_offset is None or magic < 2):
        raise EncodeError("a batch without records needs magic 2 and a base offset")
    if timestamp_type not in (_CREATE_TIME, _LOG_APPEND_TIME):
        raise EncodeError(f"unknown timestamp type {timestamp_type!r}; use {_CREATE_TIME} or {_LOG_APPEND_TIME}")
    if magic < 2 and (is_transactional or is_control):
        raise EncodeError(f"transactional and control batches need magic 2, not {magic}")
    first = held[0].offset if base_offset is None or magic < 2 else base_offset
    attributes = COMPRESSIONS.index(compression)
    attributes |= LOG_APPEND_BIT if timestamp_type == _LOG_APPEND_TIME and magic else 0
    attributes |= _TRANSACTIONAL_BIT if is_transactional else 0
    attributes |= _CONTROL_BIT if is_control else 0
    latest = max((record.timestamp for record in held), default=NONE) if magic else NONE
    return RecordBatch(
        base_offset=first,
        batch_length=0,
        partition_leader_epoch=partition_leader_epoch,
        magic=magic,
        crc=0,
        crc_ok=True,
        attributes=attributes,
        last_offset_delta=held[-1].offset - first if held else 0,
        base_timestamp=held[0].timestamp if held and magic > 1 else latest,
        max_timestamp=latest,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(held),
        start=0,
        end=0,
        payload=None,
        records=held,
    )
