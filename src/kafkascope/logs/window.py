"""Reads a file by position in windows of fixed size. The file ends where it ended when it was opened, so that what a
broker appends meanwhile isn't read; one that is truncated meanwhile ends there."""

import os
from types import TracebackType
from typing import Protocol

from kafkascope.errors import InputError, NotFoundError

# Larger than nearly all batches, and as much as a disk likes to read at once.
WINDOW_BYTES = 4_194_304


class Source(Protocol):
    """An open file, on whatever keeps it. `read_at` returns less than asked for, but nothing only at its end."""

    def size(self) -> int: ...

    def read_at(self, start: int, length: int) -> bytes: ...

    def close(self) -> None: ...


class LocalFile:
    """A file of this machine. `NotFoundError` if there is none."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            raise NotFoundError(f"{path}: no such file") from None
        except OSError as error:
            raise self._refused(error) from None

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read_at(self, start: int, length: int) -> bytes:
        try:
            if hasattr(os, "pread"):
                return os.pread(self._descriptor, length, start)
            os.lseek(self._descriptor, start, os.SEEK_SET)
            return os.read(self._descriptor, length)
        except OSError as error:
            raise self._refused(error) from None

    def close(self) -> None:
        os.close(self._descriptor)

    def _refused(self, error: OSError) -> InputError:
        return InputError(f"{self._path}: {(error.strerror or str(error)).lower()}")


class Window:
    """A context manager. `read` returns less than asked for only at the end of the file. `source` is what keeps a file
    that isn't on this machine; `size` is where the file ends, if that is to be earlier than it does now. `ahead` is how
    much is read at once."""

    __slots__ = ("_buffer", "_source", "_start", "ahead", "path", "size")

    def __init__(
        self, path: str, source: Source | None = None, size: int | None = None, ahead: int = WINDOW_BYTES
    ) -> None:
        self.path, self.ahead = path, ahead
        self._source = LocalFile(path) if source is None else source
        whole = self._source.size()
        self.size = whole if size is None else min(size, whole)
        self._buffer = b""
        self._start = 0

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._source.close()

    def read(self, start: int, length: int) -> bytes:
        end = min(start + length, self.size)
        held = self._start + len(self._buffer)
        if start < self._start or end > held:
            self._buffer = self._fetch(start, min(max(length, self.ahead), self.size - start))
            self._start = start
        at = start - self._start
        return self._buffer[at : at + length] if end > start else b""

    def locate(self, start: int, length: int) -> tuple[bytes, int]:
        """(bytes that hold the range, where it starts in them), without a copy."""
        if start < self._start or start + length > self._start + len(self._buffer):
            self._buffer = self._fetch(start, min(max(length, self.ahead), max(0, self.size - start)))
            self._start = start
        return self._buffer, start - self._start

    def stretch(self, start: int, *, again: bool = False) -> tuple[bytes, int]:
        """(bytes that hold what begins there, where it starts in them): what is in memory already, unless it's wanted
        again."""
        if not again and self._start <= start < self._start + len(self._buffer):
            return self._buffer, start - self._start
        return self.locate(start, max(0, min(self.ahead, self.size - start)))

    def has_grown(self) -> bool:
        """Whether a broker has appended since it was opened."""
        return self._source.size() > self.size

    def _fetch(self, start: int, length: int) -> bytes:
        pieces: list[bytes] = []
        while length > 0:
            piece = self._source.read_at(start, length)
            if not piece:
                self.size = min(self.size, start)
                break
            pieces.append(piece)
            start += len(piece)
            length -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
