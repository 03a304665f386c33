"""Tags that the catalog does not know, in columns: each has its path, number and size, wherever it stands."""

from typing import Any

import pyarrow as pa
import pytest

from kafkascope.codec.message import encode
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.columnar import buffers as buffers_module
from kafkascope.columnar.decode import decode_columns
from tests.support.hexes import hexes


def unknown(name: str, version: int, frames: list[bytes]) -> list[Any]:
    table = decode_columns(name, version, pa.array(frames, type=pa.binary()))
    table.validate(full=True)
    assert table["_error"].null_count == len(frames)
    tags: list[Any] = table["_unknown_tags"].to_pylist()
    return tags


def tag(path: str, number: int, size: int) -> dict[str, Any]:
    return {"path": path, "tag": number, "size": size}


def test_a_tag_in_an_element_has_the_elements_path() -> None:
    frame = hexes("""
        03                                     # two topics
        00000000000000000000000000000000       # topicId
        02 61                                  # name "a"
        00                                     # no tags
        00000000000000000000000000000000       # topicId
        02 62                                  # name "b"
        02 05 01 ff 8001 00                    # two tags: 5 with a byte, 128 with none
        01                                     # allowAutoTopicCreation
        00                                     # includeTopicAuthorizedOperations
        01 07 02 0102                          # tag 7 with two bytes
    """)
    plain = encode("MetadataRequest", 12, {"topics": []})
    tags = [tag("topics[1]", 5, 1), tag("topics[1]", 128, 0), tag("", 7, 2)]
    assert unknown("MetadataRequest", 12, [plain, frame, plain, frame, frame]) == [None, tags, None, tags, tags]


def offsets_answer(topics: int, partitions: int) -> dict[str, Any]:
    """A tag in each partition of which the number ends in 7, and in each third topic."""

    def partition(number: int) -> dict[str, Any]:
        more = {UNKNOWN_TAGS: [{"tag": 9, "data": bytes(number % 5)}]} if number % 10 == 7 else {}
        return {"partitionIndex": number, **more}

    def topic(number: int) -> dict[str, Any]:
        more = {UNKNOWN_TAGS: [{"tag": 300, "data": b"abc"}]} if number % 3 == 2 else {}
        return {"name": f"t{number}", "partitions": [partition(index) for index in range(partitions)], **more}

    return {"topics": [topic(number) for number in range(topics)]}


def wanted_tags(topics: int, partitions: int) -> list[Any]:
    tags = []
    for topic in range(topics):
        within = [number for number in range(partitions) if number % 10 == 7]
        tags += [tag(f"topics[{topic}].partitions[{number}]", 9, number % 5) for number in within]
        if topic % 3 == 2:
            tags.append(tag(f"topics[{topic}]", 300, 3))
    return tags


@pytest.mark.parametrize("small", [True, False])
def test_paths_count_through_arrays_in_small_tables_and_large(small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not small:
        for name in ("SMALL_BYTES", "FIRST_BYTES"):
            monkeypatch.setattr(buffers_module, name, 1)
    shapes = [(1, 8), (12, 1_030), (0, 0), (3, 6)]
    frames = [encode("ListOffsetsResponse", 7, offsets_answer(*shape)) for shape in shapes]
    assert unknown("ListOffsetsResponse", 7, frames) == [wanted_tags(*shape) or None for shape in shapes]


def test_tags_of_a_frame_that_does_not_decode_are_not_those_of_its_neighbours() -> None:
    good = encode("ListOffsetsResponse", 7, offsets_answer(3, 9))
    table = decode_columns("ListOffsetsResponse", 7, pa.array([good[:-1], good, good[:-2]], type=pa.binary()))
    assert table["_unknown_tags"].to_pylist() == [None, wanted_tags(3, 9), None]


def test_tags_within_known_tags_come_in_the_codecs_order() -> None:
    """The struct of tag 1 is read after tag 0, and yet named before it."""
    replica = {"replicaId": 3, "replicaEpoch": 4, UNKNOWN_TAGS: [{"tag": 5, "data": b"ab"}]}
    value = {"replicaState": replica, UNKNOWN_TAGS: [{"tag": 9, "data": b""}]}
    tags = unknown("FetchRequest", 15, [encode("FetchRequest", 15, value)])
    assert tags == [[tag("replicaState", 5, 2), tag("", 9, 0)]]
