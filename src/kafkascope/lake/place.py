"""Resolves a path or URI to its filesystem: local disks, HDFS, S3 and the other object stores that `pyarrow.fs`
supports. Their settings come from the environment, as their own tools read them."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from pyarrow import ArrowException, ArrowInvalid, fs

from kafkascope.errors import InputError, UsageError
from kafkascope.lake.webhdfs import SCHEMES, webhdfs
from kafkascope.limits import MAX_LAKE_NOTE_BYTES

# Errors of the Delta library have colours and several lines, the cause last.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# With RUST_BACKTRACE set, a stack trace follows.
_STACK = re.compile(r"\n\s*0: .*", re.DOTALL)
# Characters of an error message to show, since some are very long.
_SHOWN = 400
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)|Os \{ code: (\d+)|\[[Ee]rrno (\d+)\]")


@dataclass(frozen=True, slots=True)
class Place:
    """`uri` is valid for other programs too: an absolute path, or `scheme://…`."""

    filesystem: fs.FileSystem
    path: str
    uri: str

    @property
    def local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def child(self, *names: str) -> "Place":
        return Place(self.filesystem, "/".join((self.path, *names)), "/".join((self.uri, *names)))

    def exists(self) -> bool:
        return bool(self.info().type != fs.FileType.NotFound)

    def info(self) -> fs.FileInfo:
        with filesystem_errors(self.uri):
            return self.filesystem.get_file_info(self.path)

    def inside(self, *, deep: bool = False) -> list[fs.FileInfo]:
        """The contents of a folder; empty if it doesn't exist. On a disk a linked folder is listed but not followed: it
        may lead out, or form a cycle."""
        listed: list[fs.FileInfo] = []
        folders = [self.path]
        recursive = deep and not self.local
        with filesystem_errors(self.uri):
            while folders:
                selector = fs.FileSelector(folders.pop(), allow_not_found=True, recursive=recursive)
                infos = self.filesystem.get_file_info(selector)
                listed += infos
                if deep and not recursive:
                    folders += [info.path for info in infos if _is_folder(info) and not os.path.islink(info.path)]
        return listed

    def read(self) -> bytes:
        """Reads a small file, one of those that kafkascope writes next to the tables."""
        with filesystem_errors(self.uri):
            # Opening a pipe waits for a writer, and a device has no end.
            if self.local and os.path.exists(self.path) and not os.path.isfile(self.path):
                raise InputError(f"{self.uri}: this isn't a file")
            with self.filesystem.open_input_stream(self.path) as file:
                content = bytes(file.read(MAX_LAKE_NOTE_BYTES + 1))
        if len(content) > MAX_LAKE_NOTE_BYTES:
            raise InputError(
                f"{self.uri}: more than {MAX_LAKE_NOTE_BYTES:,} bytes; kafkascope doesn't write such files"
            )
        return content

    def read_json(self) -> dict[str, Any]:
        try:
            value = json.loads(self.read())
        except (ValueError, RecursionError):
            raise InputError(f"{self.uri}: not JSON of kafkascope; is it another program's file?") from None
        if not isinstance(value, dict):
            raise InputError(f"{self.uri}: not a JSON object of kafkascope; is it another program's file?")
        return value

    def write(self, content: bytes) -> None:
        """Atomic: object stores never show part of an object, and on a disk a temporary file is moved into place."""
        with filesystem_errors(self.uri):
            if not self.local:
                with self.filesystem.open_output_stream(self.path) as file:
                    file.write(content)
                return
            beside = self._beside(content)
            os.replace(beside, self.path)

    def create(self, content: bytes) -> None:
        """Does nothing if it exists. An object store isn't checked: there the object is overwritten."""
        if not self.local:
            self.write(content)
            return
        with filesystem_errors(self.uri):
            beside = self._beside(content)
            try:
                os.link(beside, self.path)
            except FileExistsError:
                pass
            finally:
                os.unlink(beside)

    def _beside(self, content: bytes) -> str:
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        beside = f"{self.path}.{uuid4().hex}.tmp"
        try:
            Path(beside).write_bytes(content)
        except OSError:
            Path(beside).unlink(missing_ok=True)
            raise
        return beside

    def delete(self) -> bool:
        """Returns False if it was gone already."""
        with filesystem_errors(self.uri):
            try:
                self.filesystem.delete_file(self.path)
            except FileNotFoundError:
                return False
            return True


def _is_folder(info: fs.FileInfo) -> bool:
    return bool(info.type == fs.FileType.Directory)


class filesystem_errors:  # noqa: N801
    """Turns errors of the filesystem into one line that names the place."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, OSError | ArrowException):
            raise InputError(f"{self._uri}: {reason(error)[:_SHOWN]}") from None


@contextmanager
def readable(uri: str) -> Iterator[None]:
    """Turns errors of the libraries about a missing or broken lake into one line that names it."""
    try:
        yield
    except (OSError, ArrowException, RecursionError) as error:
        raise InputError(f"{uri}: {reason(error)[:_SHOWN]}") from None
    except BaseException as error:
        # Delta's library, if installed: its errors, and its panics, which aren't an `Exception`.
        if type(error).__module__ in ("_internal", "deltalake.exceptions", "pyo3_runtime"):
            raise InputError(f"{uri}: {reason(error)[:_SHOWN]}") from None
        raise


def reason(error: BaseException) -> str:
    """The reason in one line: the system's own text if the error has a number."""
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    if isinstance(error, PermissionError):
        return "no permission"
    text = _STACK.sub("", _COLOURS.sub("", str(error)))
    match = _SYSTEM_ERROR.search(text)
    number = getattr(error, "errno", None) or (int(next(filter(None, match.groups()))) if match else None)
    if number:
        return "no permission" if number == 13 else os.strerror(number).lower()
    return " ".join(text.split()).replace(" ↳ ", ": ") or type(error).__name__


def _local(name: str) -> Place:
    path = os.path.abspath(name)
    try:
        path.encode()
    except UnicodeEncodeError:
        # Arrow can't open such names.
        shown = os.fsencode(path).decode(errors="replace")
        raise UsageError(f"{shown}: the name isn't UTF-8; rename the file") from None
    return Place(fs.LocalFileSystem(), path, path)


def place_of(uri: str | os.PathLike[str]) -> Place:
    text = os.fspath(uri)
    if not text:
        # To the system that is the current folder.
        raise UsageError("an empty path or URI; . is the current folder")
    if "://" not in text:
        return _local(text)
    if text.startswith("file://"):
        host, slash, below = text.removeprefix("file://").partition("/")
        if host not in ("", "localhost") or not slash:
            raise UsageError(f"{text}: a file on this machine is file:///path")
        return _local(f"/{unquote(below)}")
    text = text.rstrip("/")
    # One store under the names that Hadoop uses.
    text = re.sub(r"^s3[an]://", "s3://", text)
    scheme, _, rest = text.partition("://")
    authority, slash, below = rest.partition("/")
    if ":" in authority.rpartition("@")[0]:
        raise UsageError(
            f"{scheme}://…: URIs appear in tables and logs, so a password isn't allowed; set it in the environment"
        )
    if scheme in SCHEMES:
        return Place(webhdfs(scheme, authority), f"/{below}", text)
    try:
        # Keys may contain characters that a URI can't, such as wildcards and blanks.
        filesystem, path = fs.FileSystem.from_uri(f"{scheme}://{authority}")
    except (ArrowInvalid, OSError) as error:
        raise UsageError(
            f"{text}: can't be opened ({reason(error)}); use a path, or a URI with file, webhdfs, hdfs, s3, gs or abfs"
        ) from None
    return Place(filesystem, f"{path.rstrip('/')}/{below}" if slash else path, text)
