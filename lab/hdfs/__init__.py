"""A real HDFS on loopback: a name node and a data node in one process, and files in it by its HTTP interface."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlsplit

from lab.jars import JVM, hdfs_path, joined

_HERE = Path(__file__).resolve().parent
_SIGN = "listening http://"
_USER = "lab"


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """The URI of its root, with a user who may write there."""
    command = ["java", *JVM, "-Xmx300m", f"-DHADOOP_USER_NAME={_USER}", "-cp", joined(hdfs_path()),
               str(_HERE / "MiniHdfs.java"), str(folder / "disks")]  # fmt: skip
    with (
        (folder / "hdfs.out").open("w") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            address = next((line for line in process.stdout if line.startswith(_SIGN)), None)
            if address is None:
                raise RuntimeError(f"HDFS ended with {process.wait()}: {(folder / 'hdfs.out').read_text()[-2000:]}")
            yield f"webhdfs://{_USER}@{address.strip().removeprefix(_SIGN)}"
        finally:
            process.stdin.close()


def put(uri: str, content: bytes) -> None:
    """A file, over one of that name; its folders are made. The name node names the data node that takes it."""
    place = urlsplit(uri)
    url = f"/webhdfs/v1{quote(place.path)}?op=CREATE&overwrite=true&user.name={place.username}"
    location = _put(f"{place.hostname}:{place.port}", url, b"", 307)
    node = urlsplit(location)
    _put(node.netloc, f"{node.path}?{node.query}", content, 201)


def _put(address: str, url: str, content: bytes, status: int) -> str:
    connection = HTTPConnection(address, timeout=60)
    try:
        connection.request("PUT", url, content)
        response = connection.getresponse()
        text = response.read()
        if response.status != status:
            raise RuntimeError(f"{address}: HTTP {response.status}: {text[:500]!r}")
        return response.headers.get("Location") or ""
    finally:
        connection.close()
