"""Reads files of plain frames: Parquet, JSON lines, CSV, or lines of `NAME:VERSION HEX`.

A frame names its message and version, or API, direction and version; its bytes are binary, hex or base64."""

import base64
import binascii
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkascope.errors import DecodeError, InputError, KafkascopeError
from kafkascope.lake.place import Place, filesystem_errors
from kafkascope.schema.catalog import message as read_message
from kafkascope.schema.names import find

FRAMES = "frames"
# Accepted column names.
_MESSAGE, _API, _DIRECTION, _VERSION = "message", "api", "direction", "version"
_BYTES_COLUMNS = ("bytes", "hex", "base64", "body", "data")
# A body may be empty.
_HEX_LINE = re.compile(r"\s*([A-Za-z]+):([0-9]+)(?:\s+(.*))?", re.DOTALL)
_HEX = re.compile(r"[0-9a-fA-F\s]+")
_HEAD_BYTES = 4096
_PARQUET = b"PAR1"
# Rows that are decoded together.
_PORTION_ROWS = 10_000

Frame = tuple[int, str, int, bytes]


def is_frames(place: Place) -> bool:
    """Decides by the beginning of the file."""
    with filesystem_errors(place.uri), place.filesystem.open_input_stream(place.path) as file:
        head = bytes(file.read(_HEAD_BYTES))
    if head.startswith(_PARQUET):
        return _names_frames(_parquet_columns(place))
    first = next((line for line in head.splitlines() if line.strip() and not line.lstrip().startswith(b"#")), b"")
    if _is_hex_line(first.decode("utf-8", "replace")):
        return True
    if first.lstrip().startswith(b"{"):
        try:
            frame = json.loads(first)
        except ValueError:
            return False
        return isinstance(frame, dict) and _VERSION in frame and any(name in frame for name in _BYTES_COLUMNS)
    return _names_frames({word.strip().strip('"').lower() for word in first.decode("utf-8", "replace").split(",")})


def _names_frames(columns: set[str]) -> bool:
    return _VERSION in columns and bool(columns & set(_BYTES_COLUMNS)) and bool(columns & {_MESSAGE, _API})


def _parquet_columns(place: Place) -> set[str]:
    with filesystem_errors(place.uri), place.filesystem.open_input_file(place.path) as file:
        try:
            return set(pq.read_schema(file).names)
        except pa.ArrowInvalid as error:
            raise InputError(f"{place.uri}: {str(error).splitlines()[0]}") from None


def _is_hex_line(line: str) -> bool:
    """Without hex after it, a line with a message name could be any text."""
    match = _HEX_LINE.fullmatch(line)
    if match is None:
        return False
    if match[3] and _HEX.fullmatch(match[3]):
        return True
    try:
        find(match[1])
    except KafkascopeError:
        return False
    return True


class PlainFrames:
    """The frames of a file, and how many of its bytes have been read."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.read_bytes = 0

    def portions(self) -> Iterator[list[Frame | tuple[int, str]]]:
        """Yields portions of frames with their row numbers; a bad one is its row and what is wrong with it."""
        portion: list[Frame | tuple[int, str]] = []
        for number, row in enumerate(self._rows()):
            try:
                portion.append((number, *frame_of(row)))
            except KafkascopeError as error:
                portion.append((number, str(error)))
            if len(portion) >= _PORTION_ROWS:
                yield portion
                portion = []
        if portion:
            yield portion

    def _rows(self) -> Iterator[dict[str, Any]]:
        place = self._place
        with filesystem_errors(place.uri), place.filesystem.open_input_file(place.path) as file:
            if bytes(file.read(4)) == _PARQUET:
                try:
                    yield from self._parquet_rows(pq.ParquetFile(file), file.size())
                except pa.ArrowInvalid as error:
                    raise InputError(f"{place.uri}: {str(error).splitlines()[0]}") from None
                return
        with filesystem_errors(place.uri), place.filesystem.open_input_stream(place.path) as stream:
            lines = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", errors="replace")
            yield from _text_rows(self._counted(lines))

    def _counted(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            self.read_bytes += len(line)
            yield line

    def _parquet_rows(self, file: pq.ParquetFile, size: int) -> Iterator[dict[str, Any]]:
        """Columns are stored separately: the share of bytes read is the share of rows read."""
        rows = 0
        for batch in file.iter_batches(_PORTION_ROWS):
            rows += len(batch)
            self.read_bytes = size * rows // file.metadata.num_rows
            yield from batch.to_pylist()


def _text_rows(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    content = (line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    first = next(content, "")
    if _is_hex_line(first):
        for line in chain([first], content):
            match = _HEX_LINE.fullmatch(line)
            yield {_MESSAGE: match[1], _VERSION: match[2], "hex": match[3] or ""} if match else {}
    elif first.lstrip().startswith("{"):
        for line in chain([first], content):
            try:
                row = json.loads(line)
            except ValueError:
                row = {}
            yield row if isinstance(row, dict) else {}
    else:
        names = [name.strip().lower() for name in next(csv.reader([first]))]
        for values in csv.reader(content):
            yield dict(zip(names, values, strict=False))


def rows_of_text(text: str) -> list[dict[str, Any]]:
    """Of hex lines or JSON lines."""
    return list(_text_rows(text.splitlines(keepends=True)))


def frame_of(row: dict[str, Any]) -> tuple[str, int, bytes]:
    """Message, version and bytes, or the error that says what's wrong with the row."""
    name = row.get(_MESSAGE)
    if not name and row.get(_API):
        direction = str(row.get(_DIRECTION) or "").lower()
        if direction not in ("request", "response"):
            raise InputError("direction must be request or response")
        name = f"{row[_API]}{direction.capitalize()}"
    if not name:
        raise InputError("message or api is missing")
    message = find(str(name))
    try:
        version = int(row[_VERSION])
    except (KeyError, TypeError, ValueError):
        raise InputError("version isn't a number") from None
    if not read_message(message).releases_of(version):
        raise DecodeError(f"{message} has no version {version}")
    return message, version, _bytes(row)


def _bytes(row: dict[str, Any]) -> bytes:
    column = next((name for name in _BYTES_COLUMNS if row.get(name) is not None), None)
    if column is None:
        raise InputError("the bytes are missing")
    value = row[column]
    if isinstance(value, bytes):
        return value
    text = "".join(str(value).split())
    try:
        if column == "base64" or (column != "hex" and re.fullmatch(r"(?:[0-9a-fA-F]{2})*", text) is None):
            return base64.b64decode(text, validate=True)
        return bytes.fromhex(text)
    except (ValueError, binascii.Error):
        raise InputError("bytes must be hex or base64") from None
