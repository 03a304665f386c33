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
    found: list[Exchange] = []
    for batch in reading.batches():
        knowledge.learn(batch)
        found += to_exchanges(batch, knowledge.names(batch))
    return found


def asked(number: int) -> str:
    told = heartbeat()
    told["requestHeader"] |= {"correlationId": number}
    return line(told)


@pytest.mark.parametrize("name", NAMES)
def test_packet_is_the_number_of_the_line_however_the_file_comes(name: str, tmp_path: Path) -> None:
    text = max(request_logs(name).values(), key=len)
    lines = text.split("\n")
    path = tmp_path / "request.log"
    path.write_text(text)
    whole = exchanges(path)
    assert len(whole) > 300
    for one in whole:
        assert f'"correlationId":{one.correlation_id},' in lines[one.packet]
    assert len({one.packet for one in whole}) == len(whole)

    def places(found: list[Exchange]) -> dict[str, int]:
        return {one.exchange_id: one.packet for one in found}

    wanted = places(whole)
    assert places(exchanges(Pieces(text.encode(), 10_000))) == wanted
    assert places(exchanges(BytesIO(text.encode()))) == wanted
    assert places(exchanges(path, follow=True, deadline=time.monotonic() + 0.3)) == wanted


def test_other_lines_and_empty_ones_count() -> None:
    text = "\n".join(["started", "", asked(0), "", "noise", asked(1), ""])
    assert [(one.correlation_id, one.packet) for one in exchanges(Pieces(text.encode(), 7))] == [(0, 2), (1, 5)]


@pytest.mark.parametrize("dress", [cri, docker])
def test_a_line_that_was_split_has_the_number_of_its_first_part(dress: Any) -> None:
    first = dress(asked(0), 100)
    text = f"started\n{first}\n{dress(asked(1), 10_000)}\n"
    found, log = read(text)
    assert [(one.correlation_id, one.packet) for one in found] == [(0, 1), (1, 2 + first.count("\n"))]
    assert log.lines == text.count("\n")


def test_lines_of_the_second_file_count_from_0(tmp_path: Path) -> None:
    """Also where the first has more lines than the log has."""
    paths = [tmp_path / "a.log", tmp_path / "b.log"]
    paths[0].write_text(cri(asked(0), 50) + "\n" + asked(1) + "\n")
    paths[1].write_text("started\n" + asked(2) + "\n")
    found = exchanges(*paths)
    assert [(one.correlation_id, Path(one.capture_uri).name) for one in found] == [
        (0, "a.log"),
        (1, "a.log"),
        (2, "b.log"),
    ]
    assert [one.packet for one in found] == [0, cri(asked(0), 50).count("\n") + 1, 1]


def rest_of(content: str, known: str) -> list[tuple[int | None, int]]:
    """What is new to someone who has read `known`, as an ingest asks for it: whole lines alone count as read."""
    before = RequestLog(Recordings(["a"], [0]))
    for _ in before.read(BytesIO(known.encode())):
        pass
    skip = before.lines if known.endswith("\n") else before.lines - 1
    log, knowledge = RequestLog(Recordings(["a"], [0]), names=True), NameCache()
    found: list[Exchange] = []
    for batch in log.read(BytesIO(content.encode()), skip=skip):
        found += to_exchanges(batch, knowledge.names(batch))
    assert log.lines == len(content.splitlines())
    return [(one.correlation_id, one.packet) for one in found]


def test_a_log_that_has_grown_goes_on_behind_the_lines_that_were_read() -> None:
    content = "".join(f"{asked(number)}\n" for number in range(4))
    for lines in range(4):
        known = "".join(f"{asked(number)}\n" for number in range(lines))
        wanted = [(number, number) for number in range(lines, 4)]
        assert rest_of(content, known + asked(lines)[:200]) == wanted
        assert lines == 0 or rest_of(content, known) == wanted


def test_a_log_that_had_ended_within_a_split_line_gives_it_when_it_is_whole() -> None:
    parts = cri(asked(1), 100).split("\n")
    content = "\n".join([cri(asked(0), 10_000), *parts, cri(asked(2), 10_000), ""])
    for there in range(1, len(parts)):
        known = "\n".join([cri(asked(0), 10_000), *parts[:there], ""])
        assert rest_of(content, known) == [(1, 1), (2, 1 + len(parts))]


def test_lines_that_differ_in_anything_have_names_of_their_own() -> None:
    """Clients whose requests a broker forwards on one connection can have one correlation id in one millisecond."""
    told = [heartbeat(), heartbeat(totalTimeMs=2.501), heartbeat(isForwarded=True), heartbeat(response={})]
    found, _ = read("\n".join(map(line, told)))
    assert len({one.exchange_id for one in found}) == len(told)
    apart = {one.exchange_id for each in told for one in read(line(each))[0]}
    assert apart == {one.exchange_id for one in found}


def test_the_same_line_again_has_another_name() -> None:
    (found, _) = read("\n".join([line(heartbeat())] * 5))
    assert len({one.exchange_id for one in found}) == 5
    assert [one.packet for one in found] == list(range(5))
    ((first,), _) = read(line(heartbeat()))
    assert found[0].exchange_id == first.exchange_id


def test_the_same_line_again_has_the_name_that_it_has_where_all_is_read_at_once() -> None:
    (whole, _) = read("\n".join([line(heartbeat())] * 5))
    log, knowledge = RequestLog(Recordings(["a"], [0])), NameCache()
    found: list[Exchange] = []
    for batch in log.read(BytesIO("\n".join([line(heartbeat())] * 5).encode()), skip=2):
        found += to_exchanges(batch, knowledge.names(batch))
    assert [one.exchange_id for one in found] == [one.exchange_id for one in whole[2:]]


@pytest.mark.parametrize("name", NAMES)
def test_names_do_not_depend_on_where_a_log_was_cut(name: str) -> None:
    for text in request_logs(name).values():
        lines = text.splitlines(keepends=True)
        half = len(lines) // 2
        (whole, _), parts = read(text), [read("".join(part))[0] for part in (lines[:half], lines[half:])]
        ids = [one.exchange_id for one in whole]
        assert len(set(ids)) == len(ids)
        assert set(ids) == {one.exchange_id for part in parts for one in part}


def untimed(number: int, **more: Any) -> str:
    told = heartbeat(**more)
    told["requestHeader"] |= {"correlationId": number}
    return f"Completed request:{json.dumps(told)}"


def test_what_no_line_tells_the_time_of_is_null_and_its_latency_known() -> None:
    found, log = read("\n".join([untimed(0), untimed(1, totalTimeMs=0), untimed(2, totalTimeMs=86_400_000)]))
    assert {(one.request_at, one.response_at) for one in found} == {(None, None)}
    assert [one.latency_us for one in found] == [2500, 0, 86_400_000_000]
    assert (log.entries, log.without_time) == (3, 3)


def test_lines_without_a_time_stay_where_they_stand_in_the_log() -> None:
    lines = [untimed(0), untimed(1, totalTimeMs=9), asked(2), untimed(3, totalTimeMs=8), untimed(4), asked(5)]
    lines[-1] = re.sub("2026-11-15", "2026-11-16", lines[-1])
    (found, _) = read("\n".join(lines))
    assert [one.correlation_id for one in found] == list(range(6))
    assert [one.request_at is None for one in found] == [True, True, False, True, True, False]


def test_lines_of_one_time_stay_in_their_order() -> None:
    (found, _) = read("\n".join(map(asked, (5, 3, 9, 1))))
    assert [one.correlation_id for one in found] == [5, 3, 9, 1]
