"""Pages of records and batches: where each lies, what stands before it, and examples that decode back."""

import html
import json
import re

import pytest

from kafkascope.codec.annotations.records import BATCH, MESSAGE_0, MESSAGE_1, annotate_records
from kafkascope.codec.message import decode
from kafkascope.codec.records.record_data import Record, control_records, decode_records, encode_records, new_batch
from kafkascope.codec.records.record_types import COMPRESSIONS
from kafkascope.codec.records.records_form import batch_json
from kafkascope.codec.write import uvarint
from kafkascope.explorer.facts.batch_examples import EXAMPLES
from kafkascope.explorer.pages import batches, record, records
from kafkascope.explorer.render import Renderer
from kafkascope.schema.catalog import index
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.record_places import RECORD_GROUPS

NOT_WIRE = [name for name, entry in index().items() if entry.kind in record.KINDS_HERE]


def test_every_record_has_its_pages_and_stands_in_the_list_once() -> None:
    listed = [item["name"] for group in records.make().facts["groups"] for item in group["records"]]
    assert sorted(listed) == sorted(NOT_WIRE)
    pages = {parameters["name"] for parameters in record.every()}
    assert pages == set(NOT_WIRE)
    assert {group["group"] for group in records.make().facts["groups"]} == set(RECORD_GROUPS)


def test_every_example_of_a_record_decodes_back() -> None:
    for parameters in record.every():
        facts = record.make(**parameters).facts
        name, version, release = facts["message"], facts["version"], facts["release"]
        body = bytes.fromhex(facts["example"]["hex"])
        assert decode(name, version, body, release).value == example(name, version, release)


@pytest.mark.parametrize(
    ("name", "version", "prefix", "lies"),
    [
        ("TopicRecord", "0", "010200", "the value of a record of __cluster_metadata"),
        ("PartitionRecord", "2", "010302", "the value of a record of __cluster_metadata"),
        ("ConsumerGroupMetadataKey", "0", "0003", "the key of a record of __consumer_offsets"),
        ("GroupMetadataValue", "3", "0003", "the value of a record of __consumer_offsets"),
        ("TransactionLogValue", "1", "0001", "the value of a record of __transaction_state"),
        ("ShareSnapshotKey", "0", "0000", "the key of a record of __share_group_state"),
        ("RemoteLogSegmentMetadataUpdateRecord", "0", "010100", "the value of a record of __remote_log_metadata"),
        ("EndTxnMarker", "0", "0000", "the value of a record of a control batch"),
        ("LeaderChangeMessage", "0", "", "the value of a record of a control batch"),
        ("ControlRecordTypeSchema", "0", "0000", "the key of a record of a control batch"),
        ("QuorumStateData", "1", "", "the file quorum-state of the metadata log"),
        ("ConsumerProtocolSubscription", "3", "0003", "JoinGroup, as the metadata of a protocol"),
    ],
)
def test_what_stands_before_a_record(name: str, version: str, prefix: str, lies: str) -> None:
    place = record.make(name, version).facts["place"]
    assert place["prefixHex"] == prefix
    assert place["lies"] == lies


def test_metadata_records_have_their_type_from_the_catalog() -> None:
    for name, entry in index().items():
        if entry.kind == "metadata":
            assert entry.key is not None
            expected = b"\x01" + uvarint(entry.key) + b"\x00"
            first = "0" if 0 in entry.versions else None
            if first:
                assert record.make(name, first).facts["place"]["prefixHex"] == expected.hex()


def test_a_control_batch_written_so_is_read_by_the_codec() -> None:
    place = record.make("EndTxnMarker", "0").facts
    value = bytes.fromhex(place["place"]["prefixHex"] + place["example"]["hex"])
    batch = new_batch([Record(0, 0, b"\0\0\0\1", value)], is_control=True)
    batches_read = control_records(decode_records(encode_records([batch])).batches[0])[0]
    assert batches_read.name == "COMMIT"
    assert batches_read.value == example("EndTxnMarker", 0)
    assert {item["name"] for item in place["place"]["controlTypes"]} == {"ABORT", "COMMIT"}


def test_a_key_and_its_value_lead_to_each_other() -> None:
    for name in NOT_WIRE:
        partner = record.make(name, str(record.present_version(name))).facts["place"]["partner"]
        if index()[name].kind in ("key", "value"):
            assert partner is not None, name
            layout(partner["name"], partner["version"])


@pytest.mark.parametrize("shown", batches.make().facts["examples"], ids=lambda item: item["id"])
def test_every_byte_of_an_example_batch_is_named_once_and_decodes_back(shown: dict[str, object]) -> None:
    made = next(item for item in EXAMPLES if item.id == shown["id"])
    data = bytes.fromhex(str(shown["hex"]))
    pieces = shown["bytes"]
    assert isinstance(pieces, list)
    assert b"".join(bytes.fromhex(piece["hex"]) for piece in pieces) == data
    assert [piece["start"] for piece in pieces] == [0, *(piece["end"] for piece in pieces[:-1])]
    batch = decode_records(data).batches[0]
    assert batch.crc_ok
    assert batch.records == made.make().records
    assert shown["json"] == batch_json(batch) == json.loads(json.dumps(shown["json"]))


def test_every_magic_flag_and_some_compression_are_among_the_examples() -> None:
    batches_read = [decode_records(item.data).batches[0] for item in EXAMPLES]
    assert {batch.magic for batch in batches_read} == {0, 1, 2}
    assert {batch.compression for batch in batches_read} >= {"none", "gzip", "zstd"}
    assert any(batch.is_control for batch in batches_read)
    assert any(batch.is_transactional and not batch.is_control for batch in batches_read)


def test_positions_in_the_formats_are_those_of_the_codec() -> None:
    formats = {item["magic"]: item for item in batches.make().facts["formats"]}
    for magic, fields in enumerate((MESSAGE_0, MESSAGE_1, BATCH)):
        data = encode_records([new_batch([Record(5, 7, b"k", b"v")], magic=magic)])
        spans = {item.path: item for item in annotate_records(data)}
        for row, (name, _, size) in zip(formats[magic]["fields"], fields, strict=False):
            assert (int(row["at"]), int(row["size"])) == (spans[name].start, size)
            assert spans[name].end - spans[name].start == size
    # The magic stands at the same place in all of them.
    assert {row["at"] for item in formats.values() for row in item["fields"] if row["name"] == "magic"} == {"16"}


def test_compressions_have_the_numbers_of_the_wire() -> None:
    listed = batches.make().facts["compressions"]
    assert [item["name"] for item in listed] == list(COMPRESSIONS)
    for item in listed:
        magic = 2
        data = encode_records([new_batch([Record(0, 0, b"k", b"v" * 90)], magic=magic, compression=item["name"])])
        attributes = next(piece for piece in annotate_records(data) if piece.path == "attributes")
        assert int(attributes.value) & 7 == item["number"]


def test_named_bytes_of_batches_inside_a_message_have_their_place_in_it() -> None:
    data = encode_records(
        [new_batch([Record(0, 0, b"k", None, (("h", b"x"),))]), new_batch([Record(1, 0, None, b"v")])]
    )
    rows = annotate_records(data + data[:20], 100, "responses[0].records.")
    assert [row.start for row in rows] == [100, *(row.end for row in rows[:-1])]
    assert rows[-1].end == 100 + len(data) + 20
    assert rows[-1].label == "an incomplete batch"
    assert "responses[0].records.batch[1].records[0].value" in {row.path for row in rows}
    assert "responses[0].records.batch[0].records[0].headers[0].key" in {row.path for row in rows}


@pytest.mark.parametrize("name", ["records", "batches"])
def test_the_pages_show_what_they_list(name: str) -> None:
    kind = {"records": records.KIND, "batches": batches.KIND}[name]
    shown = html.unescape(re.sub(r"<[^>]+>", " ", Renderer().html(kind, {})))
    facts = kind.make().facts
    words = [item["title"] for item in facts.get("examples") or facts["groups"]]
    words += [field["name"] for item in facts.get("formats", []) for field in item["fields"]]
    words += [item["about"] for group in facts.get("groups", []) for item in group["records"]]
    assert [word for word in words if " ".join(word.split()) not in " ".join(shown.split())] == []
