"""A file of plain frames in, rows of the messages' tables out; what does not decode goes to quarantine with its row."""

from collections.abc import Callable
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.columnar.decode import ERROR, decode_columns
from kafkascope.lake.place import Place
from kafkascope.lake.shape import to_lake
from kafkascope.lake.tables import KEYS, QUARANTINE, body_table, table_named
from kafkascope.lake.write.files import Files
from kafkascope.pipeline.ingestion.frames_input import Frame, PlainFrames
from kafkascope.pipeline.ingestion.pseudonyms import Pseudonyms

# Row, message, version, what is wrong.
Odd = tuple[int, str | None, int | None, str]


def read_plain_frames(
    place: Place, files: Files, contents: bool, pseudonyms: Pseudonyms | None, hear: Callable[[int, int, int], None],
    skip: int = 0,
) -> tuple[int, int]:  # fmt: skip
    """(frames, those of them in quarantine); `hear` gets bytes, frames and exchanges so far. The first `skip` frames
    are counted, and were read by an earlier ingest."""
    frames = odd = 0
    found = PlainFrames(place)
    for some in found.portions():
        groups: dict[tuple[str, int], list[Frame]] = {}
        for one in some:
            frames += 1
            if one[0] < skip:
                continue
            if len(one) == 4:
                groups.setdefault((one[1], one[2]), []).append(one)
            else:
                odd += _quarantine(files, place, [(one[0], None, None, one[1])])
        for (name, version), alike in groups.items():
            odd += _decode(files, place, name, version, alike, contents, pseudonyms)
        hear(found.read_bytes, frames, 0)
    return frames, odd


def _decode(
    files: Files, place: Place, name: str, version: int, frames: list[Frame], contents: bool,
    pseudonyms: Pseudonyms | None,
) -> int:  # fmt: skip
    table = decode_columns(name, version, pa.array([one[3] for one in frames], pa.large_binary()), contents=contents)
    said = table.column(ERROR).to_pylist()
    rows = [one[0] for one in frames]
    bad: list[Odd] = [(row, name, version, why) for row, why in zip(rows, said, strict=True) if why is not None]
    good = pc.is_null(table.column(ERROR))
    table = to_lake(table.filter(good).drop_columns([ERROR]))
    kept = [row for row, why in zip(rows, said, strict=True) if why is None]
    ids = pa.array([_identity(place.uri, row) for row in kept], pa.string())
    keys = [
        ids
        if field.name == "exchange_id"
        else pa.array([version] * len(kept), pa.int16())
        if field.name == "api_version"
        else pa.nulls(len(kept), field.type)
        for field in KEYS
    ]
    whole = pa.table([*keys, *table.columns], names=[*KEYS.names, *table.column_names])
    body = body_table(name, contents=contents)
    files.add(body, pseudonyms.table(whole, body.name) if pseudonyms else whole)
    return _quarantine(files, place, bad)


def _identity(uri: str, row: int) -> str:
    """A frame in a file has no exchange: it is known by its place."""
    return blake2b(f"{uri}#{row}".encode(), digest_size=12).hexdigest()


def _quarantine(files: Files, place: Place, bad: list[Odd]) -> int:
    rows = [
        {
            "capture_uri": place.uri,
            "packet": row,
            "exchange_id": _identity(place.uri, row),
            "kind": "undecoded",
            "message": name,
            "api_version": version,
            "detail": why,
        }
        for row, name, version, why in bad
    ]
    files.add(table_named("quarantine"), pa.Table.from_pylist(rows, schema=QUARANTINE))
    return len(rows)
