"""Every frame of every recorded capture: decoded exactly, as Kafka's Java codec reads it, the same in columns."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kafkascope.capture.reader import decode_messages
from kafkascope.codec.frame import encode_frame, header_version
from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import decode
from kafkascope.schema.catalog import message
from tests.captures import HERE, NAMES
from tests.codec.test_java_judge import ONLY_THEIR_OWN, WHOLE, without_unknown_tags
from tests.columnar.expected import expected, without_nulls
from tests.judge.java import NOT_ASKED, judge
from tests.support.recorded import ENVELOPE, Recorded, recorded_frames

# (message, version, bytes)
Part = tuple[str, int, bytes]


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_frame_decodes_exactly_and_encodes_back(name: str) -> None:
    """No recorded frame needs an excuse: what real brokers and clients wrote is what we would have written."""
    for recorded in recorded_frames(name):
        frame = recorded.decode()
        where = f"{frame.name} v{frame.version} of exchange {recorded.exchange_id}"
        assert frame.name is not None and frame.body is not None, where
        assert frame.exact, f"{where}: {frame.reasons}"
        assert frame.length == len(recorded.data) - 4, where
        assert encode_frame(frame.name, frame.version, frame.body.value, frame.header.value) == recorded.data, where


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.heavy
def test_java_reads_and_rewrites_every_recorded_frame_as_we_do(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    """Headers and bodies, each different one once, by a release that has the version."""
    frames = recorded_frames(name)
    parts = sorted({part for recorded in frames for part in _parts(recorded)})
    wrong: list[str] = []
    judged = 0
    for version_name in WHOLE + ONLY_THEIR_OWN:
        judged_parts = [part for part in parts if _judge_of(*part[:2]) == version_name]
        if not judged_parts:
            continue
        release = version_name.rpartition(".")[0]
        cases = [(message(part[0]).name_in(release), part[1], NOT_ASKED, part[2].hex()) for part in judged_parts]
        for (message_name, version, data), verdict in zip(judged_parts, judge(version_name, cases), strict=True):
            judged += 1
            where = f"{message_name} v{version} in {version_name}"
            if verdict.rewritten != data.hex():
                wrong.append(f"{where}: Java rewrites as {verdict.rewritten[:200]}, recorded is {data.hex()[:200]}")
            value = decode(message_name, version, data, release).value
            ours = without_unknown_tags(to_json(message_name, version, value, release, records="size"))
            if verdict.json.startswith("!") or json.loads(verdict.json) != ours:
                wrong.append(f"{where}: Java's JSON {verdict.json[:300]}, ours {json.dumps(ours)[:300]}")
    pairs = len({part[:2] for part in parts})
    record_property(
        "measured",
        f"recorded {name}: {len(frames)} frames, {judged} different headers and bodies of {pairs} (message, version)"
        f" pairs, {len(wrong)} differ from Java",
    )
    assert not wrong, "\n".join(wrong[:10])
    assert judged == len(parts) > 100


def _parts(recorded: Recorded) -> list[Part]:
    frame = recorded.decode()
    assert frame.name is not None
    header = "RequestHeader" if frame.kind == "request" else "ResponseHeader"
    return [
        (header, header_version(frame.name, frame.version), recorded.data[frame.header_at : frame.body_at]),
        (frame.name, frame.version, recorded.data[frame.body_at :]),
    ]


def _judge_of(name: str, version: int) -> str:
    """The first release that has this version: 4.3.1, that of the recorded brokers, unless only others do."""
    for version_name in WHOLE + ONLY_THEIR_OWN:
        versions = message(name).versions_in(version_name.rpartition(".")[0])
        if versions is not None and version in versions:
            return version_name
    raise AssertionError(f"no judge has {name} v{version}")


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_every_recorded_frame_have_the_codecs_values(name: str) -> None:
    expected_rows: dict[tuple[str, str, int], Any] = {}
    for recorded in recorded_frames(name):
        frame = recorded.decode()
        assert frame.name is not None
        key = (recorded.exchange_id, frame.name, frame.version)
        assert key not in expected_rows
        expected_rows[key] = without_nulls(expected((frame.name, frame.version, None), recorded.data[frame.body_at :]))
        assert "_error" not in expected_rows[key], key
    for decoded in decode_messages(HERE / name / "capture.pcap.xz"):
        decoded.table.validate(full=True)
        for row in decoded.table.to_pylist():
            key = (row.pop("exchange_id"), decoded.name, row.pop("api_version"))
            assert without_nulls(row) == expected_rows.pop(key), key
    assert not expected_rows, f"not in the tables: {sorted(expected_rows)[:10]}"


def test_a_request_within_every_recorded_envelope_is_among_the_frames() -> None:
    held = 0
    for name in NAMES:
        requests = [
            (recorded.exchange_id, recorded.decode().api_key)
            for recorded in recorded_frames(name)
            if recorded.response_to is None
        ]
        envelopes = {exchange for exchange, key in requests if key == ENVELOPE}
        assert {exchange for exchange, key in requests if key != ENVELOPE} >= envelopes, name
        held += len(envelopes)
    assert held > 20
