"""Caps on counts and seconds, and those of small files: each driven to its edge, where what comes beyond is seen."""

from pathlib import Path
from uuid import UUID

import pytest

import kafkascope
from kafkascope import limits
from kafkascope.capture.base.flow import (
    PieceKind,
)
from kafkascope.capture.frames.detect.credit import Credit
from kafkascope.capture.frames.detect.detection import Undecided, Verdict
from kafkascope.client.metadata_cache import MetadataCache
from kafkascope.client.observe.observer import _batches
from kafkascope.client.settings import Address
from kafkascope.client.transport.dialling import UnreachableError, check_address
from kafkascope.codec.records.record_data import decode_records
from kafkascope.errors import DecodeError, InputError
from kafkascope.lake.place import place_of
from tests.hostile.child import run
from tests.hostile.test_bounds_codec import IMPORTS, MIB, RECORDS
from tests.support.hostile_recordings import api_versions
from tests.support.record_data import batch_around


def test_varints_end_at_their_caps() -> None:
    """MAX_VARINT_BYTES of a length; in records MAX_VARINT_BYTES of a size, MAX_VARLONG_BYTES of a time."""
    rest = b"\x80" * (limits.MAX_VARINT_BYTES - 2) + b"\x00"
    assert not kafkascope.decode("ApiVersionsRequest", 3, b"\x81" + rest + b"\x01\x00").exact
    with pytest.raises(DecodeError, match=f"is longer than {limits.MAX_VARINT_BYTES} bytes"):
        kafkascope.decode("ApiVersionsRequest", 3, b"\x81\x80" + rest + b"\x01\x00")
    for time, fine in ((b"\x80" * (limits.MAX_VARLONG_BYTES - 1) + b"\x00", True), (b"\x80" * 10 + b"\x00", False)):
        # Attributes, time, offset, null key and value, no headers.
        record = b"\x00" + time + b"\x00\x01\x01\x00"
        data = batch_around(bytes([2 * len(record)]) + record, "none")
        if fine:
            assert len(decode_records(data).batches[0].records or ()) == 1
        else:
            with pytest.raises(DecodeError):
                decode_records(data)


def test_values_of_a_small_message_may_take_a_part_for_all_and_twenty_times_its_size() -> None:
    """FREE_VALUE_BYTES and MAX_VALUE_RATIO, measured."""
    count = 700_000
    size = 2 * count + 7
    most = limits.FREE_VALUE_BYTES + limits.MAX_VALUE_RATIO * size
    assert most < limits.MAX_VALUE_BYTES
    ran = run(IMPORTS, f"data = names({count}, 1)\nprint(len(data))\nrefused('MetadataRequest', 9, data)")
    length, message = ran.output.splitlines()
    most = limits.FREE_VALUE_BYTES + limits.MAX_VALUE_RATIO * int(length)
    assert f"the message takes more than {most} bytes as Python values" in message
    assert ran.peak < most


@pytest.mark.parametrize("magic", [0, 1])
def test_sets_within_sets_within_sets_are_read_one_level_deep(magic: int) -> None:
    """MAX_NESTED_MESSAGE_SETS: the next level, which would unpack to 64 MiB, isn't unpacked."""
    code = f"""
deep = wrapped(bytes(64 << 20), magic={magic})
deeper = wrapped(deep, magic={magic})
deepest = wrapped(deeper, magic={magic})
before = _peak()
for data in (deep[:0] + wrapped(inner((0, 0, b"x"), magic={magic}), magic={magic}), deeper, deepest):
    refused(data)
print(_peak() - before)
"""
    ran = run(f"{RECORDS}\nfrom tests.codec.records.test_message_sets import inner, wrapped", code)
    plain, second, third, grown = ran.output.splitlines()
    assert plain == "1"
    assert f"compressed inside a compressed message, {limits.MAX_NESTED_MESSAGE_SETS} level is read" in second
    assert f"compressed inside a compressed message, {limits.MAX_NESTED_MESSAGE_SETS} level is read" in third
    assert int(grown) < 8 * MIB


@pytest.mark.parametrize("cap", ["MAX_UNDECIDED_BYTES", "MAX_UNDECIDED_PIECES"])
def test_what_nobody_recognises_is_left_alone_at_its_cap(cap: str) -> None:
    """A first frame that may be Kafka's for as long as it lasts."""
    piece = bytes(limits.MAX_UNDECIDED_BYTES // 16) if cap == "MAX_UNDECIDED_BYTES" else b"\0"
    first = (50_000_000).to_bytes(4, "big") + api_versions(1)[4:]
    undecided, credit, offset = Undecided(0, (True, True)), Credit(), 0
    credit.earn(1 << 20, 1 << 30)
    for number in range(limits.MAX_UNDECIDED_PIECES + 2):
        data = first if number == 0 else piece
        undecided.add(PieceKind.BYTES, 0, offset, data, len(data), number, number)
        offset += len(data)
        if undecided.verdict(credit, final=False) == Verdict("other"):
            break
    assert undecided.size <= 2 * limits.MAX_UNDECIDED_BYTES + len(piece)
    assert len(undecided.entries) <= limits.MAX_UNDECIDED_PIECES + 1
    beyond = undecided.size if cap == "MAX_UNDECIDED_BYTES" else len(undecided.entries)
    assert beyond > (2 * limits.MAX_UNDECIDED_BYTES if cap == "MAX_UNDECIDED_BYTES" else limits.MAX_UNDECIDED_PIECES)


@pytest.mark.parametrize(
    ("cap", "module", "function"),
    [
        ("MAX_SECRET_BYTES", "kafkascope.client.secret_file", "read_secret"),
        ("MAX_CONFIG_BYTES", "kafkascope.client.config.file", "read_config"),
        ("MAX_STORE_BYTES", "kafkascope.client.config.key_stores", "read_trust"),
    ],
)
def test_a_file_of_settings_is_read_up_to_its_cap(cap: str, module: str, function: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(256 * MIB)
    code = f"""
try:
    {function}(Path(sys.argv[1]){", None" if cap == "MAX_STORE_BYTES" else ""})
except InputError as error:
    print(error)
"""
    imports = f"from pathlib import Path\nfrom kafkascope.errors import InputError\nfrom {module} import {function}"
    ran = run(imports, code, str(path))
    assert f"is larger than {getattr(limits, cap)} bytes" in ran.output
    assert ran.peak < 2 * getattr(limits, cap) + 4 * MIB


def test_groups_are_asked_for_in_portions() -> None:
    """MAX_OBSERVED_GROUPS_A_CALL"""
    most = limits.MAX_OBSERVED_GROUPS_A_CALL
    assert [len(part) for part in _batches([str(n) for n in range(2 * most + 1)])] == [most, most, 1]


def test_a_host_longer_than_any_name_is_refused() -> None:
    """MAX_HOST_CHARACTERS"""
    check_address(Address("h" * limits.MAX_HOST_CHARACTERS, 9092))
    with pytest.raises(UnreachableError, match=f"the limit is {limits.MAX_HOST_CHARACTERS}"):
        check_address(Address("h" * (limits.MAX_HOST_CHARACTERS + 1), 9092))


def test_leaders_beyond_the_cap_are_forgotten() -> None:
    """MAX_KNOWN_PARTITIONS, of topics by name and id."""
    view = MetadataCache()
    most = 0
    for number in range(limits.MAX_KNOWN_PARTITIONS + 10):
        partition = {"errorCode": 0, "partitionIndex": 0, "leaderId": 1, "leaderEpoch": 1}
        topic = {"errorCode": 0, "name": f"t{number}", "topicId": UUID(int=number + 5), "partitions": [partition]}
        view._learn_topic(topic)
        most = max(most, len(view.leaders), len(view.topic_ids), len(view.topic_names))
    assert limits.MAX_KNOWN_PARTITIONS < most <= limits.MAX_KNOWN_PARTITIONS + 2
    assert len(view.leaders) < most and f"t{number}" in view.topic_ids


def test_a_note_beside_the_tables_is_read_up_to_its_cap(tmp_path: Path) -> None:
    """MAX_LAKE_NOTE_BYTES"""
    path = tmp_path / "note"
    path.write_bytes(b"x" * limits.MAX_LAKE_NOTE_BYTES)
    assert len(place_of(str(path)).read()) == limits.MAX_LAKE_NOTE_BYTES
    path.write_bytes(b"x" * (limits.MAX_LAKE_NOTE_BYTES + 1))
    with pytest.raises(InputError, match=f"more than {limits.MAX_LAKE_NOTE_BYTES:,} bytes"):
        place_of(str(path)).read()
