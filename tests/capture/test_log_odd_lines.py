"""A line of a request log that cannot be read is counted and costs no other line; a time that cannot be used costs the
line its time alone."""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from io import BytesIO
from typing import Any

import pytest

from kafkascope.capture.exchanges.exchange import Exchange
from kafkascope.capture.reader import decode_messages
from kafkascope.capture.request_log.lines import MARK
from tests.capture.request_log.test_reader import heartbeat, line, read
from tests.captures import NAMES, request_logs

LONE = "\ud800"


def header(**odd: Any) -> dict[str, Any]:
    entry = heartbeat()
    entry["requestHeader"] |= odd
    return entry


@pytest.mark.parametrize(
    "odd",
    [
        header(clientId=7),
        header(clientId="x" * 40_000),
        header(clientId=LONE),
        header(correlationId=1 << 40),
        header(requestApiKey=99_999),
        header(requestApiVersion=99_999),
        heartbeat(totalTimeMs=1e300),
        heartbeat(totalTimeMs=-1e300),
        heartbeat(totalTimeMs=1e13),
        heartbeat(connection=LONE),
    ],
    ids="client-int client-long client-surrogate correlation key version total negative centuries connection".split(),
)
def test_a_line_that_cannot_be_read_is_counted_and_the_others_are_read(odd: dict[str, Any]) -> None:
    good = [line(heartbeat(connection=f"10.0.0.1:9092-10.0.0.2:5123{number}-3-17")) for number in range(3)]
    (expected, _) = read("\n".join(good))
    # Twice, and a new connection between them: the first must not leave half of its own behind.
    exchanges, log = read("\n".join([good[0], line(odd), good[1], line(odd), good[2]]))
    assert (log.lines, log.entries, log.unread) == (5, 3, 2)
    assert [exchange.exchange_id for exchange in exchanges] == [exchange.exchange_id for exchange in expected]


def test_an_answer_that_cannot_be_read_leaves_the_exchange_undecoded() -> None:
    nested: Any = 1
    for _ in range(600):
        nested = [nested]
    odd = [{"errorCode": "x"}, {"errorCode": LONE}, {"errorCode": nested}, {LONE: 1}]
    exchanges, log = read("\n".join(line(heartbeat(response=response)) for response in odd))
    assert [exchange.status for exchange in exchanges] == ["undecoded"] * len(odd)
    assert log.unread == 0


def test_client_software_that_no_text_can_be_is_not_told() -> None:
    """Nor does it keep the next line from telling."""
    odd = {"softwareName": LONE, "softwareVersion": [7]}
    (alone_, _) = read(line(heartbeat(clientInformation=odd)))
    assert [exchange.client_software for exchange in alone_] == [None]
    (exchanges, _) = read("\n".join([line(heartbeat(clientInformation=odd)), line(heartbeat())]))
    assert exchanges[1].client_software == "librdkafka 2.16.1"


TIMES = ["0001-01-01", "1500-01-01", "1677-09-21", "2262-04-11", "9999-12-31", "2026-02-30"]


@pytest.mark.parametrize("day", TIMES)
def test_a_day_that_cannot_be_used_costs_the_time_alone(day: str) -> None:
    ((exchange,), log) = read(line(heartbeat()).replace("2026-11-15", day))
    assert (exchange.request_at, exchange.response_at, exchange.latency_us) == (None, None, 2500)
    assert (log.entries, log.unread, log.without_time) == (1, 0, 1)


STAMPS = [
    '{"epochSecond": 1794737177, "nanoOfSecond": "x"}',
    '{"epochSecond": 1794737177, "nanoOfSecond": null}',
    '{"epochSecond": 9000000000000000000, "nanoOfSecond": 0}',
    '{"epochSecond": true, "nanoOfSecond": 0}',
    '{"epochSecond": "x"}',
    "{}",
    "[]",
    "true",
    "1e30",
    "-1e300",
    "1e308",
    "9" * 400,
    "NaN",
    "Infinity",
    "-Infinity",
    '"noon"',
    '"9999-12-31T00:00:00Z"',
    '"0001-01-01T00:00:00+14:00"',
]


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize("name", ["@timestamp", "instant", "time"])
def test_a_time_in_json_that_cannot_be_used_costs_the_time_alone(name: str, stamp: str) -> None:
    wrapped = json.dumps({"message": f"Completed request:{json.dumps(heartbeat())}", "log": None})
    ((exchange,), log) = read(f'{{"{name}": {stamp}, {wrapped[1:]}')
    assert (exchange.request_at, exchange.response_at, exchange.latency_us) == (None, None, 2500)
    assert (log.entries, log.unread, log.without_time) == (1, 0, 1)


@pytest.mark.parametrize("stamp", STAMPS)
def test_docker_line_whose_time_cannot_be_used_has_that_of_the_broker(stamp: str) -> None:
    wrapped = json.dumps({"log": line(heartbeat()) + "\n"})
    ((exchange,), _) = read(f'{{"stream": {stamp}, "time": {stamp}, {wrapped[1:]}')
    assert exchange.response_at is not None and exchange.response_at.isoformat() == "2026-11-15T10:06:17.123000+00:00"


DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]
ODD: list[Any] = [
    *(0, -1, 1, 1 << 15, 1 << 31, 1 << 63, -(1 << 63) - 1, 1 << 64, 10**400, 1.5, -0.0, 1e308, -1e308),
    *(float("nan"), float("inf"), float("-inf"), None, True, False, [], [None], [1, 2], {}, {"x": 1}, DEEP),
    *("", "x", LONE, f"a{LONE}b", "\0", "x" * 40_000, "é" * 20_000, "-1", "NaN", "AAAA", MARK),
]
ODD_TIMES = [
    *("", "[", "[]", "noon", *TIMES, "[2026-11-15 99:99:99,999]", "[-2026-11-15 10:06:17,123]"),
    *("2026-11-15T10:06:17+99:99", "2026-11-15T10:06:60Z", "٢٠٢٦-١١-١٥ ١٠:٠٦:١٧,١٢٣", "1" * 5_000),
]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all that is no object and no list, and of empty ones."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    items = list(inside)
    for key, item in items:
        yield from leaves(item, (*path, key))
    if not items:
        yield path


def with_odd_leaf(text: str, choose: random.Random) -> str:
    entry, tail = _entry_and_rest(text)
    path = choose.choice(list(leaves(entry)))
    path = path[: choose.randint(1, len(path))]
    entry = copy.deepcopy(entry)
    holder = entry
    for key in path[:-1]:
        holder = holder[key]
    if choose.random() < 0.1 and isinstance(holder, dict):
        del holder[path[-1]]
    else:
        holder[path[-1]] = choose.choice(ODD)
    return f"{text[: text.index(MARK)]}{MARK}{json.dumps(entry)}{tail}"


def with_odd_time(text: str, choose: random.Random) -> str:
    return f"{choose.choice(ODD_TIMES)} DEBUG {text[text.index(MARK) :]}"


def in_odd_json(text: str, choose: random.Random) -> str:
    name = choose.choice(["@timestamp", "timestamp", "time", "ts", "instant"])
    stamp = choose.choice([*ODD, *ODD_TIMES, {"epochSecond": choose.choice(ODD), "nanoOfSecond": choose.choice(ODD)}])
    return json.dumps({name: stamp, "level": choose.choice(ODD), "message": text[text.index(MARK) :]})


def in_odd_container(text: str, choose: random.Random) -> str:
    if choose.random() < 0.5:
        stamp, stream = choose.choice([*ODD, *ODD_TIMES]), choose.choice(["stdout", *ODD])
        return json.dumps({"log": f"{text}\n", "time": stamp, "stream": stream})
    return f"{choose.choice(TIMES)}T{choose.choice(['99:99', '10:06:17.1', '::', '.'])}Z stdout F {text}"


def cut_or_torn(text: str, choose: random.Random) -> str:
    at = choose.randrange(len(text))
    return text[:at] + choose.choice(["", text[at + choose.randrange(1, 9) :], f'"{text[at:]}', f"\0{text[at:]}"])


MUTATIONS: list[Callable[[str, random.Random], str]] = [
    *[with_odd_leaf] * 6,
    with_odd_time,
    in_odd_json,
    in_odd_container,
    cut_or_torn,
]


def _entry_and_rest(text: str) -> tuple[Any, str]:
    at = text.index(MARK) + len(MARK)
    entry, end = json.JSONDecoder().raw_decode(text, at)
    return entry, text[end:]


def one_of_each() -> list[str]:
    """Of every API and version that the recorded logs have."""
    lines: dict[tuple[int, int], str] = {}
    for name in NAMES:
        for text in request_logs(name).values():
            for line_ in text.splitlines():
                if MARK in line_:
                    head = _entry_and_rest(line_)[0]["requestHeader"]
                    lines.setdefault((head["requestApiKey"], head["requestApiVersion"]), line_)
    return list(lines.values())


# What later lines of a connection have of earlier ones, or of the file, and the place in it.
LEARNT = {"groups", "members", "topics", "client_software", "packet"}


def alone(exchange: Exchange) -> tuple[Any, ...]:
    return tuple(getattr(exchange, field.name) for field in fields(exchange) if field.name not in LEARNT)


def test_whatever_a_line_says_nothing_is_raised_and_the_others_are_as_they_were() -> None:
    """Lines of the recorded logs, and among them others of these with something odd put in."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choose = random.Random(seed)
    real = one_of_each()
    (plain, _) = read("\n".join(real))
    expected = sorted(map(alone, plain), key=lambda row: str(row[0]))
    known = {exchange.exchange_id for exchange in plain}
    assert len(expected) == len(real) > 80
    for number in range(12):
        lines = [(text, True) for text in real]
        for _ in range(100):
            # Another correlation id: one that comes out whole must not be the same line again, which has another id.
            text = re.sub('(?<="correlationId":)', "1", choose.choice(real), count=1)
            odd = choose.choice(MUTATIONS)(text, choose).replace("\n", " ")
            if not known.intersection(exchange.exchange_id for exchange in read(odd.encode(errors="surrogatepass"))[0]):
                lines.insert(choose.randrange(len(lines) + 1), (odd, False))
        content = "\n".join(text for text, _ in lines).encode(errors="surrogatepass")
        exchanges, log = read(content)
        kept = [exchange for exchange in exchanges if lines[exchange.packet][1]]
        assert sorted(map(alone, kept), key=lambda row: str(row[0])) == expected, number
        assert log.lines == len(lines) and len(real) < log.entries == len(exchanges) < len(lines)
        for _ in decode_messages(BytesIO(content)):
            pass
