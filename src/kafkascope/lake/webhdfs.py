"""Reads files of HDFS by its HTTP interface, WebHDFS, as a filesystem of `pyarrow.fs`. It needs neither Java nor a
native library, and writes nothing."""

import io
import json
import os
from collections.abc import Iterator
from functools import cache
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, build_opener

import pyarrow as pa
from pyarrow import fs

from kafkascope.limits import MAX_LAKE_NOTE_BYTES

SCHEMES = {"webhdfs": "http", "swebhdfs": "https"}
_PREFIX = "/webhdfs/v1"
# As Hadoop's own client (dfs.webhdfs.socket.read-timeout).
_TIMEOUT_SECONDS = 60


@cache
def webhdfs(scheme: str, authority: str) -> fs.PyFileSystem:
    """`authority` is the HTTP address of a name node or of a gateway, perhaps with a user before it."""
    return fs.PyFileSystem(_WebHdfs(scheme, authority))


class _WebHdfs(fs.FileSystemHandler):  # type: ignore[misc]
    """`HADOOP_USER_NAME` is the user that a cluster without Kerberos believes one to be."""

    def __init__(self, scheme: str, authority: str) -> None:
        user, _, address = authority.rpartition("@")
        self._name = f"{scheme}://{authority}"
        self._url = f"{SCHEMES[scheme]}://{address}{_PREFIX}"
        user = user or os.environ.get("HADOOP_USER_NAME", "")
        self._user = {"user.name": user} if user else {}
        # The data nodes that a name node redirects to are as near as itself.
        self._opener = build_opener(ProxyHandler({}))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _WebHdfs) and other._name == self._name

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._name)

    def get_type_name(self) -> str:
        return "webhdfs"

    def normalize_path(self, path: str) -> str:
        return path

    def request(self, path: str, operation: str, **parameters: int) -> Any:
        """The response, to read from. `FileNotFoundError` or another `OSError` with the server's reason."""
        query = urlencode({"op": operation, **self._user, **parameters})
        url = f"{self._url}{quote(path if path.startswith('/') else f'/{path}')}?{query}"
        try:
            return self._opener.open(url, timeout=_TIMEOUT_SECONDS)
        except HTTPError as error:
            with error:
                why = _reason_of(error)
            if error.code == 404:
                raise FileNotFoundError(2, why) from None
            if error.code in (401, 403):
                raise PermissionError(13, why) from None
            raise OSError(why) from None
        except URLError as error:
            raise OSError(f"{self._name} doesn't respond: {error.reason}") from None
        except HTTPException as error:
            raise OSError(f"{self._name} doesn't speak HTTP: {type(error).__name__}") from None

    def _json(self, path: str, operation: str, *keys: str) -> Any:
        with self.request(path, operation) as response:
            try:
                value = json.load(response)
                for key in keys:
                    value = value[key]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise OSError(f"{self._name} isn't WebHDFS: {operation} has no {'.'.join(keys)}") from None
        return value

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> fs.FileInfo:
        try:
            return _file_info(path, self._json(path, "GETFILESTATUS", "FileStatus"))
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return list(self._listed(selector.base_dir, selector.recursive, selector.allow_not_found))

    def _listed(self, folder: str, recursive: bool, allow_not_found: bool) -> Iterator[fs.FileInfo]:
        try:
            statuses = self._json(folder, "LISTSTATUS", "FileStatuses", "FileStatus")
        except FileNotFoundError:
            if allow_not_found:
                return
            raise
        for status in statuses:
            info = _file_info(f"{folder.rstrip('/')}/{status['pathSuffix']}", status)
            yield info
            if recursive and info.type == fs.FileType.Directory:
                yield from self._listed(info.path, recursive, True)

    def open_input_file(self, path: str) -> pa.PythonFile:
        info = self._info(path)
        if info.type != fs.FileType.File:
            raise FileNotFoundError(2, f"{path}: no such file")
        return pa.PythonFile(_WebHdfsFile(self, path, info.size), mode="r")

    open_input_stream = open_input_file

    def _refuse(self, *_: object) -> Any:
        raise OSError(f"{self._name} is only read: WebHDFS keeps log directories and recordings, no lake")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse


class _WebHdfsFile(io.RawIOBase):
    """A file as long as it was when it was opened."""

    def __init__(self, store: _WebHdfs, path: str, size: int) -> None:
        self._store, self._path, self._size = store, path, size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer).cast("B")
        length = min(len(room), self._size - self._position)
        done = 0
        if length > 0:
            with self._store.request(self._path, "OPEN", offset=self._position, length=length) as response:
                try:
                    while done < length and (count := response.readinto(room[done:length])):
                        done += count
                except (HTTPException, OSError) as error:
                    raise OSError(f"the connection ended: {type(error).__name__}") from None
        self._position += done
        return done


def _file_info(path: str, status: Any) -> fs.FileInfo:
    is_folder = status["type"] == "DIRECTORY"
    kind = fs.FileType.Directory if is_folder else fs.FileType.File
    return fs.FileInfo(path, kind, size=None if is_folder else int(status["length"]))


def _reason_of(error: HTTPError) -> str:
    """Hadoop's own text, without the stack trace that may follow."""
    try:
        remote = json.loads(error.read(MAX_LAKE_NOTE_BYTES))["RemoteException"]
        return str(remote["message"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError, OSError):
        return f"HTTP {error.code} {error.reason}"
