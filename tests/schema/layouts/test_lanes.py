"""Lanes: every position that a diagram claims is where the bytes of real messages lie."""

import re

import pytest

from kafkascope.codec.message import decode, encode
from kafkascope.codec.result import Span
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.lanes import Lane, LaneCell, Position, cells, end, lanes
from kafkascope.schema.layouts.layout import Layout, camel_case, layout
from kafkascope.schema.layouts.samples import sample
from tests.support.pairs import CHUNKS, chunk_of, every_place

FRAME = Position("frame", (), 0)


def spans_of(known: Layout, value: dict[str, object]) -> tuple[Span, ...]:
    name, version, release = known.message.name, known.version, known.release
    return decode(name, version, encode(name, version, value, release), release, spans=True).spans


def bare(path: str) -> str:
    return re.sub(r"\[\d+\]", "", path)


def instance(names: tuple[str, ...], like: str) -> str:
    """The path of these names, with the indices that `like` has where both go the same way."""
    parts = like.partition("#")[0].split(".") if like.partition("#")[0] else []
    made: list[str] = []
    for at, name in enumerate(names):
        same = at < len(parts) and bare(parts[at]) == camel_case(name) and made == parts[:at]
        made.append(parts[at] if same else camel_case(name))
    return ".".join(made)


def inside(span: Span, path: str) -> bool:
    return span.path == path or (span.path.startswith(path) and span.path[len(path)] in ".[#")


def expected_start(cell: LaneCell, like: str, spans: tuple[Span, ...]) -> int:
    at = cell.position
    if at.base == "frame":
        return at.offset
    if at.base == "after":
        # what is at the path as a whole: an array without the index of this place
        whole = instance(at.path[:-1], like)
        last = f"{whole}.{camel_case(at.path[-1])}" if whole else camel_case(at.path[-1])
        return max(span.end for span in spans if inside(span, last)) + at.offset
    path = instance(at.path, like)
    if at.base == "element":
        return min(span.start for span in spans if inside(span, path)) + at.offset
    return next(span.end for span in spans if span.path == f"{path}#size") + at.offset


def check(known: Layout, value: dict[str, object]) -> int:
    spans = spans_of(known, value)
    seen = 0
    for cell in cells(lanes(known, FRAME)):
        key = ".".join(camel_case(name) for name in cell.path)
        keys_by_kind = {"count": (f"{key}#count",), "present": (f"{key}#present",), "tags": (f"{key}#tags",), "tag": ()}
        for span in spans:
            if bare(span.path) in keys_by_kind.get(cell.kind, (f"{key}#length",)) or (
                cell.kind == "field" and cell.size.isdigit() and bare(span.path) == key
            ):
                assert span.start == expected_start(cell, span.path, spans), (known.title, known.release, cell, span)
                seen += 1
    return seen


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_position_is_where_the_bytes_lie(chunk: int) -> None:
    seen = 0
    for name, version, release in chunk_of(every_place(), chunk):
        known = layout(name, version, release)
        seen += check(known, example(name, version, release))
        seen += check(known, sample(known, 7))
    assert seen > 1000


def test_cells_are_the_fields_of_the_layout_and_a_tag_section_each_struct() -> None:
    known = layout("ShareFetchRequest", 2)
    named = [".".join(cell.path) for cell in cells(lanes(known, FRAME)) if cell.kind != "tags"]
    assert named[:2] == ["GroupId", "MemberId"]
    assert "Topics.Partitions.AcknowledgementBatches.AcknowledgeTypes" in named
    sections = [cell.path for cell in cells(lanes(known, FRAME)) if cell.kind == "tags"]
    assert sections == [
        ("Topics", "Partitions", "AcknowledgementBatches"),
        ("Topics", "Partitions"),
        ("Topics",),
        ("ForgottenTopicsData",),
        (),
    ]


def test_tagged_fields_stand_in_their_section_and_nowhere_else() -> None:
    whole = lanes(layout("FetchResponse", 17), FRAME)

    def lanes_in(lane: Lane) -> list[Lane]:
        inner = [item for item in lane.items if isinstance(item, Lane)]
        return [lane, *(lane_inside for item in inner for lane_inside in lanes_in(item))]

    sections = [lane for lane in lanes_in(whole) if lane.repeats == "tags"]
    tagged = [cell for lane in sections for cell in lane.items if isinstance(cell, LaneCell)]
    assert {cell.path[-1] for cell in tagged} >= {"NodeEndpoints", "DivergingEpoch", "CurrentLeader", "SnapshotId"}
    assert all(cell.kind == "tag" for cell in tagged)
    assert sum(cell.kind == "tag" for cell in cells(whole)) == len(tagged)


def test_positions_read_as_words() -> None:
    assert str(Position("frame", (), 12)) == "12"
    assert str(Position("body", (), 4)) == "body + 4"
    assert str(Position("after", ("Topics", "Name"), 0)) == "after Name"
    assert str(Position("after", ("GroupId",), 4)) == "after GroupId + 4"


def test_a_header_with_a_client_id_has_no_fixed_end() -> None:
    start = Position("frame", (), 4)
    assert end(layout("RequestHeader", 2), start) is None
    assert end(layout("ResponseHeader", 0), start) == Position("frame", (), 8)
