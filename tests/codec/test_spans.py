"""Spans of every layout: in order, without gap or overlap, and each field's bytes alone give back the field's value."""

from random import Random
from struct import unpack
from typing import Any
from uuid import UUID

import pytest

import kafkascope
from kafkascope.codec import walk
from kafkascope.codec.result import Span
from kafkascope.schema.layouts.layout import layout
from tests.support.hexes import hexes
from tests.support.mutations import mutation
from tests.support.pairs import CHUNKS, chunk_of, every_place
from tests.support.values import random_value
from tests.support.variety import same

# Eight boundary themes, unknown tags among them, and random values.
CASES = (1, 2, 3, 4, 5, 8, 9, 10, 11, 12)
CODES = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q", "float64": ">d"}
SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}


def tiles(spans: tuple[Span, ...], size: int) -> bool:
    """Each starts where the one before it ends, the first at 0, the last ends at the end."""
    ends = [0, *(span.end for span in spans)]
    return [span.start for span in spans] == ends[:-1] and ends[-1] == size and all(s.start <= s.end for s in spans)


def reread(span: Span, raw: bytes) -> Any:
    """A reader of its own for a field's bytes."""
    if span.type == "bool":
        return raw != b"\0"
    if span.type == "uuid":
        return UUID(bytes=raw)
    if span.type == "string":
        return raw.decode()
    return unpack(CODES[span.type], raw)[0] if span.type in CODES else raw


def at_path(value: Any, path: str) -> Any:
    for part in path.split("."):
        name, _, indexes = part.partition("[")
        value = value[name]
        if indexes:
            value = value[int(indexes[:-1])]
    return value


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_spans_tile_the_body_and_hold_the_fields_bytes(chunk: int) -> None:
    for name, version, release in chunk_of(every_place(), chunk):
        known = layout(name, version, release)
        for case in CASES:
            where = f"{name} v{version} of {release}, case {case}"
            value = random_value(known, case)
            data = kafkascope.encode(name, version, value, release)
            decoded = kafkascope.decode(name, version, data, release, spans=True)
            assert same(decoded.value, value), where
            assert decoded.exact, where
            assert tiles(decoded.spans, len(data)), where
            for span in decoded.spans:
                raw = data[span.start : span.end]
                if "#" in span.path:
                    continue
                last = span.path.rpartition(".")[2]
                if last.startswith("tag") and last[3:].isdigit():
                    tags = [tag for tag in decoded.unknown_tags if tag.tag == int(last[3:])]
                    assert raw in [tag.data for tag in tags if tag.path == span.path.rpartition(".")[0]], (
                        f"{where}: {span}"
                    )
                    continue
                assert len(raw) == SIZES.get(span.type, len(raw)), f"{where}: {span}"
                assert same(reread(span, raw), at_path(value, span.path)), f"{where}: {span}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_asking_for_spans_changes_nothing_else(chunk: int) -> None:
    """Mutated bytes too: the same value, reasons and unknown tags, or the same error."""
    for name, version, release in chunk_of(every_place(), chunk):
        known = layout(name, version, release)
        for case in (5, 8, 9, 10):
            data = kafkascope.encode(name, version, random_value(known, case), release)
            spans = kafkascope.decode(name, version, data, release, spans=True).spans
            for number in range(8):
                mutated = (
                    mutation(data, spans, Random(f"{name} {version} {release} {case} {number}"))[1] if number else data
                )
                where = f"{name} v{version} of {release}, case {case}, mutation {number}\n{mutated.hex()}"
                with_spans, without = (reading(name, version, mutated, release, spans=s) for s in (True, False))
                if isinstance(with_spans, str) or isinstance(without, str):
                    assert with_spans == without, where
                    continue
                assert same(with_spans.value, without.value), where
                assert with_spans.reasons == without.reasons, where
                assert with_spans.unknown_tags == without.unknown_tags, where
                assert without.spans == (), where
                assert tiles(with_spans.spans, len(mutated)), where


def reading(name: str, version: int, data: bytes, release: str | None, *, spans: bool) -> kafkascope.Decoded | str:
    try:
        return kafkascope.decode(name, version, data, release, spans=spans)
    except kafkascope.DecodeError as error:
        return str(error)


def test_spans_name_counts_lengths_tags_and_trailing_bytes() -> None:
    data = hexes("""
        02                                # topics: 1
          02 61                           #   name "a"
          00                              #   no tags
        000007d0                          # response_partition_limit 2000
        01                                # cursor: present
          02 62                           #   topic_name "b"
          00000003                        #   partition_index 3
          00                              #   no tags
        01 05 02 abcd                     # one tag: 5, of 2 bytes
        ff                                # trailing
    """)
    decoded = kafkascope.decode("DescribeTopicPartitionsRequest", 0, data, spans=True)
    assert [(span.path, span.start, span.end, span.type) for span in decoded.spans] == [
        ("topics#count", 0, 1, "uvarint"),
        ("topics[0].name#length", 1, 2, "uvarint"),
        ("topics[0].name", 2, 3, "string"),
        ("topics[0]#tags", 3, 4, "uvarint"),
        ("responsePartitionLimit", 4, 8, "int32"),
        ("cursor#present", 8, 9, "int8"),
        ("cursor.topicName#length", 9, 10, "uvarint"),
        ("cursor.topicName", 10, 11, "string"),
        ("cursor.partitionIndex", 11, 15, "int32"),
        ("cursor#tags", 15, 16, "uvarint"),
        ("#tags", 16, 17, "uvarint"),
        ("#tag", 17, 18, "uvarint"),
        ("tag5#size", 18, 19, "uvarint"),
        ("tag5", 19, 21, "bytes"),
        ("#trailing", 21, 22, "bytes"),
    ]


def test_more_spans_than_the_limit_is_a_decode_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MAX_SPANS", 10)
    data = kafkascope.encode("DeleteGroupsRequest", 2, {"groupsNames": ["g"] * 20})
    with pytest.raises(kafkascope.DecodeError, match="more than 10 spans; decode without them"):
        kafkascope.decode("DeleteGroupsRequest", 2, data, spans=True)
    assert kafkascope.decode("DeleteGroupsRequest", 2, data).exact
