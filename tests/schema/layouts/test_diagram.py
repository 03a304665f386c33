"""The wire diagram: rows in the order of the bytes, each at the offset where the codec finds it."""

import re

import pytest

from kafkascope.codec.message import decode, encode
from kafkascope.schema.layouts.diagram import DiagramRow, diagram, fixed_end
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import FIXED_SIZES, LayoutField, layout
from tests.support.pairs import CHUNKS, chunk_of, every_place


def rows(name: str, version: int) -> dict[str, DiagramRow]:
    """By path; tag sections go by their parent's path with `#tags`."""
    return {".".join(row.path) + ("#tags" if row.kind == "tags" else ""): row for row in diagram(layout(name, version))}


def test_the_client_id_of_request_header_v2_is_classic() -> None:
    header = rows("RequestHeader", 2)
    assert header["ClientId"].encoding == "string: int16 length, null is -1, UTF-8"
    assert (header["ClientId"].offset, header["ClientId"].floating) == (8, False)
    assert (header["#tags"].offset, header["#tags"].floating) == (10, True)
    assert fixed_end(layout("RequestHeader", 2)) == (11, True)


def test_a_response_header_ends_where_its_version_says() -> None:
    assert fixed_end(layout("ResponseHeader", 0)) == (4, False)
    assert fixed_end(layout("ResponseHeader", 1))[0] == 5


def test_containers_stand_with_their_counts_before_what_they_hold() -> None:
    keys = list(rows("ShareFetchRequest", 2))
    assert keys.index("Topics") < keys.index("Topics.TopicId") < keys.index("Topics#tags")
    assert rows("ShareFetchRequest", 2)["Topics"].encoding == "compact array of FetchTopic: uvarint count+1"
    assert rows("ApiVersionsResponse", 0)["ApiKeys"].encoding == "array of ApiVersion: int32 count"


def test_nested_structs_stand_under_their_parents() -> None:
    diagram_rows = rows("StreamsGroupHeartbeatResponse", 0)
    for parent in ("ActiveTasks", "StandbyTasks", "WarmupTasks"):
        assert diagram_rows[f"{parent}.SubtopologyId"].depth == diagram_rows[parent].depth + 1
        assert f"{parent}#tags" in diagram_rows


def test_every_struct_of_a_flexible_version_has_a_tag_section_and_a_classic_one_has_none() -> None:
    diagram_rows = rows("FetchRequest", 17)
    assert [key for key in diagram_rows if key.endswith("#tags")] == [
        "Topics.Partitions#tags", "Topics#tags", "ForgottenTopicsData#tags", "#tags", "ReplicaState#tags"
    ]  # fmt: skip
    assert not any(row.kind == "tags" for row in diagram(layout("FetchRequest", 11)))


def test_tagged_fields_stand_in_the_tag_section_by_their_number() -> None:
    diagram_rows = rows("FetchRequest", 17)
    keys = list(diagram_rows)
    # the definition has ClusterId and ReplicaState in front
    assert keys[keys.index("#tags") :] == [
        "#tags", "ClusterId", "ReplicaState", "ReplicaState.ReplicaId", "ReplicaState.ReplicaEpoch", "ReplicaState#tags"
    ]  # fmt: skip
    assert diagram_rows["ClusterId"].kind == "tag"
    assert diagram_rows["ClusterId"].encoding.startswith("tag 0: compact string")
    assert diagram_rows["ReplicaState"].encoding == "tag 1: struct ReplicaState"


def test_null_is_told_the_way_each_encoding_tells_it() -> None:
    assert rows("MetadataRequest", 1)["Topics"].encoding.endswith("int32 count, null is -1")
    assert rows("MetadataRequest", 9)["Topics"].encoding.endswith("uvarint count+1, null is 0")
    cursor = rows("DescribeTopicPartitionsRequest", 0)["Cursor"]
    assert cursor.encoding == "nullable struct Cursor: int8 -1 (null) or 1 before it"


def test_offsets_go_on_from_where_the_part_starts() -> None:
    body = diagram(layout("HeartbeatRequest", 0), 14, True)
    assert [(row.offset, row.floating) for row in body] == [(14, True), (16, True), (20, True)]


def test_a_message_without_fields_has_only_its_tag_section() -> None:
    assert [row.kind for row in diagram(layout("ListGroupsRequest", 3))] == ["tags"]
    assert diagram(layout("ListGroupsRequest", 0)) == []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_row_is_where_the_codec_finds_it(chunk: int) -> None:
    """For every layout: an exact offset is the span's own, a floating one is never beyond it, a size is never wrong."""
    wrong = []
    for name, version, release in chunk_of(every_place(), chunk):
        known = layout(name, version, release)
        data = encode(name, version, example(name, version, release), release)
        starts: dict[str, tuple[int, int]] = {}
        for span in decode(name, version, data, release, spans=True).spans:
            # the first element of each array; a field begins with its count, length or presence byte
            place = re.sub(r"\[\d+\]|#(?!tags).*", "", span.path)
            first = starts.get(place)
            starts[place] = (first[0], max(first[1], span.end)) if first else (span.start, span.end)
        for row in diagram(known):
            place = _json_path(known.fields, row.path) + ("#tags" if row.kind == "tags" else "")
            span_start = starts.get(place, (None, 0))[0]
            if span_start is None or row.kind == "struct":
                continue  # an empty array, an absent tag, a struct that has no bytes of its own
            if span_start < row.offset or (not row.floating and span_start != row.offset):
                wrong.append((name, version, release, place, row.offset, span_start))
            if row.field and row.field.type in FIXED_SIZES and not row.field.array:
                assert row.size == str(FIXED_SIZES[row.field.type])
    assert wrong == []


def _json_path(fields: tuple[LayoutField, ...], path: tuple[str, ...]) -> str:
    names = []
    for part in path:
        field = next(f for f in fields if f.kafka_name == part)
        names.append(field.name)
        fields = field.fields
    return ".".join(names)
