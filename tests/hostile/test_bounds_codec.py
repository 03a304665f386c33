"""What one message may take, measured in a process of its own: the caps on values, spans, records and frames."""

import os
from random import Random

import pytest

import kafkascope
from kafkascope import limits
from kafkascope.codec.fast.engine import fast_decoder
from kafkascope.codec.message import encode
from kafkascope.codec.records.budget import Budget
from kafkascope.codec.value_cost import allowance
from kafkascope.codec.walk import Walk
from kafkascope.errors import DecodeError
from kafkascope.schema.layouts.layout import layout
from tests.hostile.child import run

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
soak = pytest.mark.skipif(not SOAK, reason="make soak")
MIB = 1 << 20
IMPORTS = """
import kafkascope
from kafkascope.codec.message import decode
from kafkascope.schema.layouts.layout import layout
def uvarint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
def names(count, odd):  # two bytes for each topic, and perhaps one byte too many at the end
    return uvarint(count + 1) + bytes([1, 0]) * count + bytes([1, 0, 0, 0]) + bytes(odd)
def refused(*arguments, **options):
    try:
        kafkascope.decode(*arguments, **options)
    except kafkascope.DecodeError as error:
        print(error)
    else:
        print("read")
decode("MetadataRequest", 9, names(1, 1))
"""


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.parametrize("odd", [0, 1])
def test_empty_names_by_the_million_are_refused_with_their_place_before_they_are_made(odd: int) -> None:
    ran = run(IMPORTS, f"data = names(15_000_000, {odd})\nrefused('MetadataRequest', 9, data)")
    assert ran.output == (
        f"MetadataRequest v9, topics: the message takes more than {limits.MAX_VALUE_BYTES} bytes as Python values;"
        " decode_columns can read it if it is well-formed (offset 4)"
    )
    # The frame itself is there three times while it is put together.
    assert ran.peak < 4 * 30 * MIB


SHAPES = {
    # Lists in lists: nothing is known of the inner ones beforehand.
    "nested": ("OffsetFetchRequest", 1, b"\0\0" + (2_000_000).to_bytes(4, "big"), b"\0\0" + bytes(4), 2_000_000),
    "unknown tags": ("ApiVersionsRequest", 3, b"\x01\x01" + uvarint(3_000_000), b"\x05\x01\x00", 3_000_000),
    "nested topics": ("OffsetFetchRequest", 6, b"\x01" + uvarint(3_000_001), b"\x01\x01\x00", 3_000_000),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_takes_more_than_its_allowance(shape: str) -> None:
    """Small frames, and a small allowance in proportion: the careful decoder makes no more than it charges."""
    name, version, head, item, count = SHAPES[shape]
    data = head + item * count
    code = (
        "import kafkascope.limits as limits\n"
        f"limits.MAX_VALUE_BYTES = {24 * MIB}\n"
        f"data = bytes.fromhex({head.hex()!r}) + bytes.fromhex({item.hex()!r}) * {count}\n"
        f"refused({name!r}, {version}, data)"
    )
    ran = run(IMPORTS, code)
    assert f"more than {24 * MIB} bytes as Python values" in ran.output, ran.output
    assert ran.peak < 2 * len(data) + 24 * MIB * 1.25 + 8 * MIB


def test_both_engines_charge_what_a_message_takes_alike() -> None:
    """Close to the allowance, the quick decoder refuses what the careful one refuses."""
    known = layout("TxnOffsetCommitResponse", 3)
    random = Random(5)
    for count in (30, 300, 3000):
        partitions = [
            {"partitionIndex": random.randrange(300, 1 << 30), "errorCode": random.randrange(3)} for _ in range(count)
        ]
        value = {"topics": [{"name": "tø" * random.randrange(9), "partitions": partitions}]}
        data = encode("TxnOffsetCommitResponse", 3, value)
        walk = Walk(known, data)
        walk.message()
        taken = walk.allowed - walk.left
        for spare, fits in ((0, True), (-1, False)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(limits, "MAX_VALUE_BYTES", taken + spare)
                assert (fast_decoder(known)(data, 0) is not None) == fits
                walk = Walk(known, data)
                if fits:
                    walk.message()
                else:
                    with pytest.raises(DecodeError, match="bytes as Python values"):
                        walk.message()


def test_the_allowance_is_a_part_for_all_and_a_part_by_size() -> None:
    assert allowance(0) == limits.FREE_VALUE_BYTES
    assert allowance(1000) == limits.FREE_VALUE_BYTES + 1000 * limits.MAX_VALUE_RATIO
    assert allowance(limits.MAX_FRAME_BYTES) == limits.MAX_VALUE_BYTES


HONEST = """
nodes = [1001, 1002, 1003]
partition = {"errorCode": 0, "partitionIndex": 5, "leaderId": 1001, "leaderEpoch": 300, "replicaNodes": nodes,
             "isrNodes": nodes, "offlineReplicas": []}
topic = {"errorCode": 0, "name": "orders", "isInternal": False, "partitions": [partition] * 1000}
whole = {"brokers": [], "clusterId": "c", "controllerId": 1, "topics": [topic] * 200}
data = kafkascope.encode("MetadataResponse", 9, whole)
"""


def test_a_metadata_response_of_200_000_partitions_is_read() -> None:
    code = (
        f"{HONEST}\nread = kafkascope.decode('MetadataResponse', 9, data)\nprint(read.exact, len(read.value['topics']))"
    )
    ran = run(IMPORTS, code)
    assert ran.output == "True 200"
    assert ran.peak < limits.MAX_VALUE_BYTES


@soak
def test_the_same_with_a_byte_after_it_is_read_carefully() -> None:
    ran = run(IMPORTS, f"{HONEST}\nprint(kafkascope.decode('MetadataResponse', 9, data + b'x').reasons)")
    assert "1 byte after the message" in ran.output
    assert ran.peak < limits.MAX_VALUE_BYTES + 64 * MIB


def test_a_fetch_response_as_large_as_a_frame_is_read() -> None:
    code = f"""
whole = {{"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": [{{"topic": "t", "partitions": [
    {{"partitionIndex": 0, "errorCode": 0, "highWatermark": 9, "records": bytes({limits.MAX_FRAME_BYTES - 100})}}]}}]}}
data = kafkascope.encode("FetchResponse", 11, whole)
del whole
print(len(kafkascope.decode("FetchResponse", 11, data).value["responses"][0]["partitions"][0]["records"]))
"""
    ran = run(IMPORTS, code)
    assert ran.output == str(limits.MAX_FRAME_BYTES - 100)
    # It is there five times: bytes, message, and what the encoder puts together.
    assert ran.peak < 6 * limits.MAX_FRAME_BYTES


def test_a_longer_frame_is_refused() -> None:
    with pytest.raises(DecodeError, match=f"the limit, as in a broker, is {limits.MAX_FRAME_BYTES}"):
        kafkascope.decode_frame(bytes(limits.MAX_FRAME_BYTES + 5))


@soak
def test_spans_up_to_their_cap_take_less_than_half_a_gigabyte() -> None:
    count = limits.MAX_SPANS + 10
    head = bytes(2) + (1).to_bytes(4, "big") + b"\0\1t" + count.to_bytes(4, "big")
    code = f"refused('OffsetFetchRequest', 1, bytes.fromhex('{head.hex()}') + b'abcd' * {count}, spans=True)"
    ran = run(IMPORTS, code, timeout=900)
    assert f"more than {limits.MAX_SPANS} spans" in ran.output
    assert ran.peak < 512 * MIB


RECORDS = """
import kafkascope
from kafkascope import limits
from kafkascope.codec.varint import write_zigzag
import struct
def batch(payload, count, compression):
    head = struct.pack(">hiqqqhii", compression, count - 1, 0, 0, -1, -1, -1, count)
    return struct.pack(">qiibI", 0, len(head) + len(payload) + 9, 0, 2, 0) + head + payload
def refused(data):
    try:
        print(sum(len(batch.records) for batch in kafkascope.decode_records(data).batches))
    except kafkascope.DecodeError as error:
        print(error)
kafkascope.decode_records(b"")
"""
# Length 6, attributes, deltas, null key, null value, no headers.
EMPTY_RECORD = "0c000000010100"


def test_more_records_than_the_cap_are_refused_before_they_are_made() -> None:
    count = limits.MAX_RECORD_ITEMS + 1
    code = f"refused(batch(bytes.fromhex('{EMPTY_RECORD}') * {count}, {count}, 0))"
    ran = run(RECORDS, code)
    assert ran.output == f"batch[0]: more than {limits.MAX_RECORD_ITEMS} batches, records and headers"
    assert ran.peak < 6 * 7 * (limits.MAX_RECORD_ITEMS + 1)


@soak
def test_as_many_records_as_the_cap_allows_take_less_than_half_a_gigabyte() -> None:
    record = "14 00 0000 04 6161 04 6262 00".replace(" ", "")
    count = limits.MAX_RECORD_ITEMS - 1
    code = f"refused(batch(bytes.fromhex('{record}') * {count}, {count}, 0))"
    ran = run(RECORDS, code)
    assert ran.output == str(limits.MAX_RECORD_ITEMS - 1)
    assert ran.peak < 512 * MIB


@soak
def test_headers_up_to_the_cap_take_less_than_half_a_gigabyte() -> None:
    code = """
count = limits.MAX_RECORD_ITEMS - 2
headers = bytearray()
write_zigzag(headers, count)
body = bytes.fromhex("000000" "01" "01") + bytes(headers) + bytes.fromhex("0461610462 62".replace(" ", "")) * count
size = bytearray()
write_zigzag(size, len(body))
refused(batch(bytes(size) + body, 1, 0))
"""
    ran = run(RECORDS, code)
    assert ran.output == "1"
    assert ran.peak < 512 * MIB


def test_batches_share_one_budget() -> None:
    budget = Budget()
    budget.take_bytes(limits.MAX_UNPACKED_BYTES - 1, "batch[0]")
    with pytest.raises(DecodeError, match=r"batch\[1\]: decompresses to more than"):
        budget.take_bytes(2, "batch[1]")


def test_strings_reasons_and_nested_sets_end_at_their_caps() -> None:
    body = bytes.fromhex("0001 61 00000001 0001 62".replace(" ", ""))
    assert kafkascope.decode("HeartbeatRequest", 0, body).exact
    long = uvarint(limits.MAX_STRING_BYTES + 2) + bytes(limits.MAX_STRING_BYTES + 1)
    with pytest.raises(DecodeError, match=f"Kafka's limit is {limits.MAX_STRING_BYTES}"):
        kafkascope.decode("ApiVersionsRequest", 3, long + b"\x01\x00")
    tags = uvarint(1000) + bytes([5, 0]) * 1000  # one tag a thousand times: 999 reasons
    reasons = kafkascope.decode("ApiVersionsRequest", 3, b"\x01\x01" + tags).reasons
    assert len(reasons) == limits.MAX_REASONS + 1
    assert reasons[-1] == "and 899 more"
