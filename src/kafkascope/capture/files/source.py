"""Reads bytes from a path, `-` or an open file as they arrive: it takes what a pipe has without waiting for more, and
reads a growing file until the deadline, or until another file takes its name. What can't be opened or read is an
`InputError`; what is neither a path nor a readable file is a `UsageError`."""

import gzip
import io
import lzma
import os
import select
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

from kafkascope.errors import InputError, UsageError

_POLL_SECONDS = 0.2

Input = str | os.PathLike[str] | BinaryIO
# Files that decompress while they are read raise these for broken data, and EOFError for data that is cut.
_BROKEN = (gzip.BadGzipFile, zlib.error, lzma.LZMAError)


def inputs(source: Any) -> list[Input]:
    """One input or several, as a list; paths become text."""
    several = isinstance(source, Iterable) and not _is_single(source)
    return [_input(item) for item in (source if several else [source])]


def _is_single(source: Any) -> bool:
    # Some files are iterable too, and temporary files have no common base class.
    is_path_or_bytes = isinstance(source, str | os.PathLike | bytes | bytearray | memoryview)
    return is_path_or_bytes or hasattr(source, "read") or hasattr(source, "readinto")


def _input(source: Any) -> Input:
    if isinstance(source, bytes | bytearray | memoryview):
        raise UsageError("bytes aren't a path; pass a path as text, and a recording in memory as io.BytesIO(…)")
    if not _is_single(source):
        raise UsageError(
            f"{_type_name(source)} isn't a recording; pass a path, - or an open binary file, or several of these"
        )
    return os.fsdecode(source) if isinstance(source, str | os.PathLike) else source


def _type_name(value: Any) -> str:
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


@dataclass(slots=True)
class FollowPolicy:
    """How long to follow a growing file: until `deadline` on `time.monotonic`'s clock, forever without one. `changed`
    is why following ended before that: the file was `replaced` by another of its name, or `shortened`."""

    deadline: float | None = None
    pause: Callable[[float], None] = time.sleep
    changed: str | None = None

    def wait(self) -> bool:
        left = _POLL_SECONDS if self.deadline is None else min(_POLL_SECONDS, self.deadline - time.monotonic())
        if left <= 0:
            return False
        self.pause(left)
        return True


class Source:
    """`fill` reads what is available, at least one byte, and 0 at the end. `problem` is why a file that decompresses
    its data itself, as `gzip.open` does, ended too early."""

    def __init__(self, source: Input, waiting: FollowPolicy | None = None) -> None:
        self._waiting = waiting
        self.problem: str | None = None
        self._file, self.name, self._ours = _open(source)
        self._descriptor = _descriptor(self._file)
        file_status = os.fstat(self._descriptor) if self._descriptor >= 0 else None
        mode = file_status.st_mode if file_status is not None else 0
        if stat.S_ISDIR(mode):
            raise InputError(f"{self.name} is a directory; a recording is a file")
        self._regular = stat.S_ISREG(mode)
        self._changed: str | None = None
        if not self._regular:
            self._waiting = None  # the end of a pipe is final
        # If true, pass on what is available instead of filling a whole batch.
        self.live = not self._regular or self._waiting is not None
        # Bytes left of a plain file that doesn't grow, 0 if unknown.
        self.left = 0
        if file_status is not None and not self.live and isinstance(self._file, io.FileIO):
            self.left = file_status.st_size - self._file.tell()

    def fill(self, view: memoryview) -> int:
        got = 0
        while got < len(view):
            count = self._read(view[got:])
            got += count
            if count == 0:
                if got or self._waiting is None or not self._keeps_following(self._waiting):
                    break
            elif not self._regular and not self._has_more():
                break
        return got

    def _keeps_following(self, waiting: FollowPolicy) -> bool:
        if self._changed:
            # Read to its end once more: bytes may have come before the change was seen.
            waiting.changed = self._changed
            return False
        self._changed = self._change()
        return self._changed is not None or waiting.wait()

    def _change(self) -> str | None:
        """A name without a file isn't a change yet: the next file may be about to get the name."""
        ours = os.fstat(self._descriptor)
        if ours.st_size < os.lseek(self._descriptor, 0, os.SEEK_CUR):
            return "shortened"
        try:
            theirs = os.stat(self.name)
        except OSError:
            return None
        same = (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)
        return None if same or not stat.S_ISREG(theirs.st_mode) else "replaced"

    def _read(self, view: memoryview) -> int:
        if self.problem:
            return 0
        try:
            if self._regular or self._descriptor < 0:
                return _read_into(self._file, view, self.name)
            return os.readv(self._descriptor, [view])
        except EOFError:
            self.problem = "the compressed data is cut"
            return 0
        except _BROKEN as error:
            self.problem = f"the compressed data is broken ({' '.join(str(error).split())})"
            return 0
        except OSError as error:
            raise InputError(f"{self.name}: {(error.strerror or str(error)).lower()}") from None

    def _has_more(self) -> bool:
        return self._descriptor >= 0 and bool(select.select([self._descriptor], [], [], 0)[0])

    def close(self) -> None:
        if self._ours:
            self._file.close()


def _open(source: Input) -> tuple[Any, str, bool]:
    """(file, its name, whether to close it)"""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if path == "-":
            if sys.stdin is None:
                raise InputError("standard input is closed; pass a file or a pipe: tcpdump -U -w - | kafkascope read -")
            return sys.stdin.buffer, "standard input", False
        try:
            return open(path, "rb", buffering=0), path, True
        except IsADirectoryError:
            raise InputError(f"{path} is a directory; a recording is a file") from None
        except PermissionError:
            raise InputError(f"{path}: permission denied; files of tcpdump belong to root or tcpdump") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{path}: {reason.lower()}") from None
    name = name_of(source)
    if getattr(source, "closed", False):
        raise UsageError(f"{name} is closed")
    readable = getattr(source, "readable", None)
    if readable is not None and not readable():
        raise UsageError(f"{name} isn't open for reading; open it with 'rb'")
    return source, name, False


def name_of(file: Any) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) and name else "the file"


def _descriptor(file: Any) -> int:
    """-1 if it can't be waited on."""
    try:
        return int(file.fileno())
    except (AttributeError, OSError, io.UnsupportedOperation):
        return -1


def _read_into(file: Any, view: memoryview, called: str) -> int:
    """Reads once, from any kind of file."""
    for name in ("readinto1", "readinto"):
        if method := getattr(file, name, None):
            return method(view) or 0
    data = file.read(len(view))
    if data is None:
        return 0  # a non-blocking file without data, as `readinto` has it too
    if isinstance(data, str):
        raise UsageError(f"{called} is open as text; open it with 'rb'")
    if not isinstance(data, bytes | bytearray | memoryview):
        raise UsageError(f"{called} returns {_type_name(data)} instead of bytes")
    if len(data) > len(view):
        raise UsageError(f"{called} returns more bytes than requested")
    view[: len(data)] = data
    return len(data)
