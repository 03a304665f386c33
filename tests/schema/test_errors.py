"""Errors: codes and names, which message answers with which, in which field, at which version, and who says so."""

import re
import zipfile

import pytest

from kafkascope.errors import NotFoundError
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import by_name, error_codes, error_name, find_error
from kafkascope.schema.errors.message_errors import MessageError, error_fields, errors_of
from kafkascope.schema.files import lines, text
from kafkascope.schema.releases import release_order
from kafkascope.schema.versions import parse_versions
from tools.catalog.jars import fetch_releases, read_releases


def errors(name: str, version: int | None = None) -> dict[str, MessageError]:
    return {item.error.name: item for item in errors_of(message(name), version)}


def test_every_listed_error_and_its_fields_exist() -> None:
    for name in index():
        for listed in message(name).errors:
            assert listed.name in by_name(), name
            last_names = {place.rpartition(".")[2] for place in error_fields(message(name))}
            assert set(listed.fields) <= last_names, (name, listed)


def test_every_error_of_the_compiled_broker_exists() -> None:
    for line in lines("handler_errors.txt"):
        api, error, _ = line.split(" ")
        assert api in apis().values(), line
        assert error in {known.name for known in error_codes().values()}, line


def test_every_checked_error_its_fields_and_versions_exist_and_tell_something_new() -> None:
    in_code = {tuple(line.split(" ")[:2]) for line in lines("handler_errors.txt")}
    for line in lines("checked_errors.txt"):
        api, error, fields, versions, _ = line.split(" ")
        response = message(f"{api}Response")
        numbers = [version for version in response.all_versions() if version in parse_versions(versions)]
        assert numbers, line
        assert error in by_name(), line
        for version in numbers:
            places = error_fields(response, version)
            assert set(fields.split(",")) <= set(places), line
            # where the tool has the error and there is one field, the line says nothing
            assert (api, error) not in in_code or len(places) > 1, line


@pytest.mark.parametrize(
    ("api", "version", "error", "field"),
    [
        ("Envelope", 0, "NOT_CONTROLLER", "ErrorCode"),
        ("Envelope", 0, "PRINCIPAL_DESERIALIZATION_FAILURE", "ErrorCode"),
        ("WriteTxnMarkers", 1, "TRANSACTION_COORDINATOR_FENCED", "Markers.Topics.Partitions.ErrorCode"),
        ("CreateTopics", 7, "REQUEST_TIMED_OUT", "Topics.ErrorCode"),
        ("DeleteRecords", 2, "REQUEST_TIMED_OUT", "Topics.Partitions.ErrorCode"),
        ("UnregisterController", 0, "CONTROLLER_ID_NOT_REGISTERED", "ErrorCode"),
        ("Produce", 11, "TRANSACTION_ABORTABLE", "Responses.PartitionResponses.ErrorCode"),
        ("DescribeQuorum", 1, "NOT_LEADER_OR_FOLLOWER", "Topics.Partitions.ErrorCode"),
    ],
)
def test_errors_that_the_tool_does_not_reach_are_listed_with_their_field(
    api: str, version: int, error: str, field: str
) -> None:
    item = errors(f"{api}Response", version)[error]
    assert (item.origin, item.fields) == ("code", (field,))


def test_transactions_that_can_be_aborted_are_told_so_from_version_11_on() -> None:
    # AddPartitionsToTxnManager sends INVALID_TXN_STATE to producers of older versions
    assert "TRANSACTION_ABORTABLE" not in errors("ProduceResponse", 10)


# Errors that an API's prose names of another API, or of a case that no released broker makes
OF_OTHERS = {
    "Metadata": {"REBOOTSTRAP_REQUIRED"},
    "FindCoordinator": {"NOT_COORDINATOR"},
    "CreateTopics": {"UNKNOWN_TOPIC_OR_PARTITION"},
    "EndTxn": {"TRANSACTION_ABORTABLE"},
    "TxnOffsetCommit": {"UNSTABLE_OFFSET_COMMIT"},
    "ShareFetch": {"FENCED_STATE_EPOCH"},
    "UnregisterBroker": {"STALE_BROKER_EPOCH"},
    "GetTelemetrySubscriptions": {"UNKNOWN_SUBSCRIPTION_ID"},
}


def test_every_error_that_the_prose_of_an_api_names_is_in_its_list() -> None:
    for api in apis().values():
        named = set(re.findall(r"\b[A-Z][A-Z_]+\b", text(f"prose/messages/{api}.txt"))) & by_name().keys() - {"NONE"}
        named = {by_name()[name].name for name in named}
        assert named - errors(f"{api}Response").keys() == OF_OTHERS.get(api, set()), api


def test_every_error_is_of_a_known_release_and_no_name_is_used_twice() -> None:
    names = [name for error in error_codes().values() for name in (error.name, *error.aliases)]
    assert len(names) == len(set(names))
    assert {error.release for error in error_codes().values()} <= release_order().keys()


@pytest.mark.parametrize(
    "response", ["ShareFetchResponse", "StreamsGroupHeartbeatResponse", "ShareAcknowledgeResponse"]
)
def test_listed_errors_are_those_of_the_definition_file(response: str) -> None:
    newest = read_releases()[-1]
    fetch_releases([newest])
    with zipfile.ZipFile(newest.jar("kafka-clients")) as jar:
        text = jar.read(f"common/message/{response}.json").decode()
    # `// - INVALID_RECORD_STATE (version 0+) - only for AcknowledgeErrorCode`
    upstream = set(re.findall(r"^\s*//\s*- ([A-Z_]+) \(version", text, re.MULTILINE))
    assert len(upstream) > 5
    assert {listed.name for listed in message(response).errors} == upstream
    assert {name for name, item in errors(response).items() if item.origin == "definition"} == upstream


def test_invalid_record_state_comes_only_in_the_acknowledge_error_code() -> None:
    found_errors = errors("ShareFetchResponse", 2)
    assert found_errors["INVALID_RECORD_STATE"].fields == ("Responses.Partitions.AcknowledgeErrorCode",)
    assert "ErrorCode" in found_errors["SHARE_SESSION_NOT_FOUND"].fields


def test_a_request_has_the_errors_of_its_answer() -> None:
    assert errors_of(message("ShareFetchRequest"), 2) == errors_of(message("ShareFetchResponse"), 2)


def test_a_record_returns_no_errors() -> None:
    assert errors_of(message("TopicRecord")) == []


def test_the_only_error_field_of_a_message_carries_its_errors() -> None:
    # Heartbeat's answer has one error code, so whatever the broker's code names stands there
    assert error_fields(message("HeartbeatResponse"), 4) == ("ErrorCode",)
    found_errors = errors("HeartbeatResponse", 4)
    assert found_errors["UNKNOWN_MEMBER_ID"].origin == "code"
    assert {item.fields for item in found_errors.values()} == {("ErrorCode",)}


def test_a_field_that_nobody_names_is_said_to_be_unknown() -> None:
    item = errors("ShareFetchResponse", 2)["SHARE_SESSION_LIMIT_REACHED"]
    assert (item.origin, item.fields) == ("code", ())
    assert item.where


def test_an_error_that_came_after_a_version_was_removed_is_not_listed_for_it() -> None:
    # SHARE_SESSION_LIMIT_REACHED is of 4.1; version 0 of ShareFetch ended with 4.0
    assert error_codes()[133].release == "4.1"
    assert "SHARE_SESSION_LIMIT_REACHED" not in errors("ShareFetchResponse", 0)
    assert "SHARE_SESSION_LIMIT_REACHED" in errors("ShareFetchResponse", 1)


def test_an_error_listed_for_later_versions_is_not_in_an_earlier_one() -> None:
    later = [
        (name, listed.name, listed.versions.ranges[0][0])
        for name in index()
        for listed in message(name).errors
        if listed.versions.ranges[0][0] > 0
    ]
    assert later
    for name, error, first in later:
        assert errors(name, first)[error].origin == "definition"
        before = errors(name, first - 1).get(error)
        assert before is None or before.origin == "code"


def test_error_fields_are_those_of_the_version() -> None:
    assert error_fields(message("FetchResponse"), 0) == ("Responses.Partitions.ErrorCode",)
    assert error_fields(message("FetchResponse"), 7) == ("ErrorCode", "Responses.Partitions.ErrorCode")


@pytest.mark.parametrize(
    "query",
    ["121", "INVALID_RECORD_STATE", "invalid_record_state", "invalid-record-state", "InvalidRecordStateException"],
)
def test_an_error_is_found_by_code_name_or_exception(query: str) -> None:
    assert find_error(query).code == 121


def test_an_error_is_found_by_its_earlier_name() -> None:
    assert find_error("NOT_LEADER_FOR_PARTITION").name == "NOT_LEADER_OR_FOLLOWER"
    assert find_error("-1").name == "UNKNOWN_SERVER_ERROR"


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(NotFoundError, match="did you mean INVALID_RECORD_STATE"):
        find_error("INVALID_RECORD_STAT")


@pytest.mark.parametrize("query", ["9999", "-9999", "", "-", "²", "9" * 5000])
def test_an_error_that_does_not_exist_is_not_found(query: str) -> None:
    with pytest.raises(NotFoundError):
        find_error(query)


def test_an_unknown_code_keeps_its_number() -> None:
    assert error_name(121) == "INVALID_RECORD_STATE"
    assert error_name(9999) == "UNKNOWN(9999)"
