"""A recording read file by file, with nothing but JSON from one run to the next, tells what one run over all tells."""

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.reader import Reading
from kafkascope.capture.resume import places as carry_place
from kafkascope.capture.resume.parse import parse_carried
from kafkascope.capture.resume.run import IDLE_NS, Part
from kafkascope.capture.resume.state import Carried
from kafkascope.capture.tcp.reassembly import TRAILING_NS
from kafkascope.errors import InputError
from tests.captures import NAMES, capture
from tests.support.packet_build import Talk, pcap
from tests.support.parts import (
    Named,
    ReadResult,
    cut,
    differences,
    pcap_records,
    random_cut,
    random_pcap,
    read_parts,
    read_together,
    read_whole,
)
from tests.support.traffic import framed, produce, request, response

SEEDS = 1_000 if os.environ.get("KAFKASCOPE_SOAK") else 60
SECOND = 1_000_000_000


@pytest.mark.parametrize("count", [2, 5, 20])
@pytest.mark.parametrize("name", NAMES)
def test_recorded_captures_in_any_number_of_files(name: str, count: int) -> None:
    data = capture(name)
    whole = read_whole(data, bodies=True)
    for seed in range(3):
        files = random_cut(data, count, seed)
        assert differences(whole, read_parts(files, bodies=True)) == [], f"seed {seed}"
    assert whole.bodies


@pytest.mark.parametrize("name", NAMES)
def test_last_run_may_come_without_a_file(name: str) -> None:
    data = capture(name)
    assert differences(read_whole(data), read_parts(random_cut(data, 3, 7), at_end=True)) == []


def test_generated_traffic_with_every_fault_in_any_number_of_files() -> None:
    """Loss, order, retransmission, wrap, ports used again, SASL tokens, starts in the middle."""
    exchanges = 0
    for seed in range(SEEDS):
        data = random_pcap(seed)
        packets = len(pcap_records(data)[1])
        whole = read_whole(data)
        exchanges += len(whole.exchanges)
        for count in (2, 5, 20):
            if count <= packets:
                parts = read_parts(random_cut(data, count, seed), at_end=bool(seed % 2))
                assert differences(whole, parts) == [], f"seed {seed}, {count} files"
                assert parts.problems == [], f"seed {seed}, {count} files"
    assert exchanges > 5 * SEEDS


@pytest.mark.parametrize("seed", [2, 5, 9, 17])
def test_every_packet_boundary(seed: int) -> None:
    data = random_pcap(seed, talks=2, longest=4)
    whole = read_whole(data)
    for place in range(1, min(len(pcap_records(data)[1]), 200)):
        assert differences(whole, read_parts(cut(data, [place]))) == [], f"cut at {place}"


def test_one_packet_a_file() -> None:
    data = pcap(conversation().packets)
    count = len(pcap_records(data)[1])
    assert differences(read_whole(data), read_parts(cut(data, range(count)))) == []


def test_late_pieces_are_dropped_once_nothing_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry_place, "MOST_LATE", 4)
    for seed in range(20):
        data = random_pcap(seed)
        if len(pcap_records(data)[1]) > 5:
            assert differences(read_whole(data), read_parts(random_cut(data, 5, seed))) == [], f"seed {seed}"


def test_bytes_that_differ_across_a_cut_are_all_that_is_not_told_alike() -> None:
    """The bytes delivered last are not kept, so nothing before the cut is compared with what comes again behind it."""
    fewer = 0
    for seed in range(40):
        data = random_pcap(seed, other_bytes=True)
        if len(pcap_records(data)[1]) <= 5:
            continue
        files = random_cut(data, 5, seed)
        whole, parts = read_together(files), read_parts(files)
        for key, connection in whole.connections.items():
            fewer += connection[CONFLICTS] - parts.connections[key][CONFLICTS]
            assert connection[CONFLICTS] >= parts.connections[key][CONFLICTS], f"seed {seed}"
        assert differences(without_conflicts(whole), without_conflicts(parts)) == [], f"seed {seed}"
    assert fewer


CONFLICTS = 11


def without_conflicts(exchanges: ReadResult) -> ReadResult:
    made = {key: (*row[:CONFLICTS], *row[CONFLICTS + 1 :]) for key, row in exchanges.connections.items()}
    return replace(exchanges, connections=made)


def conversation() -> Talk:
    talk = Talk().open()
    for identity in range(4):
        talk.say(0, produce(identity, 3_000)).say(1, response("Produce", 9, identity))
    return talk.close()


def run(paths: Any, part: Part) -> tuple[list[dict[str, Any]], Reading]:
    reading = Reading(paths, part=part)
    return [row for batch in reading.batches() for row in to_arrow(batch).to_pylist()], reading


def reopening(*files: Named) -> Any:
    contents = {file.name: file.getvalue() for file in files}
    return lambda uri: Named(contents[uri], uri) if uri in contents else None


def test_files_are_found_again_by_their_paths(tmp_path: Path) -> None:
    data = capture("share")
    paths = []
    for number, (_, content) in enumerate(random_cut(data, 4, 1)):
        paths.append(tmp_path / f"{number}.pcap")
        paths[-1].write_bytes(content)
    rows: list[dict[str, Any]] = []
    carried: list[Carried] = []
    for path in paths:
        new_rows, reading = run(path, Part(carried=carried, last=path == paths[-1]))
        rows += new_rows
        carried = reading.carried
    whole, _ = run(paths, Part())
    assert sorted(rows, key=lambda row: row["exchange_id"]) == sorted(whole, key=lambda row: row["exchange_id"])


def test_file_that_has_grown_is_read_from_where_it_ended() -> None:
    data = capture("streams")
    whole = read_whole(data)
    header, records = pcap_records(data)
    rows: dict[str, Any] = {}
    carried: list[Carried] = []
    read = packets = 0
    for count in (300, 301, 900, len(records)):
        file = Named(header + b"".join(records[:count]), "growing.pcap")
        part = Part(carried=carried, last=count == len(records), skip={file.name: read}, reopen=reopening(file))
        new_rows, reading = run(file, part)
        packets += reading.account.packets
        for row in new_rows:
            assert row["exchange_id"] not in rows and row.pop("capture_uri") == file.name
            rows[row["exchange_id"]] = row
        carried, read = reading.carried, count
    assert packets == len(records)
    for row in whole.exchanges.values():
        row.pop("frames")
    assert rows == whole.exchanges


def test_nothing_that_was_said_is_carried() -> None:
    """A SASL token in the middle, a request without its answer, and a connection that nobody recognised yet."""
    secret = b"\0alice\0alice-secret"
    talk = Talk(segment_bytes=12).open()
    talk.say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1))
    talk.say(0, request("SaslHandshake", 0, 2)).say(1, response("SaslHandshake", 0, 2)).say(0, framed(secret))
    young = Talk(client=("10.0.0.1", 40_001), segment_bytes=30, time_ns=talk.time_ns).open()
    young.say(0, request("ApiVersions", 3, 1, client_id="nobody-knows-me"))
    for end in (len(talk.packets) - 1, len(talk.packets)):
        file = Named(pcap([*talk.packets[:end], *young.packets[:-1]]), "0")
        _, reading = run(file, Part(last=False))
        assert len(reading.carried) == 2
        for carried in reading.carried:
            texts = [
                carried.protocol,
                carried.connection_id,
                carried.client_software,
                carried.address_a,
                carried.address_b,
                carried.files[0][1],
            ]
            assert set(strings(json.loads(carried.to_json()))) <= {*texts, None}
            assert carried.first_place is not None
            assert parse_carried(carried.to_json()) == carried


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return strings(list(value.values()))
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def pending() -> tuple[Named, Named]:
    """The first file ends with a request without its answer, and the first half of another."""
    talk = Talk().open()
    talk.say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1))
    talk.say(0, request("Heartbeat", 4, 2)).say(0, produce(3, 4_000))
    place = len(talk.packets) - 2
    talk.say(1, response("Heartbeat", 4, 2)).say(1, response("Produce", 9, 3))
    talk.say(0, request("Heartbeat", 4, 4)).say(1, response("Heartbeat", 4, 4)).close()
    return Named(pcap(talk.packets[:place]), "0"), Named(pcap(talk.packets[place:]), "1")


def test_unfinished_things_of_a_file_that_is_gone_are_told_and_reading_goes_on() -> None:
    first, second = pending()
    _, reading = run(first, Part(last=False))
    rows, reading = run(second, Part(carried=reading.carried, reopen=lambda _: None))
    # Both answers have lost their requests; the stream of requests goes on behind the one that was cut.
    assert [(row["correlation_id"], row["status"]) for row in rows] == [
        (2, "answer_only"), (3, "answer_only"), (4, "answered"),
    ]  # fmt: skip
    problems = [(file, problem.kind, problem.place) for file, problem in reading.account.kept["unfinished"]]
    assert problems == [("0", "unfinished", 5), ("0", "unfinished", 5)]


def test_file_of_the_same_name_with_other_packets_is_as_good_as_gone() -> None:
    first, second = pending()
    _, reading = run(first, Part(last=False))
    other = Named(capture("share"), "0")
    rows, reading = run(second, Part(carried=reading.carried, reopen=reopening(other)))
    assert [row["status"] for row in rows] == ["answer_only", "answer_only", "answered"]
    assert reading.account.problems["unfinished"] == 2


def test_requests_of_an_idle_connection_come_out_unanswered() -> None:
    first, _ = pending()
    rows, reading = run(first, Part(last=False))
    assert [row["status"] for row in rows] == ["answered"]
    later = Talk(client=("10.0.0.1", 50_000), time_ns=1_700_000_000_000_000_000 + IDLE_NS // 2).open()
    part = Part(carried=reading.carried, last=False, reopen=reopening(first))
    second = Named(pcap(later.packets), "1")
    rows, reading = run(second, part)
    assert rows == []
    assert len(reading.carried) == 2
    later = Talk(client=("10.0.0.1", 50_001), time_ns=later.time_ns + IDLE_NS).open()
    part = replace(part, carried=reading.carried, reopen=reopening(first, second))
    rows, reading = run(Named(pcap(later.packets), "2"), part)
    assert [(row["status"], row["correlation_id"], row["capture_uri"]) for row in rows] == [("unanswered", 2, "0")]
    assert [carried.port_a for carried in reading.carried] == [50_001]
    assert list(reading.pending()) == []
    # And the half of a Produce is lost.
    connection = reading.account.connections[0]
    whole = len(request("ApiVersions", 3, 1) + request("Heartbeat", 4, 2))
    assert (reading.account.lost_places, reading.account.lost_bytes) == (1, connection.bytes_seen[0] - whole)
    tally = reading.by_file()["2"]
    assert (tally.lost_places, tally.lost_bytes) == (1, reading.account.lost_bytes)


def test_what_trails_behind_an_end_founds_no_connection() -> None:
    talk = conversation()
    # The recording goes on for a while before it is cut.
    beside = Talk(client=("10.0.0.1", 40_001), time_ns=talk.time_ns + TRAILING_NS // 2).open()
    first = Named(pcap([*talk.packets, *beside.packets]), "0")
    again = [(talk.time_ns + SECOND, packet) for _, packet in talk.packets[3:5]]
    _, reading = run(first, Part(last=False))
    _, after = run(Named(pcap(again), "1"), Part(carried=reading.carried, reopen=reopening(first)))
    assert [connection.closed for connection in after.account.connections] == ["fin", None]
    assert after.account.connections[0].retransmitted_bytes > 0
    # Much later the ports are another connection's.
    much_later = [(time + TRAILING_NS, packet) for time, packet in again]
    other = Talk(client=("10.0.0.1", 50_000), time_ns=much_later[-1][0]).open()
    _, between = run(Named(pcap(other.packets), "1"), Part(carried=reading.carried, last=False))
    assert [connection.port_a for connection in between.carried] == [40_001, 50_000]


def test_what_trails_behind_one_connection_is_not_the_next_ones_on_its_ports() -> None:
    old = conversation()
    new = Talk(sequences=[70_000_000, 90_000_000], time_ns=old.time_ns + SECOND).open()
    new.say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1)).close()
    # Behind the SYN of the new one comes an answer of the old one, which had the other numbers.
    answers = [packet for _, packet in old.packets[3:] if packet[34:36] == (9092).to_bytes(2, "big")]
    packets = [*old.packets, new.packets[0], (new.time_ns, answers[0]), *new.packets[1:]]
    data = pcap(packets)
    whole = read_whole(data)
    assert len(whole.connections) == 2 and len(whole.exchanges) == 5
    assert differences(whole, read_parts(cut(data, [len(old.packets) + 1]))) == []


def test_losses_while_a_request_waited_are_remembered() -> None:
    """One correlation id for all requests: after a loss the order does not tell which of two an answer belongs to."""
    talk = Talk(segment_bytes=16).open()
    talk.say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1))
    for identity in (4, 5, 5, 5):
        talk.say(0, request("Heartbeat", 4, identity))
    lost = len(talk.packets)  # with the header of the frame
    talk.say(1, response("Metadata", 9, 4))
    talk.time_ns += 40 * SECOND
    for identity in (5, 5, 5):
        talk.say(1, response("Heartbeat", 4, identity))
    talk.say(0, request("Heartbeat", 4, 6)).say(1, response("Heartbeat", 4, 6)).close()
    packets = [packet for number, packet in enumerate(talk.packets) if number != lost]
    data = pcap(packets)
    whole = read_whole(data)
    assert Counter(row["status"] for row in whole.exchanges.values())["answer_only"] >= 2
    for place in range(lost, len(packets)):
        files = cut(data, [place])
        assert differences(read_together(files), read_parts(files)) == [], f"cut at {place}"


@pytest.mark.parametrize(
    "change",
    [
        {"form": 0},
        {"streams": []},
        {"asked": [[1, 2, 3]] * 65},
        {"slot": [0, 0, -5]},
        {"unheard_of": 1},
    ],
)
def test_rejects_what_no_run_has_left(change: dict[str, Any]) -> None:
    first, _ = pending()
    _, reading = run(first, Part(last=False))
    values = json.loads(reading.carried[0].to_json())
    with pytest.raises(InputError, match="the state of an earlier run"):
        parse_carried(json.dumps(values | change))


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("state", 3, 1 << 40),
        ("state", 2, 1 << 40),
        ("state", 0, 9),
        ("place", None, -1),
        ("row", 2, -7),
        ("row", None, [1]),
    ],
)
def test_rejects_numbers_that_would_lead_the_kernels_astray(name: str, at: int | None, value: Any) -> None:
    first, _ = pending()
    _, reading = run(first, Part(last=False))
    values = json.loads(reading.carried[0].to_json())
    stream = values["streams"][0]
    if at is None:
        stream[name] = value
    else:
        stream[name][at] = value
    with pytest.raises(InputError, match="can't be read"):
        parse_carried(json.dumps(values))
