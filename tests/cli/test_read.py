"""`read`: a line an exchange, filters, one whole, statistics, JSON; bad input in one line; nothing secret is shown."""

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafkascope.capture.exchanges.exchange_columns import SCHEMA
from kafkascope.codec.frame import encode_frame
from kafkascope.codec.records.record_data import encode_records
from kafkascope.codec.records.record_types import Record, new_batch
from kafkascope.errors import UsageError
from kafkascope.extras import need_extras
from tests.captures import HERE
from tests.support.cli import COMMAND, Cli, hear_interrupts, is_one_line_error, process
from tests.support.packet_build import Talk, merged, pcap

SECRET, PRIVATE = "hunter2", "private-value"


def ask(correlation: int, api: str, version: int, client: str | None = "app", **value: Any) -> bytes:
    return encode_frame(f"{api}Request", version, value, {"correlationId": correlation, "clientId": client})


def answer(correlation: int, api: str, version: int, **value: Any) -> bytes:
    return encode_frame(f"{api}Response", version, value, {"correlationId": correlation})


def consumer() -> Talk:
    """Seconds apart: ApiVersions, Metadata, a Fetch that waits, heartbeats, one slow and one with an error."""
    talk = Talk(client=("10.0.0.7", 40_001), server=("10.0.0.1", 9092), step_ns=1_000_000).open()
    software = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.16.1"}
    talk.say(0, ask(1, "ApiVersions", 3, **software)).say(1, answer(1, "ApiVersions", 3, apiKeys=[{"apiKey": 0}]))
    talk.say(0, ask(2, "Metadata", 8, topics=[{"name": "orders"}]))
    talk.say(1, answer(2, "Metadata", 8, topics=[{"name": "orders"}], brokers=[{"nodeId": 1, "host": "b", "port": 1}]))
    topics = [{"topic": "orders", "partitions": [{"partition": 0}]}]
    talk.say(0, ask(3, "Fetch", 11, maxWaitMs=500, sessionEpoch=-1, topics=topics))
    talk.time_ns += 500_000_000
    talk.say(1, answer(3, "Fetch", 11))
    for correlation, error, wait in ((4, 0, 0), (5, 0, 150_000_000), (6, 25, 0)):
        talk.say(0, ask(correlation, "Heartbeat", 3, groupId="readers", memberId="m-1", generationId=7))
        talk.time_ns += wait
        talk.say(1, answer(correlation, "Heartbeat", 3, errorCode=error))
    return talk


def producer() -> Talk:
    talk = Talk(client=("10.0.0.8", 40_002), server=("10.0.0.1", 9092), step_ns=1_000_000)
    talk.time_ns += 500_000
    talk.open().say(0, ask(1, "SaslHandshake", 1, "billing", mechanism="PLAIN")).say(1, answer(1, "SaslHandshake", 1))
    talk.say(0, ask(2, "SaslAuthenticate", 2, "billing", authBytes=f"\0user\0{SECRET}".encode()))
    talk.say(1, answer(2, "SaslAuthenticate", 2))
    batch = new_batch([Record(0, 0, b"private-key", PRIVATE.encode(), (("private-header", b"x"),))])
    data = [{"name": "payments", "partitionData": [{"index": 0, "records": encode_records([batch])}]}]
    talk.say(0, ask(3, "Produce", 9, "billing", acks=-1, timeoutMs=1, topicData=data))
    return talk.say(1, answer(3, "Produce", 9, throttleTimeMs=40)).close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("read") / "a.pcap"
    path.write_bytes(pcap(merged([consumer(), producer()])))
    return str(path)


def rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def read_json(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    return rows(cli("read", "--json", *arguments).out)


def test_a_line_an_exchange_in_the_order_of_requests(cli: Cli, recorded: str) -> None:
    result = cli("read", recorded)
    assert result.code == 0
    day, *lines = result.out.splitlines()
    assert re.fullmatch("2023-11-14 UTC +client +→ broker +API +latency +request response", day)
    assert len(lines) == 9
    times = [line.split()[1] for line in lines]
    assert times == sorted(times)
    beat = next(line for line in lines if "UNKNOWN_MEMBER_ID" in line)
    pattern = (
        r"[0-9a-f]{10} 22:13:20\.\d{6} app +→ 10\.0\.0\.1:9092 Heartbeat v3 +1\.00 ms +37 B +14 B"
        r" UNKNOWN_MEMBER_ID group readers, member m-1, generation 7"
    )
    assert re.fullmatch(pattern, beat), beat
    assert any("throttled 40 ms topic payments, 1 partition" in line for line in lines)


def test_columns_are_aligned(cli: Cli, recorded: str) -> None:
    head, *lines = cli("read", recorded).out.splitlines()
    assert {line.index("→") for line in lines} == {head.index("→")}
    assert {line.index(" B ") for line in lines} == {head.index("request") + 5}
    assert len({line.index(" 10.0.0.1:9092 ") for line in lines}) == 1


def test_colours_on_demand_and_none_in_a_pipe(cli: Cli, recorded: str) -> None:
    assert "\033[" not in cli("read", recorded).out
    assert "\033[31;1mUNKNOWN_MEMBER_ID\033[0m" in cli("read", recorded, FORCE_COLOR="1").out


def test_json_lines_have_the_columns_of_exchanges(cli: Cli, recorded: str) -> None:
    exchanges = read_json(cli, recorded)
    assert len(exchanges) == 9
    assert {tuple(row) for row in exchanges} == {tuple(SCHEMA.names)}
    assert all(re.fullmatch(r"2023-11-14T22:13:2\d\.\d{6}Z", row["request_at"]) for row in exchanges)
    assert {row["client_software"] for row in exchanges if row["client_id"] == "app"} == {"librdkafka 2.16.1"}


@pytest.mark.parametrize(
    ("arguments", "apis"),
    [
        (["--api", "Fetch"], {"Fetch"}),
        (["--api", "fetch", "--api", "0"], {"Fetch", "Produce"}),
        (["--client", "bill*"], {"SaslHandshake", "SaslAuthenticate", "Produce"}),
        (["--client", "10.0.0.8"], {"SaslHandshake", "SaslAuthenticate", "Produce"}),
        (["--client", "10.0.0.7:40001", "--api", "Metadata"], {"Metadata"}),
        (["--group", "readers"], {"Heartbeat"}),
        (["--group", "read?rs", "--error", "any"], {"Heartbeat"}),
        (["--topic", "orders"], {"Metadata", "Fetch"}),
        (["--topic", "pay*"], {"Produce"}),
        (["--error", "UNKNOWN_MEMBER_ID"], {"Heartbeat"}),
        (["--error", "25"], {"Heartbeat"}),
        (["--slow", "100ms"], {"Heartbeat"}),
        (["--between", "2023-11-14T22:13:20.5", "-", "--api", "Heartbeat"], {"Heartbeat"}),
        (["--where", "throttle_ms > 0"], {"Produce"}),
        (["--where", 'long_poll and api == "Fetch"'], {"Fetch"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_filters_let_through_what_they_say(cli: Cli, recorded: str, arguments: list[str], apis: set[str]) -> None:
    assert {row["api"] for row in read_json(cli, recorded, *arguments)} == apis


def test_slow_leaves_long_polls_out(cli: Cli, recorded: str) -> None:
    exchanges = read_json(cli, recorded, "--slow", "100ms")
    assert [row["correlation_id"] for row in exchanges] == [5]
    assert [row["api"] for row in read_json(cli, recorded, "--where", "latency_us >= 100ms")] == ["Fetch", "Heartbeat"]


def test_between_takes_the_first_moment_and_leaves_the_last(cli: Cli, recorded: str) -> None:
    times = [row["request_at"] for row in read_json(cli, recorded)]
    exchanges = read_json(cli, recorded, "--between", times[2], times[5])
    assert [row["request_at"] for row in exchanges] == times[2:5]


def test_nothing_let_through_exits_with_1_and_says_so(cli: Cli, recorded: str) -> None:
    result = cli("read", recorded, "--topic", "nope")
    assert (result.code, result.out) == (1, "")
    assert "9 exchanges in 664 ms, 0 shown" in result.err


WHERE = [
    ("api_key == 12", 3),
    ("api_key != 12", 6),
    ("api_key == 12 and not error_code != 0", 2),
    ("(api_key == 12 or api_key == 1) and latency_us >= 150ms", 2),
    ("latency_us > 1s", 0),
    ("max_wait_ms == 500ms", 1),
    ("max_wait_ms == null", 8),
    ("max_wait_ms != null", 1),
    ("long_poll", 1),
    ("not long_poll", 8),
    ("long_poll == false", 8),
    ('client_id ~ "^bill"', 3),
    ('api in ("Fetch", "Metadata")', 2),
    ("api_version in (3, 11)", 5),
    ("request_bytes < 1kb", 9),
    ("response_bytes >= 0.001mb", 0),
    ('request_at >= "2023-11-14T22:13:20.5Z"', 3),
    ('response_at < "2023-11-14T23:13:20.5+01:00"', 5),
    ("error == 'UNKNOWN_MEMBER_ID'", 1),
    ("throttle_ms > 39.5", 1),
]


@pytest.mark.parametrize(("expression", "count"), WHERE, ids=[expression for expression, _ in WHERE])
def test_where_picks_rows(cli: Cli, recorded: str, expression: str, count: int) -> None:
    assert len(read_json(cli, recorded, "--where", expression)) == count


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "--where is empty"),
        ("nope == 1", "unknown column nope; use one of exchange_id"),
        ("api = 'Fetch'", "use == instead of = (character 5)"),
        ("api == Fetch", 'put text in quotes: "Fetch" (character 8)'),
        ("api ==", "expected a value (character 7)"),
        ("api == 5", "api is compared with text in quotes"),
        ("api_key == 'x'", "api_key is compared with a number"),
        ("long_poll == 1", "long_poll is compared with true or false"),
        ("api_key", "api_key needs a comparison"),
        ("api_key < null", "null can only be compared with == or !="),
        ("api_key == 5ms", "api_key isn't a duration"),
        ("latency_us > 5 parsecs", "unexpected 'parsecs'; expected"),
        ("latency_us > 5parsecs", "unknown unit 'parsecs'"),
        ("request_at > 'noon'", "request_at is a time"),
        ("api ~ '('", "this isn't a regular expression"),
        ("api ~ 5", "~ needs a regular expression"),
        ("(api == 'x'", "a closing bracket is missing"),
        ("api == 'x' or", "expected a column, found the end"),
        ("api in 'x'", "in needs a list in brackets"),
        ("__import__('os')", "unknown column __import__"),
        ("api == 'x'; api", "';' isn't understood"),
        ("(" * 60 + "long_poll", "more than 50 nested levels"),
        ("not " * 60 + "long_poll", "more than 50 nested levels"),
    ],
)
def test_where_says_what_is_wrong_and_where(cli: Cli, recorded: str, expression: str, message: str) -> None:
    result = cli("read", recorded, "--where", expression)
    assert (result.code, result.out) == (2, "")
    assert is_one_line_error(result.err) and message in result.err, result.err


def exchange_id(cli: Cli, recorded: str, api: str) -> str:
    return str(read_json(cli, recorded, "--api", api)[0]["exchange_id"])


def test_one_exchange_whole_names_every_byte_of_both_frames(cli: Cli, recorded: str) -> None:
    name = exchange_id(cli, recorded, "Metadata")
    out = cli.out("read", recorded, "--exchange", name)
    assert out.startswith(f"Metadata v8  {name}\n")
    for title, size in (("Request: MetadataRequest v8", 32), ("Response: MetadataResponse v8", 62)):
        shown = out.split(f"\n{title}, {size} B\n")[1].split("\nRe")[0]
        at = 0
        for offset, written in re.findall(r"^([0-9a-f]{6})  ((?:[0-9a-f]{2} ?)+)(?:  |$)", shown, re.MULTILINE):
            assert int(offset, 16) == at
            at += len(bytes.fromhex(written))
        assert at == size


def test_the_start_of_an_id_is_enough_where_it_is_the_only_one(cli: Cli, recorded: str) -> None:
    name = exchange_id(cli, recorded, "Fetch")
    assert cli.out("read", recorded, "--exchange", name[:10].upper()) == cli.out("read", recorded, "--exchange", name)
    missing = cli("read", recorded, "--exchange", "0123456789abcdef01234567")
    assert missing.code == 1 and is_one_line_error(missing.err)
    assert cli("read", recorded, "--exchange", "xyz").code == 2


def test_an_ambiguous_start_is_refused(cli: Cli, recorded: str) -> None:
    starts = [row["exchange_id"][0] for row in read_json(cli, recorded)]
    twice = next(start for start in starts if starts.count(start) > 1)
    result = cli("read", recorded, "--exchange", twice)
    assert result.code == 2 and f"{starts.count(twice)} exchange ids" in result.err


def every_way(cli: Cli, recorded: str, api: str, *more: str) -> str:
    name = exchange_id(cli, recorded, api)
    ways: tuple[list[str], ...] = (
        [],
        ["--json"],
        ["--stats"],
        ["--exchange", name, *more],
        ["--exchange", name, "--json", *more],
    )
    return "".join(answer.out + answer.err for answer in (cli("read", recorded, *way) for way in ways))


def test_credentials_are_never_shown(cli: Cli, recorded: str) -> None:
    shown = every_way(cli, recorded, "SaslAuthenticate", "--records", "--full")
    assert "authBytes = 13 bytes, hidden" in shown
    assert SECRET not in shown
    assert SECRET.encode().hex(" ") not in shown and "aHVudGVyM" not in shown


def test_record_contents_are_shown_with_records_alone(cli: Cli, recorded: str) -> None:
    shown = every_way(cli, recorded, "Produce", "--full")
    assert "offsets 0-0, 1 record" in shown
    for part in ("private-key", PRIVATE, "private-header"):
        assert part not in shown and part.encode().hex(" ")[:20] not in shown
    assert PRIVATE in cli.out("read", recorded, "--exchange", exchange_id(cli, recorded, "Produce"), "--records")


def test_records_of_the_metadata_log_are_never_shown(cli: Cli, tmp_path: Path) -> None:
    """protocol note 56: credentials and settings are replicated in it."""
    path = tmp_path / "a.pcap"
    batch = encode_records([new_batch([Record(0, 0, None, SECRET.encode())])])
    talk = consumer()
    topics = [{"topicId": UUID(int=1), "partitions": [{"partition": 0}]}]
    fetched = [{"topicId": UUID(int=1), "partitions": [{"partitionIndex": 0, "records": batch}]}]
    talk.say(0, ask(9, "Fetch", 16, "raft", topics=topics)).say(1, answer(9, "Fetch", 16, responses=fetched))
    path.write_bytes(pcap(talk.packets))
    name = str(read_json(cli, str(path), "--client", "raft")[0]["exchange_id"])
    for more in ([], ["--json"]):
        out = cli.out("read", str(path), "--exchange", name, "--records", "--full", *more)
        assert "__cluster_metadata" in out or more
        assert SECRET not in out and SECRET.encode().hex(" ") not in out and "aHVudGVyM" not in out


def test_values_of_settings_are_never_shown(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    resources = [{"resourceType": 4, "resourceName": "1", "configs": [{"name": "ssl.key", "value": SECRET}]}]
    inner = ask(3, "IncrementalAlterConfigs", 1, "admin", resources=resources)
    talk = consumer().say(0, inner).say(1, answer(3, "IncrementalAlterConfigs", 1))
    envelope = {"requestData": inner[4:], "requestPrincipal": b"", "clientHostAddress": b""}
    talk.say(0, ask(4, "Envelope", 0, "1", **envelope)).say(
        1, answer(4, "Envelope", 0, responseData=None, errorCode=31)
    )
    path.write_bytes(pcap(talk.packets))
    for api in ("IncrementalAlterConfigs", "Envelope"):
        shown = every_way(cli, str(path), api, "--records", "--full")
        assert "ssl.key" in shown
        assert SECRET not in shown and SECRET.encode().hex(" ") not in shown and "aHVudGVyM" not in shown


def test_one_exchange_as_json_has_its_columns_and_both_bodies(cli: Cli, recorded: str) -> None:
    name = exchange_id(cli, recorded, "Heartbeat")
    document = json.loads(cli.out("read", recorded, "--exchange", name, "--json"))
    assert document["exchange_id"] == name
    assert document["request"] == {"groupId": "readers", "generationId": 7, "memberId": "m-1", "groupInstanceId": None}
    assert document["response"] == {"throttleTimeMs": 0, "errorCode": 0}


def test_stats_count_by_api_client_and_connection(cli: Cli, recorded: str) -> None:
    document = json.loads(cli("read", recorded, "--stats", "--json").out)
    beats = next(row for row in document["apis"] if row["api"] == "Heartbeat")
    assert (beats["calls"], beats["errors"], beats["unanswered"], beats["long_poll"]) == (3, 1, 0, False)
    assert beats["slowest_us"] == 151_000
    assert abs(beats["p99_us"] - 151_000) <= 1510 and abs(beats["p50_us"] - 1000) <= 10
    assert beats["request_bytes"] == 3 * 37
    assert {row["client_id"]: row["calls"] for row in document["clients"]} == {"app": 6, "billing": 3}
    app = next(row for row in document["clients"] if row["client_id"] == "app")
    assert app["slowest_us"] == 151_000, "a long poll is not slow"
    assert len(document["connections"]) == 2
    assert document["errors"] == [{"api": "Heartbeat", "error": "UNKNOWN_MEMBER_ID", "count": 1}]


def test_stats_as_tables_have_the_same(cli: Cli, recorded: str) -> None:
    out = cli("read", recorded, "--stats").out
    assert re.search(r"^  Heartbeat +3 +111 B +42 B +1 +\d", out, re.MULTILINE)
    assert re.search(r"^  Fetch \(waits\) +1 ", out, re.MULTILINE)
    assert re.search(r"^  10\.0\.0\.7:40001 → 10\.0\.0\.1:9092 +6 ", out, re.MULTILINE)


def test_the_account_goes_to_stderr(cli: Cli, recorded: str) -> None:
    result = cli("read", recorded)
    assert re.fullmatch(r"\d+ packets read: 9 exchanges in 664 ms\n", result.err), result.err


def test_bad_input_is_one_line_with_its_exit_code(cli: Cli, tmp_path: Path) -> None:
    empty, text = tmp_path / "empty.pcap", tmp_path / "text.pcap"
    empty.write_bytes(b"")
    text.write_text("hello\n")
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(pcap([])[:10])
    for path, code, message in (
        (empty, 3, "is empty"),
        (text, 3, "it is text without a line of a broker's request log"),
        (tmp_path, 3, "is a directory"),
        (tmp_path / "nowhere", 3, "no such file"),
        (cut, 3, "cut.pcap"),
    ):
        result = cli("read", str(path))
        assert (result.code, result.out) == (code, ""), path
        assert is_one_line_error(result.err) and message in result.err, result.err


def test_a_capture_without_kafka_says_what_it_has(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(194)
    path.write_bytes(pcap(Talk().open().say(0, hello).say(1, hello).close().packets))
    result = cli("read", str(path))
    assert (result.code, result.out) == (1, "")
    assert is_one_line_error(result.err)
    assert "no Kafka in it (1 TLS of 1 connection)" in result.err
    assert "kafka.request.logger" in result.err
    path.write_bytes(pcap([]))
    assert cli("read", str(path)).code == 1


def test_much_tls_beside_kafka_is_told_with_what_to_do(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(194)
    tls = Talk(client=("10.0.0.9", 41_000), server=("10.0.0.1", 9093)).open().say(0, hello).say(1, hello)
    path.write_bytes(pcap(merged([consumer(), tls])))
    result = cli("read", str(path))
    assert result.code == 0
    assert "not Kafka: 1 connection TLS (410 B)" in result.err
    assert "Record on a plain listener, or give the broker's request log instead" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--slow", "soon"], "'soon' isn't a duration"),
        (["--between", "noon", "-"], "'noon' isn't a time"),
        (["--records"], "--records and --full need --exchange"),
        (["--stats", "--follow"], "--stats needs the whole recording"),
        (["--exchange", "00", "--stats"], "--exchange prints one exchange"),
        (["--port", "x"], "isn't a whole number"),
    ],
)
def test_wrong_use_is_told_before_anything_is_read(cli: Cli, arguments: list[str], message: str) -> None:
    result = cli("read", "/nowhere", *arguments)
    assert result.code == 2 and is_one_line_error(result.err) and message in result.err, result.err


def test_names_that_do_not_exist_are_not_found(cli: Cli) -> None:
    for arguments, message in ((["--api", "Fetsh"], "did you mean Fetch"), (["--error", "NOPE"], "unknown error")):
        result = cli("read", "/nowhere", *arguments)
        assert result.code == 1 and message in result.err


def test_a_missing_extra_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"^read needs pyarrow: pip install 'kafkascope\[columns\]'$"):
        need_extras("read", "columns")


def test_names_from_the_wire_do_not_steer_the_terminal(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    talk = Talk().open()
    for number in range(3):
        talk.say(0, ask(number, "Heartbeat", 3, groupId="\033]0;own\007", memberId="\033[2Jx"))
        talk.say(1, answer(number, "Heartbeat", 3))
    path.write_bytes(pcap(talk.packets))
    name = exchange_id(cli, str(path), "Heartbeat")
    for way in ([], ["--stats"], ["--exchange", name], ["--json"]):
        assert "\033" not in cli("read", str(path), *way).out


def test_standard_input_is_read(cli: Cli, recorded: str) -> None:
    done = process("read", "-", "--json", stdin=Path(recorded).read_bytes())
    assert done.returncode == 0
    assert [row["api"] for row in rows(done.stdout.decode())] == [row["api"] for row in read_json(cli, recorded)]


def test_follow_shows_what_is_added_until_interrupted(tmp_path: Path, recorded: str) -> None:
    path = tmp_path / "growing.pcap"
    whole = Path(recorded).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    command = [COMMAND, "read", str(path), "--follow", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=hear_interrupts)
    # Ends a run that hangs, and is never reached by one that works.
    guard = threading.Timer(120, child.kill)
    guard.start()
    try:
        assert child.stdout is not None
        first = json.loads(child.stdout.readline())
        with path.open("ab") as file:
            file.write(whole[len(whole) // 2 :])
        seen = {first["exchange_id"]}
        while len(seen) < 9:
            seen.add(json.loads(child.stdout.readline())["exchange_id"])
        child.send_signal(signal.SIGINT)
        assert child.wait() == 130
    finally:
        guard.cancel()
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def test_a_request_log_is_read_like_a_capture(cli: Cli) -> None:
    path = str(HERE / "share" / "request-1.log.xz")
    result = cli("read", path, "--api", "ShareFetch")
    assert result.code == 0
    assert all("ShareFetch v" in line for line in result.out.splitlines()[1:])
    assert "log lines read" in result.err


def test_a_body_that_is_not_its_message_says_where(cli: Cli, tmp_path: Path) -> None:
    """In the list and for the exchange alone, also inside an Envelope; no byte of it is shown."""
    good = ask(1, "ApiVersions", 0), answer(1, "ApiVersions", 0, apiKeys=[{"apiKey": 0}])
    cut_off = answer(2, "Metadata", 8, topics=[{"name": PRIVATE}])[4:-9]
    inside = ask(3, "Heartbeat", 3, groupId=PRIVATE, memberId="m")[4:-9]
    talk = Talk().open().say(0, good[0]).say(1, good[1]).say(0, ask(2, "Metadata", 8, topics=[{"name": "orders"}]))
    talk.say(1, len(cut_off).to_bytes(4, "big") + cut_off)
    talk.say(0, ask(3, "Envelope", 0, requestData=inside)).say(1, answer(3, "Envelope", 0))
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(talk.packets))
    _, _, metadata, envelope = cli("read", str(path)).out.splitlines()
    assert re.search(r"cannot be read: MetadataResponse v8.* \(offset \d+\)", metadata)
    assert re.search(r"cannot be read: HeartbeatRequest v3.* \(offset \d+\)", envelope)
    for line, message in ((metadata, "MetadataResponse v8"), (envelope, "HeartbeatRequest v3")):
        whole = cli("read", str(path), "--exchange", line.split()[0]).out
        assert f"cannot be read: {message}" in " ".join(whole.split())
        assert PRIVATE not in line
