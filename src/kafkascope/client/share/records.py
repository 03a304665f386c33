"""Finds the acquired records in record data. An acquired offset without a record between whole batches is a gap; one in
bytes that can't be read is never called a gap, so that no record is lost silently."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import lt

from kafkascope.client.share.values import Acknowledge, AcknowledgeRange, Acquired
from kafkascope.codec.records.record_data import Record, RecordBatch, decode_records
from kafkascope.errors import DecodeError


@dataclass(frozen=True, slots=True)
class AcquiredRecords:
    """`records` in the order of their offsets, with the delivery count of each in `delivery_counts`. `others` are the
    acknowledgements of acquired offsets that the application doesn't get: gaps, corrupt batches (reject, as Java does)
    and bytes that can't be read (release). `problems` describe the latter two."""

    records: list[Record]
    delivery_counts: list[int]
    others: list[AcknowledgeRange]
    problems: list[str]


def find_records(data: bytes, acquired: tuple[Acquired, ...]) -> AcquiredRecords:
    """`acquired` are in order and don't overlap."""
    problems: list[str] = []
    batches, unread_from = _batches(data, problems)
    records: list[Record] = []
    delivery_counts: list[int] = []
    others: list[AcknowledgeRange] = []
    ranges = iter(acquired)
    current = next(ranges, None)
    for batch, readable in batches:
        # What was acquired before this batch has no record.
        while current is not None and current.first < batch.base_offset:
            end = min(current.last, batch.base_offset - 1)
            others.append(AcknowledgeRange(current.first, end, Acknowledge.GAP))
            current = _after(current, end, ranges)
        if current is None:
            break
        if batch.is_control or not readable:
            kind = Acknowledge.GAP if batch.is_control else Acknowledge.RELEASE if batch.crc_ok else Acknowledge.REJECT
            while current is not None and current.first <= batch.last_offset:
                end = min(current.last, batch.last_offset)
                others.append(AcknowledgeRange(current.first, end, kind))
                current = _after(current, end, ranges)
            continue
        held = batch.records or ()
        dense = bool(held) and held[-1].offset - held[0].offset == len(held) - 1  # they ascend
        if dense and current.first <= held[0].offset and held[-1].offset <= current.last:
            # The usual case: the whole batch is acquired and has no holes.
            if current.first < held[0].offset:
                others.append(AcknowledgeRange(current.first, held[0].offset - 1, Acknowledge.GAP))
            records += held
            delivery_counts += [current.delivery_count] * len(held)
            current = _after(current, held[-1].offset, ranges)
        else:
            for record in held:
                offset = record.offset
                while current is not None and current.first < offset:
                    end = min(current.last, offset - 1)
                    others.append(AcknowledgeRange(current.first, end, Acknowledge.GAP))
                    current = _after(current, end, ranges)
                if current is None:
                    break
                if current.first == offset:
                    records.append(record)
                    delivery_counts.append(current.delivery_count)
                    current = _after(current, offset, ranges)
        while current is not None and current.first <= batch.last_offset:
            end = min(current.last, batch.last_offset)
            others.append(AcknowledgeRange(current.first, end, Acknowledge.GAP))
            current = _after(current, end, ranges)
    if current is not None:
        # After the last whole batch: a broker locks nothing there that it doesn't send.
        problems.append(f"no record data from offset {current.first:,} on{unread_from}")
        while current is not None:
            others.append(AcknowledgeRange(current.first, current.last, Acknowledge.RELEASE))
            current = next(ranges, None)
    return AcquiredRecords(records, delivery_counts, _merged(others), problems)


def _after(current: Acquired, end: int, ranges: Iterator[Acquired]) -> Acquired | None:
    """What of the range, or of the next ones, comes after `end`."""
    return current._replace(first=end + 1) if end < current.last else next(ranges, None)


def _batches(data: bytes, problems: list[str]) -> tuple[list[tuple[RecordBatch, bool]], str]:
    """Whole batches in the order of their offsets, and whether the records of each can be given out."""
    try:
        whole = decode_records(data)
        batches = [(batch, batch.crc_ok) for batch in whole.batches]
        rest = f" ({whole.truncated_bytes:,} bytes of a cut batch)" if whole.truncated_bytes else ""
    except DecodeError as error:
        batches, rest = _one_by_one(data, problems), f" ({error})"
    for batch, readable in batches:
        if not readable and not batch.crc_ok:
            problems.append(f"corrupt batch at offsets {batch.base_offset:,}-{batch.last_offset:,}: wrong checksum")
    ordered: list[tuple[RecordBatch, bool]] = []
    for batch, readable in batches:
        if batch.last_offset_delta < 0 or (ordered and batch.base_offset <= ordered[-1][0].last_offset):
            # Batches of a log never go backwards.
            problems.append(f"a batch at offset {batch.base_offset:,} is out of order")
            break
        if readable and not _in_order(batch):
            problems.append(f"offsets within the batch at {batch.base_offset:,} are out of order")
            readable = False
        ordered.append((batch, readable))
    return ordered, rest


def _in_order(batch: RecordBatch) -> bool:
    """Whether the offsets of its records ascend within it, as in every batch of a log."""
    offsets = [record.offset for record in batch.records or ()]
    if not offsets:
        return True
    within = batch.base_offset <= offsets[0] and offsets[-1] <= batch.last_offset
    return within and all(map(lt, offsets, offsets[1:]))


def _one_by_one(data: bytes, problems: list[str]) -> list[tuple[RecordBatch, bool]]:
    """A batch that can't be read doesn't hide the others."""
    try:
        headers = decode_records(data, unpack=False).batches
    except DecodeError as error:
        problems.append(str(error))
        return []
    batches: list[tuple[RecordBatch, bool]] = []
    for header in headers:
        try:
            batch = decode_records(data[header.start : header.end]).batches[0]
            batches.append((batch, batch.crc_ok))
        except DecodeError as error:
            problems.append(f"offsets {header.base_offset:,}-{header.last_offset:,}: {error}")
            batches.append((header, False))
    return batches


def _merged(ranges: list[AcknowledgeRange]) -> list[AcknowledgeRange]:
    merged: list[AcknowledgeRange] = []
    for part in ranges:
        if merged and merged[-1].last == part.first - 1 and merged[-1].type == part.type:
            merged[-1] = AcknowledgeRange(merged[-1].first, part.last, part.type)
        else:
            merged.append(part)
    return merged
