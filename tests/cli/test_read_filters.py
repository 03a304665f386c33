"""Filters and flags of `read` with values that are odd: they hold for what they say, or are refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_read import answer, ask, consumer, producer, read_json
from tests.support.cli import Cli, is_one_line_error
from tests.support.packet_build import Talk, merged, pcap

GROUP, CLIENT = "proc[1]pro", "st[ab]"


def exchange_fields(number: int, client: str = "billing-1") -> dict[str, Any]:
    """A request as a broker's log has it."""
    return {
        "requestHeader": {"requestApiKey": 12, "requestApiVersion": 4, "correlationId": number, "clientId": client},
        "request": {"groupId": "billing", "generationId": 3, "memberId": "m-1", "groupInstanceId": None},
        "response": {"throttleTimeMs": 0, "errorCode": 25},
        "connection": "10.0.0.1:9092-10.0.0.7:51234-0-3",
        "totalTimeMs": 1.5,
    }


def log_line(request: dict[str, Any]) -> str:
    return f"[2026-11-15 09:30:00,123] DEBUG Completed request:{json.dumps(request)} (kafka.request.logger)\n"


@pytest.fixture(scope="module")
def brackets(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two clients: one on IPv6 whose names have brackets, one whose names are what those would match as classes."""
    talks = []
    for address, client, group in (("2001:db8::7f00:1", CLIENT, GROUP), ("10.0.0.9", "sta", "proc1pro")):
        server = "2001:db8::1" if ":" in address else "10.0.0.1"
        talk = Talk(client=(address, 40_572), server=(server, 9092)).open()
        for number in range(3):
            talk.say(0, ask(number, "Heartbeat", 3, client, groupId=group, memberId="m"))
            talk.say(1, answer(number, "Heartbeat", 3))
        talks.append(talk)
    path = tmp_path_factory.mktemp("filters") / "a.pcap"
    path.write_bytes(pcap(merged(talks)))
    return str(path)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--client", CLIENT),
        ("--client", "st[*]"),
        ("--group", GROUP),
        ("--group", "proc[?]*"),
        ("--client", "[2001:db8::7f00:1]:40572"),
        ("--client", "[2001:db8::7f00:1]"),
        ("--client", "2001:db8::7f00:1"),
        ("--client", "[2001:db8::*]:40572"),
        ("--client", "2001:db8::*"),
    ],
)
def test_brackets_are_letters_of_a_filter(cli: Cli, brackets: str, flag: str, value: str) -> None:
    assert [row["client_id"] for row in read_json(cli, brackets, flag, value)] == [CLIENT] * 3


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two answers without an error, one with, and a request that nobody answered."""
    talk = Talk().open()
    for number, code in ((1, 0), (2, 0), (3, 25)):
        talk.say(0, ask(number, "Heartbeat", 3)).say(1, answer(number, "Heartbeat", 3, errorCode=code))
    path = tmp_path_factory.mktemp("codes") / "a.pcap"
    path.write_bytes(pcap(talk.say(0, ask(4, "Heartbeat", 3)).packets))
    return str(path)


@pytest.mark.parametrize(
    ("expected", "ids"),
    [
        (["0"], [1, 2]),
        (["NONE"], [1, 2]),
        (["25"], [3]),
        (["0", "25"], [1, 2, 3]),
        (["any"], [3]),
        (["ANY"], [3]),
        (["Any", "0"], [3]),
        (["unknown-member-id"], [3]),
    ],
)
def test_an_error_is_one_of_an_answer(cli: Cli, codes: str, expected: list[str], ids: list[int]) -> None:
    arguments = [argument for name in expected for argument in ("--error", name)]
    assert [row["correlation_id"] for row in read_json(cli, codes, *arguments)] == ids


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--slow", "9" * 400 + "s"], 2, "is more than 100 years, the limit"),
        (["--slow", "9" * 5_000 + "h"], 2, "is more than 100 years, the limit"),
        (["--slow", "٣ms"], 2, "'٣ms' isn't a duration"),
        (["--api", "²"], 1, "unknown API ²"),
        (["--api", "٣"], 1, "unknown API ٣"),
        (["--api", "70000"], 2, "--api: 70000 is out of range; API keys are -32768 to 32767"),
        (["--api", "9" * 5_000], 1, "unknown API 999"),
        (["--error", "70000"], 2, "--error: 70000 is out of range; error codes are -32768 to 32767"),
        (["--error", "9" * 5_000], 1, "unknown error 999"),
        (["--between", "0001-01-01T00:00:00+23:59", "-"], 2, "isn't a time"),
        (["--between", "2026-01-01"], 2, "see kafkascope read --help"),
        (["--slow"], 2, "see kafkascope read --help"),
        (["--where", "latency_us > 5" + "0" * 5_000 + "x"], 2, "unknown unit 'x'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_an_odd_value_is_refused_in_one_short_line(
    cli: Cli, codes: str, arguments: list[str], code: int, message: str
) -> None:
    result = cli("read", codes, *arguments)
    assert (result.code, result.out) == (code, "")
    assert is_one_line_error(result.err) and message in result.err and len(result.err) < 250, result.err


@pytest.mark.parametrize("number", ["9223372036854775808", "99999999999999999999999", "9" * 5_000])
def test_no_column_is_greater_than_a_number_beyond_all(cli: Cli, codes: str, number: str) -> None:
    assert cli("read", codes, "--where", f"latency_us > {number}").code == 1
    assert len(read_json(cli, codes, "--where", f"api_key < {number}")) == 4


def test_an_api_that_the_catalog_does_not_know_is_asked_for_by_its_key(cli: Cli, codes: str) -> None:
    assert len(read_json(cli, codes, "--api", "012")) == 4
    assert read_json(cli, codes, "--api", "999") == read_json(cli, codes, "--api", "-5") == []


def test_an_error_that_the_catalog_does_not_know_is_asked_for_by_its_code(cli: Cli, tmp_path: Path) -> None:
    talk = Talk().open()
    for number, code in enumerate((0, 10_032, -7, 25)):
        talk.say(0, ask(number, "Heartbeat", 3)).say(1, answer(number, "Heartbeat", 3, errorCode=code))
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(talk.packets))
    assert [row["error"] for row in read_json(cli, str(path), "--error", "10032")] == ["UNKNOWN(10032)"]
    assert [row["error_code"] for row in read_json(cli, str(path), "--error", "-7", "--error", "25")] == [-7, 25]


@pytest.mark.parametrize("digits", [10, 24])
def test_of_exchanges_with_the_same_id_the_first_is_shown(cli: Cli, tmp_path: Path, digits: int) -> None:
    """A log that holds a line twice."""
    path = tmp_path / "a.log"
    path.write_text(log_line(exchange_fields(7)) * 3 + log_line(exchange_fields(8)))
    same, _, _, other = (row["exchange_id"] for row in read_json(cli, str(path)))
    for name in (same, other):
        result = cli("read", str(path), "--exchange", name[:digits])
        assert (result.code, result.err) == (0, "") and name in result.out
    first = read_json(cli, str(path))[0]["packet"]
    assert f"line {first}\n" in cli("read", str(path), "--exchange", same[:digits], COLUMNS="200").out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--api", "Fetch"],
        ["--client", "x"],
        ["--group", "x"],
        ["--topic", "x"],
        ["--error", "any"],
        ["--slow", "1ms"],
        ["--between", "-", "-"],
        ["--where", "long_poll"],
    ],
    ids=lambda value: value[0],
)
def test_filters_beside_an_id_are_refused(cli: Cli, arguments: list[str]) -> None:
    result = cli("read", "/nowhere", "--exchange", "00", *arguments)
    message = f"--exchange finds one exchange by its id; {arguments[0]} does not go with it"
    assert (result.code, result.err) == (2, f"kafkascope: {message}\n")


def test_ports_go_with_an_id(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(merged([consumer(), producer()])))
    name = read_json(cli, str(path))[0]["exchange_id"]
    assert cli("read", str(path), "--port", "9092", "--exchange", name).code == 0
