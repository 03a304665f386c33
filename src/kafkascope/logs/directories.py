"""Lists the files of a segment's path, a partition folder, a data directory or a folder of several brokers, in the
order of their records. What vanishes meanwhile, as on a running broker, isn't listed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from kafkascope.columnar.secrets import METADATA_TOPIC
from kafkascope.errors import InputError, NotFoundError
from kafkascope.limits import MAX_LOG_FOLDERS_DEEP, MAX_SMALL_FILE_BYTES
from kafkascope.logs.files import OF_BATCHES, SEGMENT, SNAPSHOT, UNKNOWN_FILE, Partition, name_of, partition_of

META_PROPERTIES_FILE = "meta.properties"
_NODE_IDS = ("node.id", "broker.id")


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file and what its name and folders show. `named` is whether its own path was asked for; `last` whether
    it's the newest segment of its partition, which a running broker writes."""

    path: str
    kind: str
    size: int
    broker: int | None = None
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    epoch: int | None = None
    left_alone: str | None = None
    named: bool = False
    last: bool = False

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)

    @property
    def has_batches(self) -> bool:
        """A file that is named may be a segment under another name."""
        return self.kind in OF_BATCHES or (self.kind == UNKNOWN_FILE and self.named)

    @property
    def place(self) -> tuple[int | None, str | None, int | None]:
        return self.broker, self.topic, self.partition


class Disk(Protocol):
    """Where log directories are. Paths are joined with `/`; what doesn't exist raises `NotFoundError`, what can't be
    read `InputError`."""

    def normal(self, path: str) -> str: ...

    def size(self, path: str) -> int | None:
        """None for a folder."""
        ...

    def content(self, folder: str) -> tuple[list[str], list[tuple[str, int]]]:
        """Names of folders; names and sizes of files. Nothing if the folder is gone."""
        ...

    def read(self, path: str) -> bytes | None:
        """A small file; None without it."""
        ...


class LocalDisk:
    """The disks of this machine."""

    def normal(self, path: str) -> str:
        return os.path.normpath(path)

    def size(self, path: str) -> int | None:
        try:
            return None if os.path.isdir(path) else os.stat(path).st_size
        except FileNotFoundError:
            raise NotFoundError(f"{path}: no such file or directory") from None
        except OSError as error:
            raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None

    def content(self, folder: str) -> tuple[list[str], list[tuple[str, int]]]:
        folders: list[str] = []
        files: list[tuple[str, int]] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    try:
                        if entry.is_dir():
                            folders.append(entry.name)
                        elif entry.is_file():
                            files.append((entry.name, entry.stat().st_size))
                    except FileNotFoundError:
                        continue
        except FileNotFoundError:
            pass
        except OSError as error:
            raise InputError(f"{folder}: {(error.strerror or str(error)).lower()}") from None
        return folders, files

    def read(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read(MAX_SMALL_FILE_BYTES)
        except OSError:
            return None


_LOCAL = LocalDisk()


def list_files(path: str, disk: Disk = _LOCAL) -> Iterator[LogFile]:
    """`NotFoundError` if there is nothing of that name, `InputError` if the system refuses."""
    path = disk.normal(path)
    size = disk.size(path)
    if size is None:
        partition = partition_of(_base_name(path))
        yield from _folder(disk, path, broker_of(disk, _parent(path)), 0, partition is not None)
        return
    folder = _parent(path)
    partition = None if is_data_folder(disk, folder) else partition_of(_base_name(folder))
    yield _file(path, size, broker_of(disk, _parent(folder)), partition, named=True)


def _parent(path: str) -> str:
    return os.path.dirname(path if "://" in path else os.path.abspath(path))


def _base_name(path: str) -> str:
    return os.path.basename(path if "://" in path else os.path.abspath(path))


def _folder(disk: Disk, path: str, broker: int | None, depth: int, named: bool) -> Iterator[LogFile]:
    """A folder's own files first, then those below it."""
    folders, files = disk.content(path)
    partition = partition_of(_base_name(path))
    if META_PROPERTIES_FILE in {name for name, _ in files}:
        # A disk, whatever it is called: data-1 isn't a partition.
        broker, partition = broker_of(disk, path), None
    listed = [_file(os.path.join(path, name), size, broker, partition, aside=not named) for name, size in files]
    listed.sort(key=_order)
    segments = [file for file in listed if file.kind == SEGMENT and file.left_alone is None]
    for file in listed:
        yield replace(file, last=True) if segments and file is segments[-1] else file
    if depth < MAX_LOG_FOLDERS_DEEP:
        for name in sorted(folders, key=_folder_order):
            yield from _folder(disk, os.path.join(path, name), broker, depth + 1, False)


def _file(
    path: str, size: int, broker: int | None, partition: Partition | None, *, named: bool = False, aside: bool = False
) -> LogFile:
    """`aside` keeps the reason of a folder that the broker has put aside; a file that is named is read in any case."""
    name = name_of(os.path.basename(path))
    left_alone = None if named else name.left_alone or (partition.left_alone if partition and aside else None)
    topic, number = (partition.topic, partition.partition) if partition else (None, None)
    if topic is None and name.kind == SNAPSHOT:
        topic, number = METADATA_TOPIC, 0
    return LogFile(path, name.kind, size, broker, topic, number, name.base_offset, name.epoch, left_alone, named)


def _order(file: LogFile) -> tuple[bool, int, str]:
    """Checkpoints and the like, then segments with what belongs to each."""
    return file.base_offset is not None, file.base_offset or 0, os.path.basename(file.path)


def _folder_order(name: str) -> tuple[str, int, str]:
    partition = partition_of(name)
    return (partition.topic, partition.partition, name) if partition else (name, -1, name)


def is_data_folder(disk: Disk, folder: str) -> bool:
    return disk.read(f"{folder}/{META_PROPERTIES_FILE}") is not None


def broker_of(disk: Disk, data_folder: str) -> int | None:
    """From meta.properties; None where it names no node."""
    for line in (disk.read(f"{data_folder}/{META_PROPERTIES_FILE}") or b"").decode(errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() in _NODE_IDS and value.strip().isdecimal():
            return int(value)
    return None
