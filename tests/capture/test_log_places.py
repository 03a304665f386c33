"""Which line of a request log an exchange is: its number in the file, and its name."""

import json
import re
import time
from io import BytesIO, RawIOBase
from pathlib import Path
from typing import Any

import pytest

from kafkascope.capture.exchanges.exchange import Exchange, to_exchanges
from kafkascope.capture.exchanges.exchanges import Recordings
from kafkascope.capture.exchanges.name_cache import NameCache
from kafkascope.capture.reader import Reading
from kafkascope.capture.request_log.reader import RequestLog
from tests.capture.request_log.test_reader import cri, docker, heartbeat, line, read
from tests.captures import NAMES, request_logs


class Pieces(RawIOBase):
    """A pipe that has a few bytes at a time."""

    def __init__(self, content: bytes, size: int) -> None:
        self._rest, self._size = content, size

    def readinto(self, view: Any) -> int:
        piece, self._rest = self._rest[: min(self._size, len(view))], self._rest[min(self._size, len(view)) :]
        view[: len(piece)] = piece
        return len(piece)

    def readable(self) -> bool:
        return True


def exchanges(*sources: Any, **options: Any) -> list[Exchange]:
    reading, knowledge = Reading(list(sources), names=True, **options), NameCache()
    batches_exchanges: list[Exchange] = []
    for batch in reading.batches():
        knowledge.learn(batch)
        batches_exchanges += to_exchanges(batch, knowledge.names(batch))
    return batches_exchanges


def request_line(number: int) -> str:
    entry = heartbeat()
    entry["requestHeader"] |= {"correlationId": number}
    return line(entry)


@pytest.mark.parametrize("name", NAMES)
def test_packet_is_the_number_of_the_line_however_the_file_comes(name: str, tmp_path: Path) -> None:
    text = max(request_logs(name).values(), key=len)
    lines = text.split("\n")
    path = tmp_path / "request.log"
    path.write_text(text)
    whole = exchanges(path)
    assert len(whole) > 300
    for exchange in whole:
        assert f'"correlationId":{exchange.correlation_id},' in lines[exchange.packet]
    assert len({exchange.packet for exchange in whole}) == len(whole)

    def places(listed: list[Exchange]) -> dict[str, int]:
        return {exchange.exchange_id: exchange.packet for exchange in listed}

    expected = places(whole)
    assert places(exchanges(Pieces(text.encode(), 10_000))) == expected
    assert places(exchanges(BytesIO(text.encode()))) == expected
    assert places(exchanges(path, follow=True, deadline=time.monotonic() + 0.3)) == expected


def test_other_lines_and_empty_ones_count() -> None:
    text = "\n".join(["started", "", request_line(0), "", "noise", request_line(1), ""])
    assert [(exchange.correlation_id, exchange.packet) for exchange in exchanges(Pieces(text.encode(), 7))] == [
        (0, 2),
        (1, 5),
    ]


@pytest.mark.parametrize("dress", [cri, docker])
def test_a_line_that_was_split_has_the_number_of_its_first_part(dress: Any) -> None:
    first = dress(request_line(0), 100)
    text = f"started\n{first}\n{dress(request_line(1), 10_000)}\n"
    listed, log = read(text)
    assert [(exchange.correlation_id, exchange.packet) for exchange in listed] == [(0, 1), (1, 2 + first.count("\n"))]
    assert log.lines == text.count("\n")


def test_lines_of_the_second_file_count_from_0(tmp_path: Path) -> None:
    """Also where the first has more lines than the log has."""
    paths = [tmp_path / "a.log", tmp_path / "b.log"]
    paths[0].write_text(cri(request_line(0), 50) + "\n" + request_line(1) + "\n")
    paths[1].write_text("started\n" + request_line(2) + "\n")
    listed = exchanges(*paths)
    assert [(exchange.correlation_id, Path(exchange.capture_uri).name) for exchange in listed] == [
        (0, "a.log"),
        (1, "a.log"),
        (2, "b.log"),
    ]
    assert [exchange.packet for exchange in listed] == [0, cri(request_line(0), 50).count("\n") + 1, 1]


def rest_of(content: str, known: str) -> list[tuple[int | None, int]]:
    """What is new to someone who has read `known`, as an ingest asks for it: whole lines alone count as read."""
    before = RequestLog(Recordings(["a"], [0]))
    for _ in before.read(BytesIO(known.encode())):
        pass
    skip = before.lines if known.endswith("\n") else before.lines - 1
    log, knowledge = RequestLog(Recordings(["a"], [0]), names=True), NameCache()
    listed: list[Exchange] = []
    for batch in log.read(BytesIO(content.encode()), skip=skip):
        listed += to_exchanges(batch, knowledge.names(batch))
    assert log.lines == len(content.splitlines())
    return [(exchange.correlation_id, exchange.packet) for exchange in listed]


def test_a_log_that_has_grown_goes_on_behind_the_lines_that_were_read() -> None:
    content = "".join(f"{request_line(number)}\n" for number in range(4))
    for lines in range(4):
        known = "".join(f"{request_line(number)}\n" for number in range(lines))
        expected = [(number, number) for number in range(lines, 4)]
        assert rest_of(content, known + request_line(lines)[:200]) == expected
        assert lines == 0 or rest_of(content, known) == expected


def test_a_log_that_had_ended_within_a_split_line_gives_it_when_it_is_whole() -> None:
    parts = cri(request_line(1), 100).split("\n")
    content = "\n".join([cri(request_line(0), 10_000), *parts, cri(request_line(2), 10_000), ""])
    for count in range(1, len(parts)):
        known = "\n".join([cri(request_line(0), 10_000), *parts[:count], ""])
        assert rest_of(content, known) == [(1, 1), (2, 1 + len(parts))]


def test_lines_that_differ_in_anything_have_names_of_their_own() -> None:
    """Clients whose requests a broker forwards on one connection can have one correlation id in one millisecond."""
    entries = [heartbeat(), heartbeat(totalTimeMs=2.501), heartbeat(isForwarded=True), heartbeat(response={})]
    listed, _ = read("\n".join(map(line, entries)))
    assert len({exchange.exchange_id for exchange in listed}) == len(entries)
    apart = {exchange.exchange_id for each in entries for exchange in read(line(each))[0]}
    assert apart == {exchange.exchange_id for exchange in listed}


def test_the_same_line_again_has_another_name() -> None:
    (listed, _) = read("\n".join([line(heartbeat())] * 5))
    assert len({exchange.exchange_id for exchange in listed}) == 5
    assert [exchange.packet for exchange in listed] == list(range(5))
    ((first,), _) = read(line(heartbeat()))
    assert listed[0].exchange_id == first.exchange_id


def test_the_same_line_again_has_the_name_that_it_has_where_all_is_read_at_once() -> None:
    (whole, _) = read("\n".join([line(heartbeat())] * 5))
    log, knowledge = RequestLog(Recordings(["a"], [0])), NameCache()
    listed: list[Exchange] = []
    for batch in log.read(BytesIO("\n".join([line(heartbeat())] * 5).encode()), skip=2):
        listed += to_exchanges(batch, knowledge.names(batch))
    assert [exchange.exchange_id for exchange in listed] == [exchange.exchange_id for exchange in whole[2:]]


@pytest.mark.parametrize("name", NAMES)
def test_names_do_not_depend_on_where_a_log_was_cut(name: str) -> None:
    for text in request_logs(name).values():
        lines = text.splitlines(keepends=True)
        half = len(lines) // 2
        (whole, _), parts = read(text), [read("".join(part))[0] for part in (lines[:half], lines[half:])]
        ids = [exchange.exchange_id for exchange in whole]
        assert len(set(ids)) == len(ids)
        assert set(ids) == {exchange.exchange_id for part in parts for exchange in part}


def untimed(number: int, **more: Any) -> str:
    entry = heartbeat(**more)
    entry["requestHeader"] |= {"correlationId": number}
    return f"Completed request:{json.dumps(entry)}"


def test_what_no_line_tells_the_time_of_is_null_and_its_latency_known() -> None:
    listed, log = read("\n".join([untimed(0), untimed(1, totalTimeMs=0), untimed(2, totalTimeMs=86_400_000)]))
    assert {(exchange.request_at, exchange.response_at) for exchange in listed} == {(None, None)}
    assert [exchange.latency_us for exchange in listed] == [2500, 0, 86_400_000_000]
    assert (log.entries, log.without_time) == (3, 3)


def test_lines_without_a_time_stay_where_they_stand_in_the_log() -> None:
    lines = [
        untimed(0),
        untimed(1, totalTimeMs=9),
        request_line(2),
        untimed(3, totalTimeMs=8),
        untimed(4),
        request_line(5),
    ]
    lines[-1] = re.sub("2026-11-15", "2026-11-16", lines[-1])
    (listed, _) = read("\n".join(lines))
    assert [exchange.correlation_id for exchange in listed] == list(range(6))
    assert [exchange.request_at is None for exchange in listed] == [True, True, False, True, True, False]


def test_lines_of_one_time_stay_in_their_order() -> None:
    (listed, _) = read("\n".join(map(request_line, (5, 3, 9, 1))))
    assert [exchange.correlation_id for exchange in listed] == [5, 3, 9, 1]
