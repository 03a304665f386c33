"""A broker's request log gives the exchanges that a capture gives: plain, in a container's log, split, or broken."""

import json
from collections import Counter
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from kafkascope.capture.exchanges.exchange import Exchange, to_exchanges
from kafkascope.capture.exchanges.exchanges import Recordings
from kafkascope.capture.exchanges.name_cache import NameCache
from kafkascope.capture.reader import decode_messages
from kafkascope.capture.request_log.lines import parse_time
from kafkascope.capture.request_log.reader import RequestLog
from kafkascope.codec.json_form import to_json
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import sample
from tests.capture.same_exchanges import BEGUN, both, captured
from tests.captures import NAMES, capture, request_logs
from tests.support.packet_build import Talk, pcap
from tests.support.traffic import produce
from tests.support.traffic import response as answer

AT = "[2026-11-15 10:06:17,123]"


def entry(api: str, version: int, request: dict[str, Any], response: Any, **more: Any) -> dict[str, Any]:
    key = message(f"{api}Request").key
    header = {"requestApiKey": key, "requestApiVersion": version, "correlationId": 3, "clientId": "app"}
    return {
        "isForwarded": False,
        "requestHeader": header | {"requestApiKeyName": api.upper()},
        "request": request,
        "response": response,
        "connection": "10.0.0.1:9092-10.0.0.2:51234-3-17",
        "totalTimeMs": 2.5,
        "clientInformation": {"softwareName": "librdkafka", "softwareVersion": "2.16.1"},
    } | more


def heartbeat(**more: Any) -> dict[str, Any]:
    request = {"groupId": "g", "generationId": 1, "memberId": "m"}
    return entry("Heartbeat", 1, request, {"throttleTimeMs": 5, "errorCode": 27}) | more


def line(entry: dict[str, Any]) -> str:
    return f"{AT} DEBUG Completed request:{json.dumps(entry)} (kafka.request.logger)"


def read(text: str | bytes) -> tuple[list[Exchange], RequestLog]:
    log = RequestLog(Recordings(["test.log"], [0]), names=True)
    knowledge = NameCache()
    exchanges: list[Exchange] = []
    for batch in log.read(BytesIO(text if isinstance(text, bytes) else text.encode())):
        knowledge.learn(batch)
        exchanges += to_exchanges(batch, knowledge.names(batch))
    return exchanges, log


def test_a_line_is_an_exchange() -> None:
    ((exchange,), log) = read(line(heartbeat()) + "\n")
    assert (exchange.api, exchange.api_version, exchange.correlation_id, exchange.client_id) == (
        "Heartbeat",
        1,
        3,
        "app",
    )
    assert (exchange.error, exchange.throttle_ms, exchange.status) == ("REBALANCE_IN_PROGRESS", 5, "answered")
    assert (exchange.client_address, exchange.broker_address) == ("10.0.0.2:51234", "10.0.0.1:9092")
    assert (exchange.client_software, exchange.groups, exchange.members) == ("librdkafka 2.16.1", ("g",), ("m",))
    assert (log.lines, log.entries, log.unread) == (1, 1, 0)


def test_the_line_is_written_at_the_end_and_total_time_is_the_latency() -> None:
    ((exchange,), _) = read(line(heartbeat()))
    assert exchange.response_at is not None and exchange.response_at.isoformat() == "2026-11-15T10:06:17.123000+00:00"
    assert exchange.request_at is not None and exchange.request_at.isoformat() == "2026-11-15T10:06:17.120500+00:00"
    assert exchange.latency_us == 2500


def test_client_software_is_known_from_the_line_that_names_it_on() -> None:
    software = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.16.1"}
    unknown = {"clientInformation": {"softwareName": "unknown", "softwareVersion": "unknown"}}
    first = entry("ApiVersions", 3, software, {"errorCode": 0, "apiKeys": []}, **unknown)
    (exchanges, _) = read("\n".join([line(first), line(heartbeat(**unknown))]))
    assert [exchange.client_software for exchange in exchanges] == ["librdkafka 2.16.1"] * 2


def test_sizes_are_not_known() -> None:
    ((exchange,), _) = read(line(heartbeat()))
    assert (exchange.request_bytes, exchange.response_bytes) == (None, None)


def test_bodies_are_those_of_the_log_without_record_data() -> None:
    request = {
        "transactionalId": None, "acks": -1, "timeoutMs": 30000,
        "topicData": [{"name": "t", "partitionData": [{"index": 0, "recordsSizeInBytes": 382}]}],
    }  # fmt: skip
    ((exchange,), _) = read(line(entry("Produce", 9, request, {"responses": [], "throttleTimeMs": 0})))
    assert exchange.request is not None
    assert exchange.request.value["topicData"] == [{"name": "t", "partitionData": [{"index": 0, "records": None}]}]
    assert (exchange.status, exchange.topics) == ("answered", ("t",))


def test_produce_with_acks_0_has_no_response() -> None:
    ((exchange,), _) = read(line(entry("Produce", 9, {"acks": 0, "timeoutMs": 1, "topicData": []}, "")))
    assert (exchange.status, exchange.response_at, exchange.response) == ("no_answer_expected", None, None)


def cri(text: str, size: int) -> str:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    marks = ["P"] * (len(parts) - 1) + ["F"]
    return "\n".join(
        f"2026-11-15T10:06:17.123000000Z stdout {mark} {part}" for mark, part in zip(marks, parts, strict=True)
    )


def docker(text: str, size: int) -> str:
    whole = text + "\n"
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    return "\n".join(json.dumps({"log": p, "stream": "stdout", "time": "2026-11-15T10:06:17.123Z"}) for p in parts)


LAYOUT = json.dumps({"instant": {"epochSecond": 1794737177, "nanoOfSecond": 123000000}, "level": "DEBUG"})


@pytest.mark.parametrize(
    "dressed",
    [
        cri(line(heartbeat()), 10_000),
        cri(line(heartbeat()), 100),
        cri(line(heartbeat()), 1),
        docker(line(heartbeat()), 10_000),
        docker(line(heartbeat()), 100),
        json.dumps(
            {"@timestamp": "2026-11-15T10:06:17.123Z", "message": f"Completed request:{json.dumps(heartbeat())}"}
        ),
        json.dumps(json.loads(LAYOUT) | {"message": f"Completed request:{json.dumps(heartbeat())}"}),
        f"2026-11-15T11:06:17.123+01:00 {line(heartbeat()).removeprefix(AT)}",
        line(heartbeat()) + "\r",
    ],
    ids="cri cri-split cri-letters docker docker-split json log4j2-json zone crlf".split(),
)
def test_container_logs_are_unwrapped_and_split_lines_joined(dressed: str) -> None:
    (plain, _) = read(line(heartbeat()))
    (exchanges, log) = read(f"a line of something else\n{dressed}\nanother\n")
    assert [(exchange.request_at, exchange.request, exchange.response) for exchange in exchanges] == [
        (exchange.request_at, exchange.request, exchange.response) for exchange in plain
    ]
    assert log.unread == 0


def test_parts_of_two_streams_are_not_mixed() -> None:
    out = cri(line(heartbeat()), 400).splitlines()
    mixed = "\n".join(item for part in out for item in (part, "2026-11-15T10:06:17.1Z stderr P noise"))
    assert len(read(mixed)[0]) == 1


def test_lines_that_are_no_requests_are_counted_where_they_look_like_one() -> None:
    good = line(heartbeat())
    cut = good[:200]
    old = f"{AT} DEBUG Completed request:RequestHeader(apiKey=FETCH, apiVersion=11) -- {{replica_id=-1}}"
    nested = f"{AT} DEBUG Completed request:" + "[" * 100_000
    odd = [line(heartbeat(totalTimeMs="x")), line(heartbeat(requestHeader=[])), line(heartbeat(requestHeader={}))]
    exchanges, log = read("\n".join([cut, good, old, nested, *odd, f"{AT} INFO started"]))
    assert (len(exchanges), log.lines, log.entries, log.unread) == (1, 8, 1, 6)


def test_a_body_that_the_catalog_cannot_write_is_undecoded() -> None:
    odd_body = heartbeat(request={"groupId": 7})
    unknown = heartbeat()
    unknown["requestHeader"] |= {"requestApiKey": 999}
    exchanges, log = read("\n".join([line(odd_body), line(unknown), line(heartbeat())]))
    assert [(exchange.api_key, exchange.status) for exchange in exchanges] == [
        (12, "undecoded"),
        (999, "undecoded"),
        (12, "answered"),
    ]
    assert log.unread == 0


def test_a_line_without_a_time_is_counted() -> None:
    _, log = read(f"Completed request:{json.dumps(heartbeat())}")
    assert (log.entries, log.without_time) == (1, 1)


def test_ipv6_ends_have_brackets() -> None:
    ((exchange,), _) = read(line(heartbeat(connection="0:0:0:0:0:0:0:1:9092-fe80:0:0:0:0:0:0:2%eth0:51234-0-1")))
    assert (exchange.broker_address, exchange.client_address) == ("[::1]:9092", "[fe80::2]:51234")


def test_every_api_and_version_comes_back_as_it_was_logged() -> None:
    lines, logged_bodies = [], []
    for api in apis().values():
        for version in message(f"{api}Request").all_versions():
            values = [sample(layout(f"{api}{kind}", version), 7) for kind in ("Request", "Response")]
            bodies = [
                to_json(f"{api}{kind}", version, value, records="size")
                for kind, value in zip(("Request", "Response"), values, strict=True)
            ]
            lines.append(line(entry(api, version, *bodies)))
            logged_bodies.append((api, version, bodies))
    exchanges, log = read("\n".join(lines))
    assert (len(exchanges), log.unread) == (len(logged_bodies), 0)
    wrong = []
    for exchange, (api, version, bodies) in zip(exchanges, logged_bodies, strict=True):
        for kind, logged, body in zip(
            ("Request", "Response"), bodies, (exchange.request, exchange.response), strict=True
        ):
            if "SizeInBytes" in json.dumps(logged) or (api == "ApiVersions" and exchange.error_code == 35):
                continue
            if body is None or to_json(body.name, version, body.value, records="size") != logged:
                wrong.append(f"{api}{kind} v{version}")
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_the_recorded_logs_is_read(name: str) -> None:
    for log_text in request_logs(name).values():
        exchanges, log = read(log_text)
        assert log.entries == len(exchanges) == log_text.count("Completed request:") > 0
        assert (log.unread, log.without_time) == (0, 0)
        assert {exchange.status for exchange in exchanges} <= {"answered", "no_answer_expected"}


# What one of the two recordings has alone, all of it: (what it must have, what it may have).
TOPIC_ID_LETTERS = 22
GONE = "unanswered by a node that was killed or stopped"
ALONE: dict[str, tuple[set[str], set[str]]] = {
    "share": (set(), {GONE}),
    "streams": (set(), {GONE}),
    "quorum": ({GONE}, {GONE}),
    "frozen": ({GONE, BEGUN}, {GONE, BEGUN}),
    "poison": (set(), {GONE}),
    "clients": ({"login", "ApiVersions before login", "within TLS"},) * 2,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_log_has_the_exchanges_of_the_capture_and_no_others(name: str) -> None:
    matches = both(name)
    least, most = ALONE[name]
    assert {
        kind: [exchange.api for exchange in alone] for kind, alone in matches.only.items() if kind not in most
    } == {}
    assert least <= set(matches.only)
    assert len(matches.pairs) > 300


@pytest.mark.parametrize("name", NAMES)
def test_the_log_has_every_field_of_both_bodies_but_record_data(name: str) -> None:
    for seen, line_ in both(name).pairs:
        assert seen.request == line_.request, seen.identity
        # A client that hung up before its answer, or an Envelope that was refused by a node that is not the controller:
        # the broker logs an answer that it did not send.
        refused = seen.exchange.api == "Envelope" and seen.exchange.error == "NOT_CONTROLLER"
        if seen.exchange.status == "unanswered" or refused:
            assert seen.response is None and line_.response is not None
        else:
            assert seen.response == line_.response, seen.identity


@pytest.mark.parametrize("name", NAMES)
def test_statuses_of_log_and_capture_differ_where_the_client_hung_up_alone(name: str) -> None:
    """With several requests on their way, it got no response to any of them."""
    for seen, line_ in both(name).pairs:
        if seen.exchange.status != line_.exchange.status:
            assert (seen.exchange.status, line_.exchange.status) == ("unanswered", "answered")
            same = [e for e in captured(name) if e.connection_id == seen.exchange.connection_id]
            assert {e.status for e in same[same.index(seen.exchange) :]} == {"unanswered"}


@pytest.mark.parametrize("name", NAMES)
def test_the_log_gives_the_columns_of_the_capture(name: str) -> None:
    """A topic that one node's log names by its id alone can have its name in what another sent."""
    columns = ("error_code", "throttle_ms", "max_wait_ms", "long_poll", "groups", "members")
    for seen, line_ in both(name).pairs:
        recorded, logged = seen.exchange, line_.exchange
        # An Envelope has no error and no wait of its own; the columns of the capture are the Envelope's.
        if recorded.api == "Envelope" or recorded.status == "unanswered":
            continue
        for column in columns:
            assert getattr(recorded, column) == getattr(logged, column), (column, seen.identity)
        named = {topic for topic in logged.topics or () if len(topic) != TOPIC_ID_LETTERS}
        assert named <= {*(recorded.topics or ())}, seen.identity
        assert bool(logged.topics) == bool(recorded.topics), seen.identity


@pytest.mark.parametrize("name", NAMES)
def test_the_log_knows_the_client_software_that_the_capture_knows(name: str) -> None:
    """And that of connections which are older than the capture."""
    for seen, line_ in both(name).pairs:
        recorded, logged = seen.exchange, line_.exchange
        if recorded.client_software != logged.client_software:
            first = next(e for e in captured(name) if e.connection_id == recorded.connection_id)
            assert (recorded.client_software, first.api == "ApiVersions") == (None, False), seen.identity


@pytest.mark.parametrize("name", NAMES)
def test_times_of_the_log_lie_behind_those_of_the_packets(name: str) -> None:
    """A request is read after its last byte was there, a line written after the answer's first byte left. A broker
    reads one request of a connection at a time: the log counts no wait behind another one, packets do."""
    millisecond, late = timedelta(milliseconds=1), timedelta(seconds=1)
    for seen, line_ in both(name).pairs:
        recorded, logged = seen.exchange, line_.exchange
        if (
            recorded.response_at is None
            or recorded.request_at is None
            or logged.request_at is None
            or logged.response_at is None
        ):
            continue
        # a line's time has milliseconds
        assert logged.request_at > recorded.request_at - millisecond, seen.identity
        assert logged.response_at > recorded.response_at - millisecond, seen.identity
        assert logged.response_at - logged.request_at < recorded.response_at - recorded.request_at + late, seen.identity


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("[1970-01-01 00:00:01,5]", 1_500_000_000),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("1969-12-31T23:59:59.5Z", -500_000_000),
        ("9999-99-99T99:99:99", None),
        ("noon", None),
    ],
)
def test_times_of_lines(text: str, ns: int | None) -> None:
    assert parse_time(text) == ns


def test_a_log_in_a_file_may_be_compressed(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "request.log"
    path.write_bytes(gzip.compress(line(heartbeat()).encode()))
    log = RequestLog(Recordings([str(path)], [0]))
    assert sum(len(batch) for batch in log.read(path)) == 1


def produced(*sizes: int | None) -> dict[str, Any]:
    partitions = [
        {"index": index, **({"records": None} if size is None else {"recordsSizeInBytes": size})}
        for index, size in enumerate(sizes)
    ]
    topics = [{"name": "t", "partitionData": partitions[:1]}, {"name": "u", "partitionData": partitions[1:]}]
    request = {"transactionalId": None, "acks": -1, "timeoutMs": 30000, "topicData": topics}
    return entry("Produce", 9, request, {"responses": [], "throttleTimeMs": 0})


def record_sizes(*sources: BytesIO) -> list[list[Any]]:
    (table,) = [message.table for message in decode_messages(sources) if message.name == "ProduceRequest"]
    return [
        [
            partition["records"] and partition["records"]["size"]
            for topic in topics
            for partition in topic["partition_data"]
        ]
        for topics in table.column("topic_data").to_pylist()
    ]


def test_sizes_of_record_data_are_kept() -> None:
    """Also of several lines, several topics and partitions, and beside one without records."""
    text = "\n".join(line(entry) for entry in (produced(382, 5, None), produced(7), produced(None, None)))
    assert record_sizes(BytesIO(text.encode())) == [[382, 5, None], [7], [None, None]]


@pytest.mark.parametrize("size", [-1, 1 << 40, 2.5, "12", None, [3]])
def test_size_that_is_none_is_not_told(size: Any) -> None:
    entry = produced(382, 5)
    entry["request"]["topicData"][0]["partitionData"][0]["recordsSizeInBytes"] = size
    assert record_sizes(BytesIO(line(entry).encode())) == [[None, 5]]


def test_sizes_beside_a_capture_of_the_same_message() -> None:
    talk = Talk().open().say(0, produce(1, 300)).say(1, answer("Produce", 9, 1)).close()
    sources = [BytesIO(pcap(talk.packets)), BytesIO(line(produced(382, 5)).encode())]
    sizes = [
        [topic["partition_data"][0]["records"]["size"] for topic in topics]
        for message in decode_messages(sources)
        if message.name == "ProduceRequest"
        for topics in message.table.column("topic_data").to_pylist()
    ]
    assert sorted(map(len, sizes)) == [1, 2] and [382, 5] in sizes


def told_sizes(source: BytesIO, name: str) -> Counter[tuple[int | None, ...]]:
    """Of the answers of one kind, partition by partition."""
    return Counter(
        tuple(part["records"] and part["records"]["size"] for topic in topics for part in topic["partitions"])
        for message in decode_messages(source)
        if message.name == name
        for topics in message.table.column("responses").to_pylist()
    )


def test_sizes_of_record_data_are_those_on_the_wire() -> None:
    logged: Counter[tuple[int | None, ...]] = Counter()
    for text in request_logs("streams").values():
        logged += told_sizes(BytesIO(text.encode()), "FetchResponse")
    assert logged == told_sizes(BytesIO(capture("streams")), "FetchResponse")
    assert sum(size or 0 for sizes in logged for size in sizes) > 1_000


def test_size_of_shared_records_is_not_known() -> None:
    (text,) = request_logs("share").values()
    assert '"records":""' in text
    sizes_by_row = told_sizes(BytesIO(text.encode()), "ShareFetchResponse")
    assert sizes_by_row and {size for sizes in sizes_by_row for size in sizes} == {None}
