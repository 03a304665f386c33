"""Finds the recordings and log directories that paths, globs and folders name, and computes the digest that recognizes
each file later."""

import fnmatch
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from pyarrow import fs

from kafkascope.capture.formats import CAPTURE
from kafkascope.errors import InputError, NotFoundError
from kafkascope.lake.home import SIGN
from kafkascope.lake.place import Place, filesystem_errors, place_of
from kafkascope.pipeline.disks.log_inputs import (
    LogInput,
    digests_of,
    find_logs,
    is_log_name,
    kind_of_other,
    of_brokers,
)

# A digest covers this much at both ends, and a little at places between: enough to tell any two captures of the same
# length apart.
_END_BYTES = 1 << 20
_PLACES, _PLACE_BYTES = 62, 1 << 16
_GLOB = set("*?[")
# Bytes per request to an object store.
_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to ingest. `digest` covers its first `size` bytes; `error` is why it can't be opened."""

    uri: str
    size: int
    digest: str
    kind: str = CAPTURE
    read_packets: int = 0  # by an earlier ingest; lines of a log, rows of a frames file
    error: str | None = None
    log: LogInput | None = None  # of a segment or snapshot


def find_inputs(uris: Iterable[str | os.PathLike[str]]) -> list[InputFile]:
    """Every file once, ordered by name within each argument; then segments and snapshots of log directories."""
    recordings, logs = _inputs_of(uris)
    return [*map(_input_file, recordings), *map(_log_file, logs, digests_of(logs))]


def find_places(uris: Iterable[str | os.PathLike[str]]) -> list[Place]:
    """Recordings alone, and no file is opened."""
    return _inputs_of(uris)[0]


def find_log_inputs(uris: Iterable[str | os.PathLike[str]]) -> list[LogInput]:
    """Segments and snapshots alone."""
    return _inputs_of(uris)[1]


def _inputs_of(uris: Iterable[str | os.PathLike[str]]) -> tuple[list[Place], list[LogInput]]:
    places: dict[str, Place] = {}
    logs: dict[str, LogInput] = {}
    for uri in uris:
        for item in _expand(place_of(uri)):
            if isinstance(item, LogInput):
                logs.setdefault(item.uri, item)
            else:
                places.setdefault(item.uri, item)
    return list(places.values()), list(logs.values())


def _log_file(log: LogInput, digest: str | InputError) -> InputFile:
    if isinstance(digest, InputError):
        return InputFile(log.uri, 0, "", log.kind, error=str(digest))
    return InputFile(log.uri, log.size, digest, log.kind, log=log)


def _input_file(place: Place) -> InputFile:
    try:
        return InputFile(place.uri, place.info().size, file_digest(place))
    except InputError as error:
        return InputFile(place.uri, 0, "", error=str(error))


def _expand(place: Place) -> Iterator[Place | LogInput]:
    if _GLOB & set(place.uri) and not place.exists():
        for match in _matching(place):
            yield from _named(match)
        return
    info = place.info()
    if info.type == fs.FileType.NotFound:
        raise NotFoundError(f"{place.uri}: no such file or directory")
    if info.type == fs.FileType.File:
        if (kind := kind_of_other(place.path)) is not None:
            raise InputError(f"{place.uri}: a broker's file without records ({kind}); name a segment, or the folder")
        yield from _named(place)
        return
    if info.type != fs.FileType.Directory:
        raise InputError(f"{place.uri}: a pipe or a device, not a file or a folder; record it to a file first")
    inside = list(_inside(place))
    if not inside:
        reason = "this is a lake, not a recording" if place.child(SIGN).exists() else "this folder holds no files"
        raise NotFoundError(f"{place.uri}: {reason}")
    yield from inside


def _named(place: Place) -> Iterator[Place | LogInput]:
    if is_log_name(place.path.rpartition("/")[2]):
        yield from find_logs(place)
    elif kind_of_other(place.path) is None:
        yield place


def _matching(place: Place) -> Iterator[Place]:
    """Files that match a glob: the part before the first wildcard is listed, the rest compared part by part."""
    parts = place.path.split("/")
    first = next(index for index, part in enumerate(parts) if _GLOB & set(part))
    tail = len("/".join(parts[first:]))
    parent = Place(place.filesystem, "/".join(parts[:first]) or "/", place.uri[: -tail - 1])
    if not parent.exists():
        raise NotFoundError(f"{place.uri}: no such directory: {parent.uri}")
    matches = [
        candidate
        for candidate in (parent.child(*below) for below in _of_no_lake(_all_below(parent)[0]))
        if len(names := candidate.path.split("/")) == len(parts) and all(map(fnmatch.fnmatchcase, names, parts))
        if is_log_name(names[-1]) or not any(part[0] in "._" for part in names[first:])
    ]
    if not matches:
        raise NotFoundError(f"{place.uri}: no files match")
    yield from matches


def _inside(place: Place) -> Iterator[Place | LogInput]:
    """Files of a folder and of its subfolders, by name, then those of log directories. Hidden files are skipped, and so
    are lakes: their contents were ingested already."""
    files, infos = _all_below(place)
    brokers = of_brokers(files)
    for below in _of_no_lake(files):
        if below not in brokers and not any(part[0] in "._" for part in below):
            yield place.child(*below)
    if any(is_log_name(below[-1]) for below in brokers):
        yield from find_logs(place, infos)


def _all_below(place: Place) -> tuple[list[tuple[str, ...]], list[fs.FileInfo]]:
    try:
        with filesystem_errors(place.uri):
            infos = list(_listed(place))
        return sorted(_below(place, info) for info in infos if info.type == fs.FileType.File), infos
    except UnicodeDecodeError:
        raise InputError(f"{place.uri}: a file in this folder has a name that isn't UTF-8; rename it") from None


def _of_no_lake(files: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    lakes = {below[:-1] for below in files if below[-1] == SIGN}
    for below in files:
        if not any(below[:depth] in lakes for depth in range(len(below))):
            yield below


def _listed(place: Place) -> Iterator[fs.FileInfo]:
    """Everything below a folder. On a disk, linked folders are followed, each once: links may form cycles."""
    if not place.local:
        yield from place.inside(deep=True)
        return
    folders: list[str] = [place.path]
    links: list[str] = []
    seen: set[str] = set()
    while folders or links:
        # Links last: a file that is really below the folder keeps its own name.
        folder = folders.pop() if folders else links.pop()
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        for info in place.filesystem.get_file_info(fs.FileSelector(folder)):
            yield info
            if info.type == fs.FileType.Directory:
                (links if os.path.islink(info.path) else folders).append(str(info.path))


def _below(place: Place, info: fs.FileInfo) -> tuple[str, ...]:
    return tuple(str(info.path)[len(place.path) :].strip("/").split("/"))


def file_digest(place: Place, size: int | None = None) -> str:
    """Covers the first `size` bytes, or all of them: a file that has grown is recognized by what it was."""
    with filesystem_errors(place.uri), place.filesystem.open_input_file(place.path) as file:
        total = file.size() if size is None else size
        hasher = blake2b(total.to_bytes(8, "big"), digest_size=16)
        if total <= 2 * _END_BYTES + _PLACES * _PLACE_BYTES:
            hasher.update(file.read(total))
            return hasher.hexdigest()
        hasher.update(file.read(_END_BYTES))
        for index in range(1, _PLACES + 1):
            file.seek(total * index // (_PLACES + 1))
            hasher.update(file.read(_PLACE_BYTES))
        file.seek(total - _END_BYTES)
        hasher.update(file.read(_END_BYTES))
        return hasher.hexdigest()


class _RemoteStream(io.RawIOBase):
    """Reads an object under its own URI, as the readers expect open files."""

    def __init__(self, place: Place) -> None:
        self.name = place.uri
        self._position = 0
        with filesystem_errors(place.uri):
            self._stream = place.filesystem.open_input_stream(place.path)

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        with filesystem_errors(self.name):
            content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_input(uri: str) -> Any:
    """A path if it is local, for the fastest reader; otherwise a stream from the object store."""
    place = place_of(uri)
    return place.path if place.local else io.BufferedReader(_RemoteStream(place), _READ_BYTES)
