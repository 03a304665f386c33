"""Decodes a file of plain frames into the messages' tables; frames that don't decode go to quarantine with their
row."""

from collections.abc import Callable
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.columnar.decode import ERROR, decode_columns
from kafkascope.lake.place import Place
from kafkascope.lake.shape import to_lake
from kafkascope.lake.tables import KEYS, QUARANTINE, body_table, table_named
from kafkascope.lake.write.files import Files
from kafkascope.pipeline.ingestion.plain_frames import Frame, PlainFrames
from kafkascope.pipeline.ingestion.pseudonyms import Pseudonyms

# Row, message, version, problem.
_BadFrame = tuple[int, str | None, int | None, str]


def read_plain_frames(
    place: Place, files: Files, contents: bool, pseudonyms: Pseudonyms | None, report: Callable[[int, int, int], None],
    skip: int = 0,
) -> tuple[int, int]:  # fmt: skip
    """Returns the number of frames, and of those in quarantine; `report` gets bytes, frames and exchanges so far. The
    first `skip` frames, which an earlier ingest has read, are only counted."""
    frames = bad = 0
    reader = PlainFrames(place)
    for portion in reader.portions():
        groups: dict[tuple[str, int], list[Frame]] = {}
        for frame in portion:
            frames += 1
            if frame[0] < skip:
                continue
            if len(frame) == 4:
                groups.setdefault((frame[1], frame[2]), []).append(frame)
            else:
                bad += quarantine_frames(files, place.uri, [(frame[0], None, None, frame[1])])
        for (name, version), group in groups.items():
            bad += decode_frames(files, place.uri, name, version, group, contents, pseudonyms)
        report(reader.read_bytes, frames, 0)
    return frames, bad


def decode_frames(
    files: Files, uri: str, name: str, version: int, frames: list[Frame], contents: bool,
    pseudonyms: Pseudonyms | None,
) -> int:  # fmt: skip
    """Frames of one message and version, which are rows of `uri`; returns how many went to quarantine."""
    table = decode_columns(
        name, version, pa.array([frame[3] for frame in frames], pa.large_binary()), contents=contents
    )
    errors = table.column(ERROR).to_pylist()
    rows = [frame[0] for frame in frames]
    bad: list[_BadFrame] = [
        (row, name, version, error) for row, error in zip(rows, errors, strict=True) if error is not None
    ]
    good = pc.is_null(table.column(ERROR))
    table = to_lake(table.filter(good).drop_columns([ERROR]))
    decoded_rows = [row for row, error in zip(rows, errors, strict=True) if error is None]
    ids = pa.array([_frame_id(uri, row) for row in decoded_rows], pa.string())
    keys = [
        ids
        if field.name == "exchange_id"
        else pa.array([version] * len(decoded_rows), pa.int16())
        if field.name == "api_version"
        else pa.nulls(len(decoded_rows), field.type)
        for field in KEYS
    ]
    whole = pa.table([*keys, *table.columns], names=[*KEYS.names, *table.column_names])
    body = body_table(name, contents=contents)
    files.add(body, pseudonyms.table(whole, body.name) if pseudonyms else whole)
    return quarantine_frames(files, uri, bad)


def _frame_id(uri: str, row: int) -> str:
    """A frame in a file has no exchange: its place identifies it."""
    return blake2b(f"{uri}#{row}".encode(), digest_size=12).hexdigest()


def quarantine_frames(files: Files, uri: str, bad: list[_BadFrame]) -> int:
    rows = [
        {
            "capture_uri": uri,
            "packet": row,
            "exchange_id": _frame_id(uri, row),
            "kind": "undecoded",
            "message": name,
            "api_version": version,
            "detail": why,
        }
        for row, name, version, why in bad
    ]
    files.add(table_named("quarantine"), pa.Table.from_pylist(rows, schema=QUARANTINE))
    return len(rows)
