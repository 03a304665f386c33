"""Requests and responses become exchanges: in order, by correlation id, and whatever is missing or odd is data."""

from random import Random
from uuid import UUID

import pytest

from kafkascope.capture.exchanges.bodies import decode_request, decode_response
from kafkascope.capture.exchanges.exchange import Exchange
from kafkascope.capture.exchanges.facts import facts_of, names_of
from kafkascope.capture.frames.scan_program import (
    Fact,
    NameKind,
)
from kafkascope.codec.frame import encode_frame
from kafkascope.codec.message import encode
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import sample
from tests.support.frames import Wire
from tests.support.hexes import hexes

ORDERS = UUID(int=77)


def only(exchanges: list[Exchange]) -> Exchange:
    (exchange,) = exchanges
    return exchange


def test_a_request_and_its_response_are_one_exchange() -> None:
    exchange = only(Wire().ask("Heartbeat", 4, {"groupId": "g", "memberId": "m"}).answer("Heartbeat", 4).exchanges())
    assert (exchange.api_key, exchange.api, exchange.api_version, exchange.status) == (12, "Heartbeat", 4, "answered")
    assert (exchange.client_id, exchange.client_address, exchange.broker_address) == (
        "app",
        "10.0.0.2:40000",
        "10.0.0.1:9092",
    )
    assert (exchange.latency_us, exchange.long_poll, exchange.correlation_id) == (1000, False, 1)
    assert (exchange.groups, exchange.members) == (("g",), ("m",))
    assert exchange.request is not None and exchange.request.value["groupId"] == "g"
    assert exchange.response is not None and exchange.response.value["errorCode"] == 0


def test_sizes_count_the_length_prefix() -> None:
    wire = Wire().ask("Heartbeat", 4).answer("Heartbeat", 4)
    exchange = only(wire.exchanges())
    assert exchange.request_bytes == len(wire.rows[0][0]) + 4
    assert exchange.response_bytes == len(wire.rows[1][0]) + 4


def test_responses_pair_by_correlation_id_on_their_own_connection() -> None:
    wire = Wire()
    wire.ask("Heartbeat", 0, correlation=5, on=0, client="a").ask("ListGroups", 0, correlation=5, on=1, client="b")
    wire.answer("ListGroups", 0, correlation=5, on=1).answer("Heartbeat", 0, correlation=5, on=0)
    assert [(exchange.api, exchange.client_id, exchange.latency_us) for exchange in wire.exchanges()] == [
        ("Heartbeat", "a", 3000),
        ("ListGroups", "b", 1000),
    ]


def test_correlation_ids_need_neither_rise_nor_differ() -> None:
    """protocol note 12: Java's SASL start-up counts from 2147483640; other clients send 0 always."""
    wire = Wire()
    for correlation in (2147483640, 2147483641, 0, 1, 2147483640, 0, 0):
        wire.ask("Heartbeat", 0, correlation=correlation).answer("Heartbeat", 0, correlation=correlation)
    assert [exchange.status for exchange in wire.exchanges()] == ["answered"] * 7


def test_requests_in_flight_with_one_correlation_id_pair_in_order() -> None:
    wire = Wire()
    wire.ask("Heartbeat", 0, correlation=0).ask("ListGroups", 0, correlation=0)
    wire.answer("Heartbeat", 0, correlation=0).answer("ListGroups", 0, {"errorCode": 15}, correlation=0)
    assert [(exchange.api, exchange.error, exchange.latency_us) for exchange in wire.exchanges()] == [
        ("Heartbeat", None, 2000),
        ("ListGroups", "COORDINATOR_NOT_AVAILABLE", 2000),
    ]


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("client", [None, "", "app"])
@pytest.mark.parametrize("transaction", [None, "tx"])
@pytest.mark.parametrize("acks", [0, 1, -1])
def test_only_produce_with_acks_0_gets_no_answer(
    version: int, client: str | None, transaction: str | None, acks: int
) -> None:
    value = {"acks": acks} | ({"transactionalId": transaction} if version >= 3 else {})
    exchange = only(Wire().ask("Produce", version, value, client=client).exchanges())
    assert exchange.status == ("no_answer_expected" if acks == 0 else "unanswered")
    assert exchange.client_id == client


def test_acks_0_does_not_disturb_the_order() -> None:
    wire = Wire().ask("Produce", 9, {"acks": 0}, correlation=1).ask("Heartbeat", 4, correlation=2)
    wire.answer("Heartbeat", 4, correlation=2)
    assert [exchange.status for exchange in wire.exchanges()] == ["no_answer_expected", "answered"]


def test_a_response_says_that_earlier_requests_are_not_answered() -> None:
    wire = Wire().ask("Heartbeat", 0, correlation=1).ask("Heartbeat", 0, correlation=2)
    wire.answer("Heartbeat", 0, correlation=2)
    assert [(exchange.correlation_id, exchange.status) for exchange in wire.exchanges()] == [
        (1, "unanswered"),
        (2, "answered"),
    ]


def test_a_response_recorded_before_its_request_is_its_answer_without_a_latency() -> None:
    wire = Wire().answer("Heartbeat", 0, {"errorCode": 27}, at=10).ask("Heartbeat", 0, at=11)
    exchange = only(wire.exchanges())
    assert (exchange.status, exchange.error, exchange.latency_us) == ("answered", "REBALANCE_IN_PROGRESS", None)


def test_a_response_of_long_ago_is_not_the_answer_to_a_request() -> None:
    wire = Wire().answer("Heartbeat", 0, at=0).ask("Heartbeat", 0, at=5000)
    assert [exchange.status for exchange in wire.exchanges()] == ["answer_only", "unanswered"]


def test_a_capture_that_starts_in_the_middle_has_answers_alone() -> None:
    wire = Wire().answer("Heartbeat", 0, correlation=41).ask("Heartbeat", 0, correlation=42)
    wire.answer("Heartbeat", 0, correlation=42)
    exchanges = wire.exchanges()
    assert [(exchange.correlation_id, exchange.status) for exchange in exchanges] == [
        (41, "answer_only"),
        (42, "answered"),
    ]
    assert (exchanges[0].api, exchanges[0].api_version, exchanges[0].request_at, exchanges[0].response) == (
        None,
        None,
        None,
        None,
    )


def test_the_end_of_the_answering_stream_leaves_requests_unanswered_at_once() -> None:
    wire = Wire().ask("Heartbeat", 0).end(1).ask("Heartbeat", 0, on=1).answer("Heartbeat", 0, on=1)
    assert [exchange.status for exchange in wire.exchanges(step=2)] == ["unanswered", "answered"]


def test_lost_bytes_of_answers_are_counted_with_the_requests_that_waited() -> None:
    from kafkascope.capture.exchanges.exchanges import Pairer, Recordings
    from tests.support.frames import connection

    wire = Wire().ask("Heartbeat", 0, correlation=1).lose(100, 1).ask("Heartbeat", 0, correlation=2)
    wire.answer("Heartbeat", 0, correlation=2)
    pairer = Pairer([connection(0)], Recordings(["x"], [0]))
    pairer.feed(wire.frames())
    assert pairer.lost_answers == 1


def test_sasl_tokens_after_handshake_v0_are_exchanges_without_an_api_key() -> None:
    """protocol notes 6 and 7: a raw token has no header, and the answer to PLAIN has length 0."""
    wire = Wire().ask("SaslHandshake", 0, {"mechanism": "PLAIN"}).answer("SaslHandshake", 0)
    wire.token(b"\0alice\0secret", 0).token(b"", 1).ask("Heartbeat", 0, correlation=2)
    wire.answer("Heartbeat", 0, correlation=2)
    exchanges = wire.exchanges()
    assert [(exchange.api_key, exchange.api, exchange.status) for exchange in exchanges] == [
        (17, "SaslHandshake", "answered"),
        (None, "SaslToken", "answered"),
        (12, "Heartbeat", "answered"),
    ]
    assert (exchanges[1].api_version, exchanges[1].correlation_id, exchanges[1].request) == (None, None, None)
    assert (exchanges[1].request_bytes, exchanges[1].response_bytes) == (17, 4)


def test_api_versions_asked_too_new_is_answered_in_version_0() -> None:
    """protocol note 3: error 35 in a v0 body, header v0."""
    wire = Wire().ask("ApiVersions", 4)
    wire.raw(encode_frame("ApiVersionsResponse", 0, {"errorCode": 35}, {"correlationId": 1}, length=False), 1)
    exchange = only(wire.exchanges())
    assert (exchange.status, exchange.api_version, exchange.error) == ("answered", 4, "UNSUPPORTED_VERSION")
    assert exchange.response is not None and exchange.response.version == 0


def test_client_software_comes_from_api_versions_and_holds_from_there_on() -> None:
    wire = Wire().ask("Heartbeat", 0, correlation=1).answer("Heartbeat", 0, correlation=1)
    software = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.16.1"}
    wire.ask("ApiVersions", 3, software, correlation=2).answer("ApiVersions", 3, correlation=2)
    wire.ask("Heartbeat", 0, correlation=3).answer("Heartbeat", 0, correlation=3)
    assert [exchange.client_software for exchange in wire.exchanges()] == [
        None,
        "librdkafka 2.16.1",
        "librdkafka 2.16.1",
    ]


def test_clients_have_their_own_software_whoever_says_the_same() -> None:
    words = [("librdkafka", "2.16.1"), ("librdkafka", "2.16.2"), ("apache-kafka-java", "4.3.1"), ("a", ""), ("", "")]
    wire = Wire()
    for number in range(40):
        name, version = words[number * 7 % len(words)]
        software = {"clientSoftwareName": name, "clientSoftwareVersion": version}
        client = None if number % 4 == 0 else "c" * number
        wire.ask("ApiVersions", 3 + number % 2, software, client=client, on=number)
    expected = [" ".join(filter(None, words[number * 7 % len(words)])) or None for number in range(40)]
    assert [exchange.client_software for exchange in wire.exchanges()] == expected


@pytest.mark.parametrize("apart", [1, 3, 100_000])
def test_exchanges_stand_in_the_order_of_time_however_far_they_came_from_it(apart: int) -> None:
    random = Random(apart)
    times = [number + random.randrange(apart) for number in range(300)]
    wire = Wire()
    for number, at in enumerate(times):
        wire.ask("Heartbeat", 0, on=number, client=str(number), at=at)
    expected = sorted(range(300), key=times.__getitem__)
    assert [exchange.client_id for exchange in wire.exchanges()] == [str(number) for number in expected]


def envelope(inner_error: int, outer_error: int = 0) -> Wire:
    header = {"correlationId": 9, "clientId": "admin"}
    inner = encode_frame("DeleteTopicsRequest", 6, {"topics": [{"name": "old"}]}, header, length=False)
    value = {"responses": [{"name": "old", "errorCode": inner_error}]}
    answer = encode_frame("DeleteTopicsResponse", 6, value, {"correlationId": 9}, length=False)
    wire = Wire().ask("Envelope", 0, {"requestData": inner, "requestPrincipal": b"", "clientHostAddress": b"\n\0\0\2"})
    return wire.answer("Envelope", 0, {"responseData": None if outer_error else answer, "errorCode": outer_error})


def test_an_envelope_is_one_exchange_with_its_inner_request_decoded() -> None:
    outer = only(envelope(3).exchanges())
    assert (outer.api, outer.error, outer.topics) == ("Envelope", "UNKNOWN_TOPIC_OR_PARTITION", ("old",))
    request, response = outer.inner()
    assert (request.name, request.version, request.header.value["clientId"]) == ("DeleteTopicsRequest", 6, "admin")
    assert response.body is not None and response.body.value["responses"][0]["errorCode"] == 3


def test_an_envelope_that_failed_has_its_own_error() -> None:
    exchange = only(envelope(0, outer_error=31).exchanges())
    assert (exchange.error, exchange.status) == ("CLUSTER_AUTHORIZATION_FAILED", "answered")
    assert [frame.kind for frame in exchange.inner()] == ["request"]


def test_the_first_error_that_is_not_0_is_the_exchanges() -> None:
    value = {"topics": [{"name": "a", "errorCode": 0}, {"name": "b", "errorCode": 36}, {"name": "c", "errorCode": 42}]}
    exchange = only(Wire().ask("CreateTopics", 5).answer("CreateTopics", 5, value).exchanges())
    assert (exchange.error_code, exchange.error) == (36, "TOPIC_ALREADY_EXISTS")


def test_an_error_code_that_nobody_knows_keeps_its_number() -> None:
    exchange = only(Wire().ask("Heartbeat", 0).answer("Heartbeat", 0, {"errorCode": 9999}).exchanges())
    assert (exchange.error_code, exchange.error) == (9999, "UNKNOWN(9999)")


def test_throttle_time_is_told_and_null_where_the_version_has_none() -> None:
    wire = Wire().ask("Heartbeat", 1).answer("Heartbeat", 1, {"throttleTimeMs": 250})
    wire.ask("Heartbeat", 0).answer("Heartbeat", 0)
    assert [exchange.throttle_ms for exchange in wire.exchanges()] == [250, None]


@pytest.mark.parametrize(
    ("api", "version", "value", "waits", "most"),
    [
        ("Fetch", 12, {"maxWaitMs": 500}, True, 500),
        ("Fetch", 12, {"maxWaitMs": 0}, False, None),
        ("ShareFetch", 1, {"maxWaitMs": 500}, True, 500),
        ("JoinGroup", 0, {"sessionTimeoutMs": 30000}, True, 30000),
        ("JoinGroup", 5, {"sessionTimeoutMs": 30000, "rebalanceTimeoutMs": 60000}, True, 60000),
        ("SyncGroup", 3, {}, True, None),
        ("Heartbeat", 3, {}, False, None),
    ],
)
def test_long_polls_are_told_apart_with_how_long_they_may_wait(
    api: str, version: int, value: dict[str, object], waits: bool, most: int | None
) -> None:
    exchange = only(Wire().ask(api, version, value).answer(api, version).exchanges())
    assert (exchange.long_poll, exchange.max_wait_ms) == (waits, most)


def test_unknown_apis_and_versions_are_undecoded_but_paired() -> None:
    header = {"requestApiKey": 999, "requestApiVersion": 3, "correlationId": 1, "clientId": "new"}
    wire = Wire().raw(encode("RequestHeader", 1, header) + b"???", 0).raw(bytes(3) + b"\1" + b"!!", 1)
    header |= {"requestApiKey": 12, "requestApiVersion": 99, "correlationId": 2}
    wire.raw(encode("RequestHeader", 2, header), 0).raw(bytes(3) + b"\2\0", 1)
    exchanges = wire.exchanges()
    assert [(exchange.api_key, exchange.api, exchange.api_version, exchange.status) for exchange in exchanges] == [
        (999, None, 3, "undecoded"),
        (12, "Heartbeat", 99, "undecoded"),
    ]
    assert [(exchange.client_id, exchange.latency_us, exchange.request) for exchange in exchanges] == [
        ("new", 1000, None),
        ("new", 1000, None),
    ]


def test_a_body_that_cannot_be_read_costs_its_own_exchange_alone() -> None:
    wire = Wire().ask("Heartbeat", 0, correlation=1).answer("Heartbeat", 0, correlation=1)
    wire.raw(
        hexes("""
        000c 0000            # Heartbeat v0
        0000 0002            # correlation id 2
        ffff                 # no client id
        7fff 67              # a group id of 32767 bytes, 1 left
        """),
        0,
    )
    wire.answer("Heartbeat", 0, correlation=2).ask("Heartbeat", 0, correlation=3).answer("Heartbeat", 0, correlation=3)
    assert [exchange.status for exchange in wire.exchanges()] == ["answered", "undecoded", "answered"]


def test_a_frame_too_short_for_a_header_is_undecoded() -> None:
    exchange = only(Wire().raw(b"\0\x0c\0", 0).exchanges())
    assert (exchange.status, exchange.api, exchange.client_id) == ("undecoded", None, None)


def test_bytes_that_java_would_write_otherwise_are_read_all_the_same() -> None:
    body = encode("HeartbeatResponse", 4, {"throttleTimeMs": 7, "errorCode": 25})
    # the tag section's count as two bytes, which Java reads and never writes
    wire = Wire().ask("Heartbeat", 4).raw(bytes(3) + b"\1\0" + body[:-1] + b"\x80\0", 1)
    exchange = only(wire.exchanges())
    assert (exchange.status, exchange.error, exchange.throttle_ms) == ("answered", "UNKNOWN_MEMBER_ID", 7)


def test_client_ids_that_are_no_utf8_are_shown_with_replacement_characters() -> None:
    frame = hexes("""
        000c 0000            # Heartbeat v0
        0000 0001            # correlation id 1
        0003 61ff62          # client id
        0000 00000000 0000   # group id, generation id, member id
    """)
    assert only(Wire().raw(frame, 0).exchanges()).client_id == "a\ufffdb"


def test_exchange_ids_differ_and_do_not_depend_on_how_the_frames_were_cut() -> None:
    wire = Wire()
    for number in range(40):
        wire.ask("Heartbeat", 0, correlation=number, on=number % 3)
        wire.answer("Heartbeat", 0, correlation=number, on=number % 3)
    whole = {(exchange.connection_id, exchange.correlation_id): exchange.exchange_id for exchange in wire.exchanges()}
    assert len(set(whole.values())) == 40
    assert len({connection for connection, _ in whole}) == 3
    assert all(len(name) == 24 for name in whole.values())
    for step in (1, 7):
        assert {(o.connection_id, o.correlation_id): o.exchange_id for o in wire.exchanges(step=step)} == whole


def test_topic_ids_are_named_by_what_the_recording_taught_before() -> None:
    request = {"topics": [{"topicId": ORDERS, "partitions": [{"partition": 0}]}], "sessionEpoch": -1}
    wire = Wire().ask("Fetch", 13, request, correlation=1).answer("Fetch", 13, correlation=1)
    metadata = {
        "topics": [{"name": "orders", "topicId": ORDERS}],
        "brokers": [{"nodeId": 1, "host": "b1", "port": 9092}],
    }
    wire.ask("Metadata", 12, correlation=2).answer("Metadata", 12, metadata, correlation=2)
    wire.ask("Fetch", 13, request, correlation=3).answer("Fetch", 13, correlation=3)
    exchanges = wire.exchanges(step=2)
    assert [exchange.topics for exchange in exchanges] == [("AAAAAAAAAAAAAAAAAAAATQ",), ("orders",), ("orders",)]


def fetch(wire: Wire, correlation: int, session: int, epoch: int, topics: list[str], *forgotten: str) -> None:
    named = [{"topic": name, "partitions": [{"partition": 0}]} for name in topics]
    gone = [{"topic": name, "partitions": [0]} for name in forgotten]
    value = {"sessionId": session, "sessionEpoch": epoch, "topics": named, "forgottenTopicsData": gone}
    wire.ask("Fetch", 12, value, correlation=correlation)
    wire.answer("Fetch", 12, {"sessionId": 5 if epoch == 0 else session}, correlation=correlation)


def test_fetches_within_a_session_have_the_topics_of_the_session() -> None:
    """KIP-227: a later fetch names only what changed."""
    wire = Wire()
    fetch(wire, 1, 0, 0, ["orders", "events"])
    fetch(wire, 2, 5, 1, [])
    fetch(wire, 3, 5, 2, ["payments"], "events")
    fetch(wire, 4, 5, 3, [])
    fetch(wire, 5, 5, -1, [])
    fetch(wire, 6, 5, 1, [])
    topics = [set(exchange.topics) for exchange in wire.exchanges(step=3)]
    assert topics[:2] == [{"orders", "events"}, {"orders", "events"}]
    assert topics[2] >= {"orders", "payments"}
    assert topics[3:] == [{"orders", "payments"}, set(), set()]


def test_share_fetches_within_a_session_have_its_topics() -> None:
    wire = Wire()
    topic = {"topicId": UUID(int=1), "partitions": [{"partitionIndex": 0}]}
    for correlation, epoch, topics in ((1, 0, [topic]), (2, 1, []), (3, -1, [])):
        value = {"groupId": "g", "memberId": "m", "shareSessionEpoch": epoch, "topics": topics}
        wire.ask("ShareFetch", 1, value, correlation=correlation).answer("ShareFetch", 1, correlation=correlation)
    assert [exchange.topics for exchange in wire.exchanges()] == [("__cluster_metadata",), ("__cluster_metadata",), ()]


def every_pair() -> list[tuple[int, str, int]]:
    return [(key, api, version) for key, api in apis().items() for version in message(f"{api}Request").all_versions()]


def test_the_kernel_finds_what_the_codec_finds_in_every_version_of_every_api() -> None:
    """Errors, throttle times, waits and names of all of them, with boundary and random values."""
    wire = Wire()
    cases = []
    for key, api, version in every_pair():
        for case in range(12):
            request = sample(layout(f"{api}Request", version), case)
            if api in ("Produce", "Envelope"):
                continue  # acks 0 has no answer, and what an envelope holds is no random bytes
            header = {"correlationId": case} | ({} if (key, version) == (7, 0) else {"clientId": None})
            request_frame = encode_frame(f"{api}Request", version, request, header, length=False)
            value = sample(layout(f"{api}Response", version), case)
            if api == "ApiVersions" and value["errorCode"] == 35:
                continue
            response_frame = encode_frame(f"{api}Response", version, value, {"correlationId": case}, length=False)
            wire.raw(request_frame, 0).raw(response_frame, 1)
            cases.append((api, version, case))
    exchanges = wire.exchanges()
    assert len(exchanges) == len(cases) > 4000
    wrong = []
    for exchange, (api, version, case) in zip(exchanges, cases, strict=True):
        bodies = [
            decode_request(exchange.request_frame or b""),
            decode_response(exchange.response_frame or b"", exchange.api_key or 0, version),
        ]
        numbers: dict[int, int] = {}
        names: dict[int, dict[str, None]] = {NameKind.GROUP: {}, NameKind.MEMBER: {}, NameKind.TOPIC: {}}
        for body in bodies:
            assert body is not None
            for fact, number in facts_of(body):
                if fact != Fact.ERROR or not numbers.get(Fact.ERROR):
                    numbers[fact] = number
            for kind, name in names_of(body):
                if isinstance(name, str):
                    names[kind][name] = None
        seen = {Fact.ERROR: exchange.error_code, Fact.THROTTLE: exchange.throttle_ms}
        if exchange.long_poll:
            seen[Fact.MAX_WAIT] = exchange.max_wait_ms
        good = all(value == numbers.get(fact) for fact, value in seen.items())
        good &= (exchange.groups, exchange.members) == (tuple(names[NameKind.GROUP]), tuple(names[NameKind.MEMBER]))
        if not good or exchange.status != "answered" or not set(exchange.topics) >= set(names[NameKind.TOPIC]):
            wrong.append(f"{api} v{version} case {case}")
    assert not wrong, wrong[:10]


def test_any_order_and_any_cut_of_frames_gives_each_frame_once() -> None:
    """Whatever comes in, every frame is in one exchange and only one, and nothing raises."""
    for seed in range(60):
        random = Random(seed)
        wire = Wire()
        for _ in range(60):
            on, correlation = random.randrange(3), random.randrange(4)
            match random.randrange(8):
                case 0 | 1 | 2:
                    wire.ask("Heartbeat", 0, correlation=correlation, on=on)
                case 3 | 4 | 5:
                    wire.answer("Heartbeat", 0, correlation=correlation, on=on)
                case 6:
                    wire.raw(random.randbytes(random.randrange(12)), random.randrange(2), on=on)
                case 7:
                    wire.raw(b"", random.randrange(2), kind=random.choice((2, 3)), on=on)
        frames = sorted((row[2], row[3], row[0]) for row in wire.rows if row[1] == 0)
        for step in (1, 5, 60):
            got = []
            for exchange in wire.exchanges(step=step):
                on = int(exchange.client_address.rpartition(":")[2]) - 40_000
                got += [(on, 0, exchange.request_frame)] if exchange.request_frame is not None else []
                got += [(on, 1, exchange.response_frame)] if exchange.response_frame is not None else []
            assert sorted(got) == frames, f"seed {seed}, step {step}"
