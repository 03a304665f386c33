"""What goes into `decode_columns` and what comes out: any binary array, one row a frame, errors in their places."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from kafkascope.codec.message import encode
from kafkascope.columnar import buffers as buffers_module
from kafkascope.columnar import decode as decode_module
from kafkascope.columnar.decode import decode_columns, full_schema
from kafkascope.errors import NotFoundError, UsageError
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import layout
from tests.support.hexes import hexes
from tests.support.pairs import every_pair
from tests.support.values import random_value

NAME, VERSION = "ShareFetchRequest", 2


def frames_of(count: int) -> list[bytes]:
    known = layout(NAME, VERSION)
    return [encode(NAME, VERSION, random_value(known, 9 + case)) for case in range(count)]


def columns(frames: Any) -> pa.Table:
    table = decode_columns(NAME, VERSION, frames)
    table.validate(full=True)
    return table


def wide(frames: list[bytes]) -> pa.Array:
    return pa.array(frames, type=pa.large_binary())


def chunked(frames: list[bytes]) -> pa.ChunkedArray:
    return pa.chunked_array([frames[:7], [], frames[7:8], frames[8:]], type=pa.binary())


def sliced(frames: list[bytes]) -> pa.Array:
    return pa.array([b"\xff" * 99, *frames, b"\xff" * 99], type=pa.binary()).slice(1, len(frames))


@pytest.mark.parametrize("form", [wide, chunked, sliced])
def test_every_form_of_a_binary_array_gives_the_same_rows(form: Callable[[list[bytes]], Any]) -> None:
    frames = frames_of(40)
    assert columns(form(frames)).to_pylist() == columns(pa.array(frames, type=pa.binary())).to_pylist()


def test_portions_and_growing_buffers_change_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = pa.array(frames_of(300), type=pa.binary())
    expected = columns(frames).to_pylist()
    for name in ("SMALL_BYTES", "FIRST_BYTES", "RECORDS_BYTES"):
        monkeypatch.setattr(buffers_module, name, 1)
    assert columns(frames).to_pylist() == expected
    monkeypatch.setattr(decode_module, "_PORTION_BYTES", 500)
    table = columns(frames)
    assert table.to_pylist() == expected
    assert table.column(0).num_chunks > 10


@pytest.mark.parametrize("frames", [pa.array([], type=pa.binary()), pa.chunked_array([], type=pa.binary())])
def test_no_frames_make_an_empty_table(frames: Any) -> None:
    table = columns(frames)
    assert (table.num_rows, table.schema) == (0, full_schema(NAME))


def test_messages_without_fields_have_a_row_a_frame() -> None:
    """ListGroupsRequest v0 takes no bytes, and a byte is one too many; v3 ends in an empty tag section."""
    frames = pa.array([b"", b"", b"\x00"], type=pa.binary())
    assert [row["_error"] for row in decode_columns("ListGroupsRequest", 0, frames).to_pylist()] == [None] * 3
    # the careful codec takes what lies behind a message, as Java does, and refuses one that is not there
    rows = decode_columns("ListGroupsRequest", 3, frames).to_pylist()
    assert [row["_error"] is None for row in rows] == [False, False, True]


def test_a_frame_that_does_not_decode_costs_its_own_row_and_says_where() -> None:
    good = hexes("""
        04 616161            # clientSoftwareName "aaa"
        02 31                # clientSoftwareVersion "1"
        00                   # no tags
    """)
    bad = hexes("""
        04 616161            # clientSoftwareName "aaa"
        7f 31                # clientSoftwareVersion of 126 bytes, of which one is there
    """)
    rows = decode_columns("ApiVersionsRequest", 3, pa.array([good, bad, good], type=pa.binary())).to_pylist()
    assert [row["client_software_name"] for row in rows] == ["aaa", None, "aaa"]
    error = "ApiVersionsRequest v3, clientSoftwareVersion: string needs 126 bytes, 1 left (offset 5)"
    assert [row["_error"] for row in rows] == [None, error, None]


def test_frames_that_are_all_bad_are_all_errors() -> None:
    table = columns(pa.array([b"\xff", b""] * 3, type=pa.binary()))
    assert table["_error"].null_count == 0
    assert table["group_id"].null_count == 6


def test_unknown_tags_keep_path_number_and_size_but_not_their_bytes() -> None:
    frame = hexes("""
        04 616161 02 31      # names
        01 07 06 736563726574  # tag 7 with six bytes
    """)
    row = decode_columns("ApiVersionsRequest", 3, pa.array([frame], type=pa.binary())).to_pylist()[0]
    assert row["client_software_name"] == "aaa"
    assert row["_unknown_tags"] == [{"path": "", "tag": 7, "size": 6}]


def test_nulls_other_types_and_impossible_offsets_are_refused() -> None:
    with pytest.raises(UsageError, match="2 nulls"):
        columns(pa.array([b"", None, None], type=pa.binary()))
    with pytest.raises(UsageError, match="frames are string; expected an array of binary"):
        columns(pa.array(["text"]))
    for ends in ([0, 9, 3], [0, 99, 5], [0, -3, 5]):
        offsets = pa.py_buffer(np.array(ends, dtype=np.int32))
        with pytest.raises(UsageError, match="offsets"):
            columns(pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(bytes(12))]))


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        (frames_of(2), r"frames are list; expected an array of binary or large_binary: pa.array\(…, pa.binary\(\)\)"),
        (b"frame", "frames are bytes; expected an array"),
        (np.array(frames_of(2), dtype=object), "frames are ndarray; expected an array"),
        (None, "frames are NoneType; expected an array"),
        (pa.scalar(b"x"), "frames are BinaryScalar; expected an array"),
        (pa.nulls(3), "frames are null; expected an array"),
        (pa.chunked_array([], pa.string()), "frames are string; expected an array"),
        (pa.array([b"abcd"], pa.binary(4)), r"frames are fixed_size_binary\[4\]; expected an array"),
    ],
    ids=["list", "bytes", "numpy", "None", "scalar", "null", "chunked", "fixed size"],
)
@pytest.mark.parametrize("contents", [False, True])
def test_what_is_no_array_of_binary_is_refused(frames: Any, reason: str, contents: bool) -> None:
    with pytest.raises(UsageError, match=reason):
        decode_columns(NAME, VERSION, frames, contents=contents)


@pytest.mark.parametrize(
    ("name", "version", "release", "reason"),
    [
        (NAME, str(VERSION), None, "a version must be an int, not str"),
        (NAME, None, None, "a version must be an int, not NoneType"),
        (NAME, float(VERSION), None, "a version must be an int, not float"),
        (NAME, True, None, "a version must be an int, not bool"),
        (None, VERSION, None, "the name of a message must be a str, not NoneType"),
        (b"x", VERSION, None, "the name of a message must be a str, not bytes"),
        (NAME, VERSION, 4.3, "a release must be a str, not float"),
    ],
)
def test_names_and_versions_of_other_types_are_refused(name: Any, version: Any, release: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        decode_columns(name, version, pa.array([], type=pa.binary()), release)


def test_a_version_may_be_a_number_of_numpy() -> None:
    frames = pa.array(frames_of(2), type=pa.binary())
    assert decode_columns(NAME, np.int64(VERSION), frames).equals(columns(frames))  # type: ignore[arg-type]


def test_what_is_not_in_the_catalog_is_named() -> None:
    with pytest.raises(NotFoundError, match="ShareFetchRequest"):
        decode_columns("ShareFetchRequst", 2, pa.array([], type=pa.binary()))
    with pytest.raises(UsageError, match="no version 99"):
        decode_columns(NAME, 99, pa.array([], type=pa.binary()))


def test_versions_of_a_message_have_one_schema_and_stand_in_one_table() -> None:
    tables: dict[str, list[pa.Table]] = {}
    for name, version in every_pair():
        frame = encode(name, version, random_value(layout(name, version), 10))
        tables.setdefault(name, []).append(decode_columns(name, version, pa.array([frame], type=pa.binary())))
    for name, versions in tables.items():
        together = pa.concat_tables(versions)
        together.validate(full=True)
        assert (together.num_rows, together.schema) == (len(message(name).all_versions()), full_schema(name))


def test_earlier_names_of_a_message_and_layouts_of_a_release_are_known() -> None:
    frame = encode("LeaderChangeMessage", 0, {}, "2.7")
    table = decode_columns("LeaderChangeMessage", 0, pa.array([frame], type=pa.binary()), "2.7")
    assert table["_error"].to_pylist() == [None]
    assert table.schema == full_schema("LeaderChangeMessage")
    assert decode_columns("AlterIsrRequest", 0, pa.array([], type=pa.binary())).schema == full_schema(
        "AlterPartitionRequest"
    )


def test_a_result_holds_no_more_memory_than_its_rows() -> None:
    """One long list makes the kernel ask for room that the other frames do not need."""
    partitions = [{"partitionIndex": number} for number in range(50_000)]
    value = {"topics": [{"topicId": UUID(int=7), "partitions": partitions}]}
    frames = pa.array([encode(NAME, VERSION, value), *frames_of(2_000)], type=pa.binary())
    before = pa.total_allocated_bytes()
    table = columns(frames)
    assert pa.total_allocated_bytes() - before < 3 * table.nbytes


def test_memory_does_not_grow_with_the_number_of_calls() -> None:
    frames = pa.array(frames_of(2_000), type=pa.binary())
    columns(frames)
    before = pa.total_allocated_bytes()
    for _ in range(20):
        columns(frames)
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("missing", ["numba", "pyarrow"])
def test_a_missing_extra_says_how_to_install_it(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import kafkascope.columnar"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert (
        last == f"kafkascope.errors.UsageError: kafkascope.columnar needs {missing}: pip install 'kafkascope[columns]'"
    )
