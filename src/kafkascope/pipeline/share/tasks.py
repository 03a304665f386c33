"""Cuts a batch into the parts that tasks read. Several tasks may read one partition."""

from collections.abc import Sequence
from dataclasses import replace

from kafkascope.pipeline.share.batch_offset import LoggedRange, PartitionRanges
from kafkascope.pipeline.share.options import ShareOptions


def cut(entries: Sequence[PartitionRanges], options: ShareOptions) -> list[PartitionRanges]:
    """At least `min_partitions` parts, as far as there are records, none with more than `max_partition_records`."""
    total = sum(_size(entry) for entry in entries)
    parts: list[PartitionRanges] = []
    for entry in entries:
        size = _size(entry)
        count = max(-(-size * options.min_partitions // total), -(-size // options.max_partition_records), 1)
        parts += _parts(entry, size, min(count, size))
    return parts


def _size(entry: PartitionRanges) -> int:
    return sum(part.size for part in entry.ranges)


def _parts(entry: PartitionRanges, size: int, count: int) -> list[PartitionRanges]:
    """As equal as whole records allow, in the order of their offsets."""
    ends = [size * (index + 1) // count for index in range(count)]
    parts: list[list[LoggedRange]] = [[] for _ in ends]
    index = taken = 0
    for first, last, delivery_count, until in entry.ranges:
        position = first
        while position <= last:
            end = min(last, position + ends[index] - taken - 1)
            parts[index].append(LoggedRange(position, end, delivery_count, until))
            taken += end - position + 1
            position = end + 1
            index += taken == ends[index] and index + 1 < count
    return [replace(entry, ranges=tuple(ranges)) for ranges in parts]
