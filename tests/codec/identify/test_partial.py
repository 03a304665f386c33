"""Bytes that end too soon: what was read up to there is what the whole message says of them."""

from typing import Any

import pytest

from kafkascope.codec.annotations.frame import annotated_frame
from kafkascope.codec.frame import encode_frame
from kafkascope.codec.identify.partial import read_partly
from kafkascope.codec.message import decode, encode
from kafkascope.schema.catalog import index
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import sample
from tests.support.hexes import hexes
from tests.support.pairs import CHUNKS, chunk_of, every_pair

BARE = [(name, version) for name, version in every_pair() if index()[name].kind not in ("request", "response")]


def agrees(part: Any, whole: Any) -> bool:
    """Whether everything that was read is in the whole: fields may lack, and the last of a list may."""
    if isinstance(part, dict):
        return all(agrees(item, whole[name]) for name, item in part.items())
    if isinstance(part, list):
        return len(part) <= len(whole) and all(agrees(*pair) for pair in zip(part, whole, strict=False))
    return bool(part == whole or part != part)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_message_cut_anywhere_is_read_up_to_the_cut(chunk: int) -> None:
    for name, version in chunk_of(BARE, chunk):
        value = example(name, version)
        data = encode(name, version, value)
        whole = [item for item in decode(name, version, data, spans=True).spans if item.end > item.start]
        for cut in {len(data) - 1, len(data) // 2, len(data) // 3} - {-1}:
            part = read_partly(data[:cut], (name, version), None)
            spans = [(item.start, item.end, item.path) for item in part.annotations if item.end > item.start]
            assert spans == [(item.start, item.end, item.path) for item in whole][: len(spans)]
            assert part.why
            assert part.stopped <= cut
            assert agrees(part.value, value)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_message_that_is_whole_has_the_value_that_decoding_gives(chunk: int) -> None:
    for name, version in chunk_of(BARE, chunk):
        data = encode(name, version, sample(layout(name, version), 9))
        part = read_partly(data, (name, version), None)
        assert part.why == ""
        assert part.stopped == len(data)
        # What a tag holds by default has no bytes to be read from.
        assert agrees(part.value, decode(name, version, data).value)


@pytest.mark.parametrize("cut", range(14, 157, 3))
def test_a_request_that_is_cut_off_tells_its_header_and_the_fields_before_the_cut(cut: int) -> None:
    name, version = "ShareFetchRequest", 2
    value = example(name, version)
    data, rows = annotated_frame(layout(name, version), value)
    part = read_partly(data[:cut], None, None)
    read = [(item.start, item.end, item.label) for item in part.annotations if item.label != "message_size"]
    assert read == [(item.start, item.end, item.label) for item in rows if item.label != "message_size"][: len(read)]
    assert part.stopped == (read[-1][1] if read else 4)
    assert agrees(part.value, value)


@pytest.mark.parametrize("length", [True, False])
def test_a_response_is_read_with_and_without_length(length: bool) -> None:
    name, version = "DescribeQuorumResponse", 1
    # A small correlation id could be the length of the first of several frames.
    frame = encode_frame(name, version, example(name, version), {"correlationId": 40}, length=length)
    part = read_partly(frame[:-9], (name, version), None)
    assert part.header["correlationId"] == 40
    assert part.value["topics"][0]["topicName"] == "__cluster_metadata"
    assert "observers" in part.why


def test_unknown_tags_before_the_cut_are_kept() -> None:
    data = hexes("""
        02 61                # client software name "a"
        02 31                # version "1"
        02                   # two tags
        07 02 beef           # tag 7
        08 05 00             # tag 8 says five bytes, one is here
    """)
    part = read_partly(data, ("ApiVersionsRequest", 3), None)
    assert part.value["_unknownTaggedFields"] == [{"tag": 7, "data": b"\xbe\xef"}]
    assert "tag 8" in part.why


@pytest.mark.parametrize("raw", ["", "00", "0099 0000 0000 0001", "000c 0063 0000 0001", "ffff ffff"])
def test_what_is_no_request_at_all_stops_at_its_start(raw: str) -> None:
    part = read_partly(hexes(raw), None, None)
    assert part.name is None
    assert "isn't in the catalog" in part.why
