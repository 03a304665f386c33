"""What `read` takes: paths and whatever can be read from; anything else is a `UsageError` that says what is wanted."""

import bz2
import gzip
import io
import lzma
import mmap
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkascope.capture.reader import Reading, read
from kafkascope.errors import InputError, UsageError
from tests.capture.test_reader import talk
from tests.cli.test_read_filters import exchange_fields, log_line
from tests.support.packet_build import pcap

DATA = pcap(talk(400).packets)
COUNT = 400


class ReadsOnly:
    """The least that a file can be."""

    def __init__(self, data: bytes = DATA) -> None:
        self._file = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)


class FillsOnly:
    def __init__(self) -> None:
        self._file = io.BytesIO(DATA)

    def readinto(self, view: Any) -> int:
        return self._file.readinto(view)


def written(file: Any) -> Any:
    file.write(DATA)
    file.seek(0)
    return file


def at(folder: Path) -> Path:
    path = folder / "a.pcap"
    path.write_bytes(DATA)
    return path


def close(sources: Any) -> None:
    for source in sources if isinstance(sources, list) else [sources]:
        if hasattr(source, "close"):
            source.close()


def mapped(folder: Path) -> Any:
    with at(folder).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


TAKEN: dict[str, Callable[[Path], Any]] = {
    "str": lambda folder: str(at(folder)),
    "path": at,
    "list": lambda folder: [at(folder)],
    "generator": lambda folder: (path for path in [at(folder)]),
    "set": lambda folder: {at(folder)},
    "open file": lambda folder: at(folder).open("rb"),
    "raw file": lambda folder: at(folder).open("rb", buffering=0),
    "list of open files": lambda folder: [at(folder).open("rb")],
    "BytesIO": lambda _: io.BytesIO(DATA),
    "NamedTemporaryFile": lambda _: written(tempfile.NamedTemporaryFile()),  # noqa: SIM115
    "list of a NamedTemporaryFile": lambda _: [written(tempfile.NamedTemporaryFile())],  # noqa: SIM115
    "TemporaryFile": lambda _: written(tempfile.TemporaryFile()),  # noqa: SIM115
    "SpooledTemporaryFile": lambda _: written(tempfile.SpooledTemporaryFile()),  # noqa: SIM115
    "GzipFile": lambda _: gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(DATA))),
    "mmap": mapped,
    "read alone": lambda _: ReadsOnly(),
    "readinto alone": lambda _: FillsOnly(),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_paths_and_files_of_every_kind_are_read(tmp_path: Path, kind: str) -> None:
    source = TAKEN[kind](tmp_path)
    assert sum(1 for _ in read(source)) == COUNT
    close(source)


def closed(file: Any) -> Any:
    file.close()
    return file


class Gives:
    def __init__(self, target: Any) -> None:
        self._content = target

    def read(self, _: int = -1) -> Any:
        return self._content


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "bytes": (lambda folder: os.fsencode(at(folder)), "bytes aren't a path; .* io.BytesIO"),
    "bytearray": (lambda _: bytearray(DATA), "bytes aren't a path"),
    "bytes in a list": (lambda folder: [os.fsencode(at(folder))], "bytes aren't a path"),
    "int": (lambda _: 5, "an int isn't a recording; pass a path, - or an open binary file, or several"),
    "None": (lambda _: None, "None isn't a recording"),
    "None in a list": (lambda _: [None], "None isn't a recording"),
    "nested list": (lambda folder: [[at(folder)]], "a list isn't a recording"),
    "text file": (lambda folder: at(folder).open(encoding="latin-1"), "a.pcap is open as text; open it with 'rb'"),
    "temporary text file": (lambda _: tempfile.NamedTemporaryFile("w+"), "is open as text"),  # noqa: SIM115
    "StringIO": (lambda _: io.StringIO("hello"), "the file is open as text"),
    "read that gives text": (lambda _: Gives("hello"), "the file is open as text"),
    "read that gives a list": (lambda _: Gives([1]), "the file returns a list instead of bytes"),
    "read that gives more than asked": (lambda _: Gives(bytes(1 << 22)), "the file returns more bytes than requested"),
    "closed file": (lambda folder: closed(at(folder).open("rb")), "a.pcap is closed"),
    "closed BytesIO": (lambda _: closed(io.BytesIO(DATA)), "the file is closed"),
    "file to write": (lambda folder: at(folder).open("ab"), "a.pcap isn't open for reading; open it with 'rb'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_read_from_is_wrong_use(tmp_path: Path, kind: str) -> None:
    made, message = REFUSED[kind]
    source = made(tmp_path)
    with pytest.raises(UsageError, match=message):
        list(read(source))
    close(source)


def test_a_read_that_has_nothing_now_is_at_its_end() -> None:
    with pytest.raises(InputError, match="is empty"):
        list(read(Gives(None)))  # type: ignore[arg-type]


CUT: dict[str, Callable[[bytes], Any]] = {
    "gzip": lambda data: gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(data)[:-50])),
    "xz": lambda data: lzma.LZMAFile(io.BytesIO(lzma.compress(data)[:-50])),  # noqa: SIM115
    "bzip2": lambda data: bz2.BZ2File(io.BytesIO(bz2.compress(data)[:-50])),
    "broken gzip": lambda data: gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(data)[:-8] + bytes(8))),
}


@pytest.mark.parametrize("log", [False, True], ids=["capture", "log"])
@pytest.mark.parametrize("form", CUT)
def test_what_lies_before_the_cut_of_an_unpacking_file_is_kept(form: str, log: bool) -> None:
    # Of bzip2 a whole block is lost: some 900 kB.
    count = 10_000 if form == "bzip2" else COUNT
    data = "".join(log_line(exchange_fields(n)) for n in range(count)).encode() if log else pcap(talk(count).packets)
    reading = Reading(CUT[form](data))
    count_read = sum(len(batch) for batch in reading.batches())
    assert count_read >= COUNT * 0.8
    ((_, problem),) = reading.account.kept["compression"]
    assert "broken" in problem.detail if "broken" in form else problem.detail == "the compressed data is cut"


def test_an_unpacking_file_out_of_which_nothing_comes_says_so() -> None:
    source: Any = gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(DATA)[:12]))
    with pytest.raises(InputError, match="the file: the compressed data is cut, and nothing of it can be decompressed"):
        list(read(source))
