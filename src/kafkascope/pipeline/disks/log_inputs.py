"""Finds the segments and snapshots below a folder, with what the small files beside them say of their partitions. Files
of brokers that hold no records, and those they have put aside, are left out."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from pyarrow import fs

from kafkascope.errors import InputError, KafkascopeError
from kafkascope.lake.place import Place
from kafkascope.logs import files as names
from kafkascope.logs.directories import META_PROPERTIES_FILE, Disk, LogFile, is_data_folder, list_files
from kafkascope.logs.files import OF_BATCHES, PRODUCER_SNAPSHOT, SEGMENT, UNKNOWN_FILE, name_of
from kafkascope.logs.small_files import parse_small_file
from kafkascope.pipeline.disks.place_disk import disk_of, open_file

# A digest covers this much at both ends: an append changes the size, a compaction nearly always does, and rows that are
# known by their offsets aren't read twice in any case.
_END_BYTES = 1 << 16
_AT_ONCE = 16
TO_INGEST = (*OF_BATCHES, PRODUCER_SNAPSHOT)
# Only a broker's folders have these.
_MARKERS = {"meta.properties", "partition.metadata", "leader-epoch-checkpoint"}
# Copies of indexes of tiered storage.
_CACHE = "remote-log-index-cache"
_CHECKPOINTS = {
    "log_start_offset": "log-start-offset-checkpoint",
    "high_watermark": "replication-offset-checkpoint",
    "recovery_point": "recovery-point-offset-checkpoint",
    "clean_until": "cleaner-offset-checkpoint",
}


@dataclass(frozen=True, slots=True)
class LogInput:
    """A segment, a metadata snapshot or a producer snapshot, `size` bytes of it. `last` says that a broker may be
    writing it. Of the newest segment of a folder, `listed` are the base offsets of all segments there."""

    uri: str
    kind: str
    size: int
    broker: int | None = None
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    snapshot_epoch: int | None = None
    last: bool = False
    topic_id: str | None = None
    cluster_id: str | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    recovery_point: int | None = None
    clean_until: int | None = None
    listed: tuple[int, ...] | None = None

    @property
    def key(self) -> str:
        return log_key(self.uri, self.cluster_id, self.broker, self.topic, self.topic_id, self.partition)

    def digest(self) -> str:
        """Replicas have the same bytes: whose they are counts too. Where a segment is gone, the newest one has another
        digest: an ingest then says what is left."""
        name = self.uri.rpartition("/")[2]
        hasher = blake2b(f"{self.key}\n{name}\n{self.size}\n".encode(), digest_size=16)
        if self.listed is not None:
            hasher.update(repr(self.listed).encode())
        file = open_file(self.uri)
        try:
            last = b""
            for start in (0, max(0, self.size - _END_BYTES)):
                hasher.update(last := _read(file, start, min(_END_BYTES, self.size - start)))
            if last and not any(last):
                # A preallocated file keeps its size and its end while it is written.
                hasher.update(str(_used(file, self.size)).encode())
        finally:
            file.close()
        return hasher.hexdigest()


def log_key(
    uri: str, cluster_id: str | None, broker: int | None, topic: str | None, topic_id: str | None, partition: int | None
) -> str:
    """What a log is, wherever its folder is now; a log that doesn't say whose it is is its folder."""
    if topic is None:
        return uri
    where = uri.rpartition("/")[0] if broker is None else f"{cluster_id or ''}/{broker}"
    return f"{where}/{topic}/{topic_id or ''}/{partition}"


def _read(file: Any, start: int, length: int) -> bytes:
    pieces = []
    while length > 0 and (piece := file.read_at(start, length)):
        pieces.append(piece)
        start, length = start + len(piece), length - len(piece)
    return b"".join(pieces)


def _used(file: Any, size: int) -> int:
    """Where the zeros at the end of a file begin, to within a block."""
    at = size
    while at > 0:
        start = max(0, at - (1 << 20))
        piece = _read(file, start, at - start)
        kept = len(piece.rstrip(b"\0"))
        if kept:
            return start + kept
        at = start
    return 0


@dataclass(slots=True)
class _Beside:
    """What the small files of data directories and partitions say; each is read once."""

    disk: Disk
    kept: dict[str, Any] = field(default_factory=dict)

    def input(self, file: LogFile, listed: tuple[int, ...] | None) -> LogInput:
        folder = file.folder
        data = folder if self._once(folder, lambda: is_data_folder(self.disk, folder)) else folder.rpartition("/")[0]
        offsets = {name: self._offset(f"{data}/{of}", file) for name, of in _CHECKPOINTS.items()}
        return LogInput(
            file.path,
            file.kind,
            file.size,
            file.broker,
            file.topic,
            file.partition,
            file.base_offset,
            file.epoch,
            file.last or file.named,
            self._small(f"{folder}/partition.metadata", names.PARTITION_METADATA).get("topic_id"),
            self._small(f"{data}/{META_PROPERTIES_FILE}", names.META_PROPERTIES).get("cluster.id"),
            **offsets,
            listed=listed,
        )

    def _offset(self, path: str, file: LogFile) -> int | None:
        def by_partition() -> dict[tuple[str, int], int]:
            rows = self._small(path, names.OFFSET_CHECKPOINT).get("offsets", ())
            return {(row["topic"], row["partition"]): row["offset"] for row in rows}

        known: dict[tuple[str | None, int | None], int] = self._once(f"{path}#", by_partition)
        return known.get((file.topic, file.partition))

    def _small(self, path: str, kind: str) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            content = self.disk.read(path)
            try:
                return {} if content is None else parse_small_file(path, kind, content)
            except InputError:
                # `kafkascope log --check` reports it.
                return {}

        small: dict[str, Any] = self._once(path, read)
        return small

    def _once(self, key: str, read: Any) -> Any:
        if key not in self.kept:
            self.kept[key] = read()
        return self.kept[key]


def find_logs(place: Place, listing: Iterable[fs.FileInfo] = ()) -> Iterator[LogInput]:
    """Of a file or a folder, in the order of the records of each partition. `listing` is what is below a folder of an
    object store."""
    disk = disk_of(place, listing)
    beside = _Beside(disk)
    bases: dict[str, list[int]] = {}
    for file in list_files(place.path if place.local else place.uri, disk):
        if file.left_alone is not None or file.kind not in TO_INGEST:
            continue
        if file.kind == SEGMENT and not file.named:
            bases.setdefault(file.folder, []).append(file.base_offset or 0)
        # It comes after the others.
        yield beside.input(file, tuple(bases[file.folder]) if file.last else None)


def digests_of(inputs: list[LogInput]) -> list[str | InputError]:
    """In their order; the error of one that can't be read."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(_digest, inputs))


def _digest(log: LogInput) -> str | InputError:
    try:
        return log.digest()
    except KafkascopeError as error:
        return InputError(str(error))


def is_log_name(name: str) -> bool:
    """Whether a file of that name has rows in a lake."""
    known = name_of(name)
    return known.kind in TO_INGEST and known.left_alone is None


def of_brokers(paths: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Those of the files that brokers keep: no recordings."""
    listed = list(paths)
    folders = {below[:-1] for below in listed if below[-1] in _MARKERS}
    return {
        below
        for below in listed
        if name_of(below[-1]).kind != UNKNOWN_FILE or below[:-1] in folders or _CACHE in below[:-1]
    }


def kind_of_other(path: str) -> str | None:
    """What a file of a broker is that has no rows in a lake; None for any other file."""
    kind = name_of(os.path.basename(path)).kind
    return None if kind in (*TO_INGEST, UNKNOWN_FILE) else kind
