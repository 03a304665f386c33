"""Record data with edited batch headers, counts, compressions and records, with a checksum that is right again more
often than not: by itself, in columns between guard pages, and out of a capture. A unit is many pieces of it."""

import struct
from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import crc32c

from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, decode_records, encode_records, new_batch
from kafkascope.errors import DecodeError
from tests.hostile.frames import in_columns, packed, recording, unpacked
from tests.hostile.reading import read_recording
from tests.support.mutations import KINDS
from tests.support.record_data import PACKINGS, batch_around, zeros

UNIT = 20
_REQUEST, _RESPONSE = ("ProduceRequest", 9, None), ("FetchResponse", 12, None)
# Offsets and sizes of the fields of a batch of magic 2.
_FIELDS = (
    (0, 8), (8, 4), (12, 4), (16, 1), (17, 4), (21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4), (57, 4),
)  # fmt: skip
_NEAR = (
    0,
    1,
    2,
    3,
    48,
    49,
    50,
    61,
    127,
    128,
    2**15,
    2**16,
    2**20,
    2**28,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
)
_CRC_AT, _CRC_FROM = 17, 21
_MAGIC_AT = 16


def make(random: Random) -> bytes:
    data = [_piece(random) for _ in range(UNIT)]
    place = random.choice((_REQUEST, _RESPONSE))
    return packed(place, data)


def run(unit: bytes) -> Counter[str]:
    place, pieces = unpacked(unit)
    outcomes: Counter[str] = Counter()
    for piece in pieces:
        try:
            decode_records(piece)
            outcomes["decoded"] += 1
        except DecodeError:
            outcomes["refused"] += 1
    frames = [_body(place[0], place[1], piece) for piece in pieces]
    in_columns(place, frames)
    in_columns(place, frames, contents=True)
    read_recording(recording(place, frames))
    return outcomes


def _body(name: str, version: int, records: bytes) -> bytes:
    partitions = {"ProduceRequest": "partitionData", "FetchResponse": "partitions"}[name]
    topics = {"ProduceRequest": ("topicData", "name"), "FetchResponse": ("responses", "topic")}[name]
    index = {"ProduceRequest": "index", "FetchResponse": "partitionIndex"}[name]
    partition = {index: 0, "records": records}
    return encode(name, version, {topics[0]: [{topics[1]: "orders", partitions: [partition]}]})


def _piece(random: Random) -> bytes:
    data = random.choice(_known())
    for _ in range(random.choice((1, 1, 2, 4))):
        kind = random.random()
        if kind < 0.4 and len(data) >= 61:
            at, size = random.choice(_FIELDS)
            number = random.choice((random.choice(_NEAR), len(data) - 12, random.randrange(64)))
            data = data[:at] + (number % (1 << 8 * size)).to_bytes(size, "big") + data[at + size :]
        elif kind < 0.6:
            data = _repacked(random)
        elif kind < 0.7:
            data += random.choice(_known())[: random.choice((5, 11, 60, 10_000))]
        else:
            data = random.choice(KINDS)(data, (), random)
    return _with_checksum(data) if random.random() < 0.7 else data


def _with_checksum(data: bytes) -> bytes:
    """Of the first batch, where it is one of magic 2."""
    if len(data) < 61 or data[_MAGIC_AT] != 2:
        return data
    (length,) = struct.unpack_from(">i", data, 8)
    end = min(len(data), 12 + max(length, 49))
    return data[:_CRC_AT] + struct.pack(">I", crc32c.crc32c(data[_CRC_FROM:end])) + data[_CRC_FROM:]


def _repacked(random: Random) -> bytes:
    """A batch whose records were edited before they were packed, or are not of the compression that it names."""
    payload = random.choice(_payloads())
    for _ in range(random.choice((1, 2, 5))):
        payload = random.choice(KINDS)(payload, (), random)
    packing = random.choice(("none", *PACKINGS.values()))
    count = random.choice((0, 1, 3, 3, 3, 4, 2**20, 2**31 - 1, -1))
    if packing == "none" or random.random() < 0.3:
        return batch_around(payload, packing, count=count)
    return batch_around(_compress(packing, payload), packing, count=count)


def _compress(compression: str, payload: bytes) -> bytes:
    """As a producer does: taken out of a batch around records that are of no matter here."""
    made = new_batch([Record(0, 0, None, payload)], compression=compression)
    return encode_records([made])[61:]


@cache
def _payloads() -> list[bytes]:
    """Records without their batch."""
    return [data[61:] for data in _known() if data[_MAGIC_AT] == 2 and data[22] & 7 == 0 and len(data) > 61]


@cache
def _known() -> list[bytes]:
    """Every magic and compression, transactional and control, empty, several in a row, and small bombs."""
    headers = (("h", b"1"), ("n", None))
    records = [Record(40 + n, 1_763_200_000_000 + n, b"key", b"value" * n, headers) for n in range(3)]
    bare = [Record(40 + n, 1_763_200_000_000 + n, None, b"v" * n) for n in range(3)]
    made = []
    for magic, compressions in ((2, "none gzip snappy lz4 zstd"), (1, "none gzip snappy lz4"), (0, "none gzip lz4")):
        for compression in compressions.split():
            chosen = records if magic == 2 else bare if compression != "none" else bare[:1]
            made.append(encode_records([new_batch(chosen, magic=magic, compression=compression)]))
    plain = new_batch(records)
    made.append(encode_records([replace(plain, attributes=0b110000, producer_id=7, producer_epoch=2)]))
    made.append(made[0] + made[3] + made[0])
    made += [batch_around(zeros(packing, 1), compression) for packing, compression in PACKINGS.items()]
    return made
