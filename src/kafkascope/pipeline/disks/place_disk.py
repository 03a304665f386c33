"""Opens log directories wherever `pyarrow.fs` reads: one listing of a folder and all below it, files by position."""

from collections.abc import Iterable

from pyarrow import fs

from kafkascope.errors import InputError, NotFoundError
from kafkascope.lake.place import Place, filesystem_errors, place_of
from kafkascope.limits import MAX_SMALL_FILE_BYTES
from kafkascope.logs.directories import Disk, LocalDisk
from kafkascope.logs.window import LocalFile, Source


class StoreDisk:
    """An object store or HDFS. Paths are URIs; `listing` is all that is below a folder, as it was at one moment."""

    def __init__(self, place: Place, listing: Iterable[fs.FileInfo]) -> None:
        self._place = place
        self._folders: dict[str, set[str]] = {place.uri: set()}
        self._files: dict[str, list[tuple[str, int]]] = {}
        for info in listing:
            below = str(info.path)[len(place.path) :].strip("/").split("/")
            depth = len(below) if info.type == fs.FileType.Directory else len(below) - 1
            for at in range(depth):
                folder = "/".join((place.uri, *below[:at]))
                self._folders.setdefault(folder, set()).add(below[at])
            if info.type == fs.FileType.File:
                self._files.setdefault("/".join((place.uri, *below[:-1])), []).append((below[-1], info.size))

    def normal(self, path: str) -> str:
        return path.rstrip("/")

    def size(self, path: str) -> int | None:
        if path in self._folders or path in self._files:
            return None
        folder, _, name = path.rpartition("/")
        size = dict(self._files.get(folder, ())).get(name)
        if size is not None:
            return size
        info = place_of(path).info()
        if info.type != fs.FileType.File:
            raise NotFoundError(f"{path}: no such file or directory")
        return int(info.size)

    def content(self, folder: str) -> tuple[list[str], list[tuple[str, int]]]:
        return sorted(self._folders.get(folder, ())), self._files.get(folder, [])

    def read(self, path: str) -> bytes | None:
        folder, _, name = path.rpartition("/")
        if folder in self._files and name not in dict(self._files[folder]):
            return None
        try:
            file = StoreFile(path)
        except (InputError, NotFoundError):
            return None
        try:
            return file.read_at(0, MAX_SMALL_FILE_BYTES)
        except InputError:
            return None
        finally:
            file.close()


class StoreFile:
    """An object, by position."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._place = place_of(uri)
        if self._place.info().type != fs.FileType.File:
            raise NotFoundError(f"{uri}: no such file")
        with filesystem_errors(uri):
            self._file = self._place.filesystem.open_input_file(self._place.path)

    def size(self) -> int:
        info = self._place.info()
        return int(info.size) if info.type == fs.FileType.File else 0

    def read_at(self, start: int, length: int) -> bytes:
        with filesystem_errors(self._uri):
            return bytes(self._file.read_at(length, start))

    def close(self) -> None:
        self._file.close()


def disk_of(place: Place, listing: Iterable[fs.FileInfo] = ()) -> Disk:
    return LocalDisk() if place.local else StoreDisk(place, listing)


def open_file(uri: str) -> Source:
    """`NotFoundError` if it's gone."""
    place = place_of(uri)
    return LocalFile(place.path) if place.local else StoreFile(uri)
