"""The decoder in C and the generated encoder against the careful ones, which are the specification: on long arrays, on
broken bytes, and on values of the wrong type."""

from copy import deepcopy
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kafkascope.codec import message as message_module
from kafkascope.codec.fast import engine
from kafkascope.codec.fast.engine import fast_decoder, is_native
from kafkascope.codec.fast.fast_encode import compile_encoder
from kafkascope.codec.message import decode, encode
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.codec.walk import Walk
from kafkascope.codec.write import Write
from kafkascope.errors import DecodeError, EncodeError
from kafkascope.schema.catalog import index, message
from kafkascope.schema.layouts.layout import Layout, layout
from tests.support.values import random_value

KINDS = ("request", "response")
needs_native = pytest.mark.skipif(not is_native(), reason="built without a compiler")


def newest(kind: str) -> list[Layout]:
    """Each message in its newest version, flexible or not, and in its oldest, mostly classic."""
    versions = [(name, message(name).all_versions()) for name, entry in index().items() if entry.kind == kind]
    return [layout(name, version) for name, all_ in versions for version in sorted({all_[0], all_[-1]})]


def widened(value: Any, random: Random, count: int) -> Any:
    """Arrays of structs grown to `count` elements: alike for the most part, of other lengths here and there."""
    if isinstance(value, dict):
        return {n: item if n == UNKNOWN_TAGS else widened(item, random, count) for n, item in value.items()}
    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return value
    models = [widened(item, random, max(1, count // 3)) for item in value]
    odd = random.choice((0.0, 0.05, 0.5))
    grown = [deepcopy(random.choice(models) if random.random() < odd else models[0]) for _ in range(count)]
    for item in grown:
        for name, content in item.items():
            if type(content) is int:
                item[name] = random.choice((content, content // 2, 0))
            elif type(content) is bool:
                item[name] = random.random() < 0.5
    return grown


def typed(value: Any) -> Any:
    """1 == True and 0.0 == -0.0, but not here."""
    if isinstance(value, dict):
        return [(name, typed(item)) for name, item in value.items()]
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value), repr(value)


@needs_native
@pytest.mark.parametrize("kind", KINDS)
def test_quick_engines_agree_with_the_careful_ones_on_long_arrays(kind: str) -> None:
    random = Random(7)
    for known in newest(kind):
        fast_decode, fast_encode = fast_decoder(known), compile_encoder(known)
        for case, count in ((1, 9), (2, 30), (7, 12), (9, 9), (10, 40)):
            value = widened(random_value(known, case), random, count)
            data = Write(known).message(value)
            assert fast_encode(value) == data, known.title
            decoded = fast_decode(data, 0)
            assert decoded is not None and typed(decoded.value) == typed(value), known.title


@needs_native
@pytest.mark.parametrize("kind", KINDS)
def test_quick_decoder_reads_no_broken_bytes_differently_from_the_careful_one(kind: str) -> None:
    random = Random(8)
    read = refused = 0
    for known in newest(kind):
        fast_decode = fast_decoder(known)
        for case, count in ((2, 9), (9, 9), (11, 30)):
            data = Write(known).message(widened(random_value(known, case), random, count))
            for _ in range(8):
                broken = edited(data, random)
                decoded = fast_decode(broken, 0)
                if decoded is None:
                    refused += 1
                    continue
                read += 1
                walk = Walk(known, broken)
                assert typed(walk.message()) == typed(decoded.value) and not walk.reasons, (
                    f"{known.title}: {broken.hex()}"
                )
    assert read > 300 and refused > 300


def edited(data: bytes, random: Random) -> bytes:
    """One byte changed, added or cut away, or all from somewhere on; small changes, so that much still decodes."""
    at = random.randrange(len(data) + 1)
    byte = bytes([random.choice((0, 1, 2, 127, 128, 255, random.randrange(256)))])
    if at < len(data) and random.random() < 0.4:
        byte = bytes([(data[at] + random.choice((1, -1))) % 256])
    behind = random.choice((at, at + 1, at + 1, at + 1, at + 2, len(data)))
    return data[:at] + byte + data[behind:]


def commit(lengths: list[int]) -> tuple[bytes, dict[str, Any]]:
    """OffsetCommitRequest v9 whose partitions have metadata of these lengths; its partitions start at byte 19."""
    partitions = [
        {"partitionIndex": n, "committedOffset": n, "committedLeaderEpoch": -1, "committedMetadata": "m" * length}
        for n, length in enumerate(lengths)
    ]
    value = {
        "groupId": "g",
        "generationIdOrMemberEpoch": 1,
        "memberId": "m",
        "groupInstanceId": None,
        "topics": [{"name": "topic", "partitions": partitions}],
    }
    return Write(layout("OffsetCommitRequest", 9)).message(value), value


@needs_native
@pytest.mark.parametrize("lengths", [[0] * 1000, [126] * 10 + [127] * 10, list(range(200))])
def test_elements_of_changing_lengths_keep_their_order(lengths: list[int]) -> None:
    data, value = commit(lengths)
    decoded = fast_decoder(layout("OffsetCommitRequest", 9))(data, 0)
    assert decoded is not None and decoded.value == value


@needs_native
def test_native_decoder_takes_a_position_and_refuses_what_is_no_bytes() -> None:
    decoder = fast_decoder(layout("ApiVersionsRequest", 3))
    data = encode("ApiVersionsRequest", 3, {})
    assert decoder(b"xx" + data, 2) == decode("ApiVersionsRequest", 3, data)
    assert decoder(data, -1) is None and decoder(data, len(data) + 1) is None
    wrong: Any = bytearray(data)
    with pytest.raises(TypeError):
        decoder(wrong, 0)


def test_a_tag_in_the_middle_of_many_elements_is_kept() -> None:
    _, value = commit([0] * 50)
    value["topics"][0]["partitions"][31][UNKNOWN_TAGS] = [{"tag": 9, "data": b"x"}]
    data = encode("OffsetCommitRequest", 9, value)
    decoded = decode("OffsetCommitRequest", 9, data)
    assert decoded.value == value and decoded.unknown_tags[0].path == "topics[0].partitions[31]"


def test_a_bool_of_2_among_many_elements_is_inexact() -> None:
    value = {"topics": [{"name": f"topic-{n}", "isInternal": n % 2 == 0} for n in range(9)]}
    data = bytearray(encode("MetadataResponse", 1, value))
    # Error code, "topic-8", then the bool, then no partitions.
    data[-5] = 2
    decoded = decode("MetadataResponse", 1, bytes(data))
    assert decoded.value["topics"][8]["isInternal"] is True
    assert [reason.partition(":")[0] for reason in decoded.reasons] == ["topics[8].isInternal"]


def test_many_elements_cut_off_are_an_error() -> None:
    data, _ = commit([5] * 40)
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            decode("OffsetCommitRequest", 9, data[:end])


@pytest.mark.parametrize("wrong", [True, 1.0, "1", None, 2**31])
@pytest.mark.parametrize("count", [1, 3, 40])
def test_an_array_of_numbers_takes_nothing_else(wrong: Any, count: int) -> None:
    value = {"forgottenTopicsData": [{"topicId": UUID(int=1), "partitions": [0] * count}]}
    # Complete, so that the compiled encoder is the one that must refuse.
    complete = decode("ShareFetchRequest", 1, encode("ShareFetchRequest", 1, value)).value
    complete["forgottenTopicsData"][0]["partitions"][-1] = wrong
    with pytest.raises(EncodeError, match=rf"forgottenTopicsData\[0\].partitions\[{count - 1}\]"):
        encode("ShareFetchRequest", 1, complete)


def test_a_message_without_fields_is_an_object_still() -> None:
    assert encode("ListGroupsRequest", 0, {}) == b""
    wrong: Any
    for wrong in ([], "", ()):
        with pytest.raises(EncodeError, match="expected an object"):
            encode("ListGroupsRequest", 0, wrong)


def test_without_the_decoder_in_c_the_careful_one_reads_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    known = layout("OffsetCommitRequest", 9)
    data, value = commit([0, 3, 200])
    native = decode(known.message.name, known.version, data)
    monkeypatch.setattr(engine, "_native", None)
    message_module._decoder.cache_clear()
    try:
        assert fast_decoder(known)(data, 0) is None
        assert decode(known.message.name, known.version, data) == native and native.value == value
    finally:
        message_module._decoder.cache_clear()
