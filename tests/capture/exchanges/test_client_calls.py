"""Calls of a client become exchanges: whole, in order, under names that do not depend on how batches were cut."""

from kafkascope import encode_frame
from kafkascope.capture.exchanges.client_calls import MOST_CONNECTIONS, CallConnection, CallReader, ClientCall
from kafkascope.capture.exchanges.exchange_columns import to_arrow

CLIENT, BROKER = "127.0.0.1:51234", "127.0.0.1:9092"
URI = "observe://127.0.0.1:9092/run"


def call(
    at: int, api: str, version: int, *, answered: bool = True, client: str = CLIENT, correlation: int = 7
) -> ClientCall:
    """One second each; the answer comes a millisecond later."""
    header = {"correlationId": correlation, "clientId": "kafkascope"}
    value = {"clientSoftwareName": "kafkascope", "clientSoftwareVersion": "1.2"} if api == "ApiVersions" else {}
    request = encode_frame(f"{api}Request", version, value, header, length=False)
    response = encode_frame(f"{api}Response", version, {}, {"correlationId": correlation}, length=False)
    sent = at * 1_000_000_000
    if not answered:
        return ClientCall(client, BROKER, 0, request, None, sent, None)
    return ClientCall(client, BROKER, 0, request, response, sent, sent + 1_000_000)


def rows(reader: CallReader, *calls: ClientCall) -> list[dict[str, object]]:
    columns: list[dict[str, object]] = to_arrow(reader.batch(calls, URI)[0]).to_pylist()
    return columns


def test_a_call_is_an_exchange_with_its_times_and_sizes() -> None:
    made = call(5, "DescribeQuorum", 2)
    assert made.response is not None
    (row,) = rows(CallReader(), made)
    assert (row["api"], row["api_version"], row["status"]) == ("DescribeQuorum", 2, "answered")
    assert row["latency_us"] == 1000
    assert row["request_bytes"] == len(made.request) + 4
    assert row["response_bytes"] == len(made.response) + 4
    assert (row["client_address"], row["broker_address"], row["capture_uri"]) == (CLIENT, BROKER, URI)
    assert row["correlation_id"] == 7 and row["client_id"] == "kafkascope"


def test_a_call_without_an_answer_is_unanswered() -> None:
    (row,) = rows(CallReader(), call(5, "DescribeQuorum", 2, answered=False))
    assert (row["status"], row["response_at"], row["response_bytes"]) == ("unanswered", None, None)


def test_names_do_not_depend_on_how_batches_are_cut() -> None:
    calls = [call(at, "DescribeQuorum", 2, correlation=at) for at in range(1, 7)]
    together = [row["exchange_id"] for row in rows(CallReader(), *calls)]
    reader = CallReader()
    cut = [row["exchange_id"] for some in (calls[:2], calls[2:3], calls[3:]) for row in rows(reader, *some)]
    assert cut == together
    assert len(set(together)) == 6


def test_calls_are_in_the_order_of_their_sending() -> None:
    exchanges = rows(CallReader(), call(9, "ListGroups", 5), call(3, "DescribeQuorum", 2))
    assert [row["api"] for row in exchanges] == ["DescribeQuorum", "ListGroups"]


def test_software_is_known_from_the_request_that_tells_it_and_stays_known() -> None:
    reader = CallReader()
    exchanges = rows(reader, call(1, "ListGroups", 5), call(2, "ApiVersions", 3), call(3, "ListGroups", 5))
    assert [row["client_software"] for row in exchanges] == [None, "kafkascope 1.2", "kafkascope 1.2"]
    (later,) = rows(reader, call(4, "ListGroups", 5))
    assert later["client_software"] == "kafkascope 1.2"


def test_connections_are_told_apart_and_count_their_bytes_from_the_beginning() -> None:
    reader = CallReader()
    first, other = call(1, "ListGroups", 5), call(2, "ListGroups", 5, client="127.0.0.1:51235")
    assert first.response is not None
    _, connections = reader.batch([first, other], URI)
    assert len({connection.connection_id for connection in connections}) == 2
    _, (again,) = reader.batch([call(3, "ListGroups", 5)], URI)
    assert again.connection_id == connections[0].connection_id
    assert again.client_bytes == 2 * (len(first.request) + 4)
    assert again.broker_bytes == 2 * (len(first.response) + 4)
    assert (again.first_ns, again.last_ns) == (0, 3_001_000_000)


def names(connections: list[CallConnection]) -> list[str]:
    return [connection.connection_id for connection in connections]


def test_connections_end_once_when_they_are_no_longer_open() -> None:
    reader = CallReader()
    first, other = call(1, "ListGroups", 5), call(2, "ListGroups", 5, client="127.0.0.1:51235")
    _, connections = reader.batch([first, other], URI)
    assert list(map(names, reader.connections(None))) == [[], names(connections)]
    other_key = (other.client_address, other.broker_address, other.opened_ns)
    assert list(map(names, reader.connections({other_key}))) == [names(connections[:1]), names(connections[1:])]
    assert list(map(names, reader.connections({other_key}))) == [[], names(connections[1:])]
    assert list(map(names, reader.connections(()))) == [names(connections[1:]), []]


def test_connections_that_are_over_are_forgotten_and_open_ones_are_not() -> None:
    reader = CallReader()
    made = call(1, "ListGroups", 5)
    many = [
        ClientCall(f"10.0.{port // 250}.{port % 250}:1", BROKER, port, made.request, None, port, None)
        for port in range(MOST_CONNECTIONS + 5)
    ]
    reader.batch(many, URI)
    oldest = (many[0].client_address, BROKER, many[0].opened_ns)
    _, lasting = reader.connections({oldest})
    assert len(lasting) == 1
    assert len(reader._connections) == MOST_CONNECTIONS
    assert oldest in reader._connections
