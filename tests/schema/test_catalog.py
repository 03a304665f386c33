"""The catalog's facts: how many there are, what was renamed, what has two layouts, what came when."""

import re

import pytest

from kafkascope.errors import NotFoundError, UsageError
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.model import Field
from kafkascope.schema.names import MESSAGE_KINDS, find, find_api, matches, suggest
from kafkascope.schema.releases import Release, check_release, newest_release, releases
from kafkascope.schema.targets import parse_target
from kafkascope.schema.values import meaning, named_values

# What kafka-clients itself carries besides requests and responses.
CLIENT_DATA = (
    "AbortedTxn ConsumerProtocolAssignment ConsumerProtocolSubscription ControlRecordTypeSchema DefaultPrincipalData"
    " EndTxnMarker KRaftVersionRecord LeaderChangeMessage SnapshotFooterRecord SnapshotHeaderRecord VotersRecord"
).split()


def versions_of(kind: str) -> int:
    return sum(len(message(name).all_versions()) for name, entry in index().items() if entry.kind == kind)


def every_field(fields: tuple[Field, ...]) -> list[Field]:
    return [nested for field in fields for nested in (field, *every_field(field.fields))]


# protocol note 27
def test_counts_of_apis_and_versions() -> None:
    assert len(apis()) == 95
    assert sorted(apis()) == list(range(95))
    assert versions_of("request") == 368
    assert versions_of("response") == 368
    data = sum(len(message(name).all_versions()) for name in CLIENT_DATA)
    assert versions_of("header") + data == 23
    assert versions_of("request") + versions_of("response") + versions_of("header") + data == 759


def test_every_request_has_its_response_with_the_same_versions() -> None:
    for key, api in apis().items():
        request, response = message(f"{api}Request"), message(f"{api}Response")
        assert request.key == response.key == key
        assert request.all_versions() == response.all_versions()


def test_a_patch_that_lacks_versions_is_known() -> None:
    # KAFKA-19444: 4.0.0 serves JoinGroup 2-9, 4.0.1 brought 0 and 1 back; KIP-915: 3.4.1 added flexible versions
    known = {name: message(name).patches for name in index() if message(name).patches}
    assert {name: [(patch, v.text) for patch, v in versions] for name, versions in known.items()} == {
        "GroupMetadataValue": [("3.4.0", "0-3")],
        "JoinGroupRequest": [("4.0.0", "2-9")],
        "JoinGroupResponse": [("4.0.0", "2-9")],
        "OffsetCommitValue": [("3.4.0", "0-3")],
        "TransactionLogValue": [("3.4.0", "0")],
    }
    request = message("JoinGroupRequest")
    assert (request.patches_without(1), request.patches_without(2)) == (("4.0.0",), ())
    assert [versions and versions.text for versions in map(request.versions_in, ("4.0", "4.0.0"))] == ["0-9", "2-9"]
    assert layout("JoinGroupRequest", 1, "4.0.1").release == "4.0"
    with pytest.raises(
        UsageError, match=r"JoinGroupRequest v1 isn't in Kafka 4\.0\.0, though other patches of 4\.0 have it"
    ):
        layout("JoinGroupRequest", 1, "4.0.0")


def test_six_messages_have_two_layouts_under_one_number() -> None:
    layouts = {
        (name, block.versions.text, str(block.releases))
        for name, entry in index().items()
        if entry.kind in ("request", "response") or name in CLIENT_DATA
        for block in message(name).blocks
        if block.releases
    }
    assert layouts == {
        ("ConsumerGroupDescribeResponse", "0", "3.7"),
        ("ConsumerGroupHeartbeatRequest", "0", "3.5-3.6"),
        ("ConsumerGroupHeartbeatResponse", "0", "3.5-3.6"),
        ("EndQuorumEpochRequest", "0", "2.7"),
        ("LeaderChangeMessage", "0", "2.7"),
        ("LeaderChangeMessage", "0", "2.8"),
        ("ReadShareGroupStateSummaryResponse", "0", "3.9-4.0"),
    }


def test_changed_definitions_of_the_same_wire_are_one_layout() -> None:
    # `bytes` that became `records`, records that became nullable, a tagged field that moved
    for name in ("FetchRequest", "FetchResponse", "ProduceRequest"):
        assert all(block.releases is None for block in message(name).blocks)


# protocol note 28
def test_the_oldest_request_header_v0_is_todays_v1() -> None:
    today, oldest = message("RequestHeader").blocks
    assert str(oldest.releases) == "2.2-2.3"
    assert [field.name for field in oldest.fields] == [field.name for field in today.fields if 1 in field.versions]
    assert [field.name for field in today.fields if 0 in field.versions] == [field.name for field in oldest.fields[:3]]


# protocol note 29
@pytest.mark.parametrize(
    ("now", "before", "last"),
    [
        ("AlterPartition", "AlterIsr", "3.1"),
        ("ListConfigResources", "ListClientMetricsResources", "4.0"),
        ("ListOffsets", "ListOffset", "2.7"),
        ("ElectLeaders", "ElectPreferredLeaders", "2.3"),
    ],
)
def test_renamed_messages_are_found_by_both_names(now: str, before: str, last: str) -> None:
    for kind in ("Request", "Response"):
        assert message(f"{now}{kind}").was == ((f"{before}{kind}", last),)
        assert find(f"{before}{kind}") == f"{now}{kind}"
        assert message(f"{now}{kind}").name_in(last) == f"{before}{kind}"
        assert message(f"{now}{kind}").name_in(newest_release()) == f"{now}{kind}"
    assert find_api(before) == now


def test_no_other_message_of_the_wire_was_renamed() -> None:
    renamed = [name for name, entry in index().items() if entry.kind in ("request", "response") and entry.aliases]
    assert len(renamed) == 8


@pytest.mark.parametrize(
    ("name", "now", "before", "last"),
    [
        ("StreamsGroupHeartbeatResponse", "AcceptableRecoveryLagLegacy", "AcceptableRecoveryLag", "4.3"),
        ("TxnOffsetCommitRequest", "GenerationIdOrMemberEpoch", "GenerationId", "4.3"),
        ("VoteRequest", "ReplicaEpoch", "CandidateEpoch", "3.9"),
        ("AddPartitionsToTxnRequest", "V3AndBelowTransactionalId", "TransactionalId", "3.4"),
        ("ApiVersionsResponse", "ApiKey", "Index", "2.3"),
    ],
)
def test_renamed_fields_keep_their_earlier_names(name: str, now: str, before: str, last: str) -> None:
    fields = [field for block in message(name).blocks for field in every_field(block.fields) if field.name == now]
    assert [field.was for field in fields] == [((before, last),)]
    (field,) = fields
    assert field.name_in(newest_release()) == now
    assert field.name_in(last) == before


def test_the_streams_lag_of_v1_is_another_field() -> None:
    fields = {field.name: field for field in message("StreamsGroupHeartbeatResponse").blocks[0].fields}
    legacy, lag = fields["AcceptableRecoveryLagLegacy"], fields["AcceptableRecoveryLag"]
    assert (legacy.type, legacy.versions.text, lag.type, lag.versions.text) == ("int32", "0", "int64", "1+")


# protocol note 26
def test_tags_of_api_versions_came_after_their_version() -> None:
    fields = {field.name: field.since for field in message("ApiVersionsResponse").blocks[0].fields}
    assert fields["SupportedFeatures"] == fields["FinalizedFeaturesEpoch"] == fields["FinalizedFeatures"] == "2.7"
    assert fields["ZkMigrationReady"] == "3.4"
    assert fields["ErrorCode"] is None
    assert [str(span) for span in message("ApiVersionsResponse").releases_of(3)] == ["2.4+"]


# protocol note 25
@pytest.mark.parametrize(
    ("name", "version", "releases_"),
    [
        ("ProduceRequest", 0, "0.8.2-3.9"),
        ("FetchRequest", 3, "0.10.1-3.9"),
        ("LeaderAndIsrRequest", 7, "3.4-3.9"),
        ("ControlledShutdownRequest", 0, "0.9-3.9"),
        ("ShareFetchRequest", 0, "3.9-4.0"),
        ("ShareFetchRequest", 2, "4.2+"),
    ],
)
def test_removed_versions_stay_and_know_their_releases(name: str, version: int, releases_: str) -> None:
    assert [str(span) for span in message(name).releases_of(version)] == [releases_]


def test_coverage_says_what_could_be_read_of_a_release() -> None:
    coverage = {release.name: release.coverage for release in releases()}
    assert coverage["2.1"] == "versions"
    assert coverage["2.2"] == coverage["4.3"] == "all"
    assert coverage["4.4"] == "clients"


# protocol note 30
def test_coded_fields_know_their_versions() -> None:
    response = message("StreamsGroupHeartbeatResponse")
    path = ("Status", "StatusCode")
    assert meaning(named_values(response, path, 1), 6) is not None
    assert meaning(named_values(response, path, 0), 6) is None
    assert meaning(named_values(response, path, 0), 5) is not None
    request = message("ShareFetchRequest")
    types = ("Topics", "Partitions", "AcknowledgementBatches", "AcknowledgeTypes")
    meanings = [meaning(named_values(request, types, 2), code) or "" for code in range(5)]
    assert [text.split()[0] for text in meanings] == ["Gap", "Accept", "Release", "Reject", "Renew"]


def test_every_file_of_the_catalog_reads() -> None:
    assert len(index()) == 290
    for name, entry in index().items():
        known = message(name)
        assert (known.name, known.kind, known.key) == (name, entry.kind, entry.key)
        assert known.all_versions() == [v for first, last in entry.versions.ranges for v in range(first, last + 1)]
        assert known.blocks, name
        for version in known.all_versions():
            assert sum(version in block.versions and block.releases is None for block in known.blocks) == 1, (
                name,
                version,
            )


def test_names_are_found_in_any_spelling() -> None:
    for text in ("ShareFetchRequest", "sharefetchrequest", "SHARE_FETCH_REQUEST", "share-fetch-request"):
        assert find(text) == "ShareFetchRequest"
    assert find_api("78") == find_api("share_fetch") == "ShareFetch"
    assert find_api("999") is None
    with pytest.raises(UsageError, match="use ShareFetchRequest or ShareFetchResponse"):
        find("ShareFetch")
    with pytest.raises(NotFoundError, match="did you mean ShareFetchRequest"):
        find("ShareFetchRequst")


@pytest.mark.parametrize("release", releases(), ids=lambda release: release.version)
def test_a_release_goes_by_its_name_and_by_its_published_version(release: Release) -> None:
    assert check_release(release.name) == check_release(release.version) == release.name


@pytest.mark.parametrize("name", ["", "9.9", "4", "4.3.1.2", "0.10", "0.11.0.3.1", "4.3.1.", "x"])
def test_what_is_no_release_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"isn't in the catalog; it knows 0\.8\.2 to {re.escape(newest_release())}"):
        check_release(name)


def test_suggestions_are_of_the_kind_that_is_asked_for() -> None:
    assert suggest("ApiVersionsRequest") == "; it is a request of ApiVersions"
    assert suggest("TopicRecord") == "; it is a record"
    assert suggest("ShareFech") == "; did you mean ShareFetch?"
    assert "ShareFetch?" not in suggest("ShareFetchRequst", MESSAGE_KINDS)
    assert "did you mean ShareFetchRequest" in suggest("ShareFetchRequst", MESSAGE_KINDS)


def test_a_version_that_is_none_names_one_that_there_is() -> None:
    with pytest.raises(UsageError, match="'x' isn't a version; use DescribeTopicPartitions:0"):
        parse_target("DescribeTopicPartitions:x")
    with pytest.raises(UsageError, match="'' isn't a version; use ShareFetchRequest:2"):
        parse_target("sharefetchrequest:")


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("eu[1]", "eu[1]", True),
        ("eu[1]-a", "eu[1]*", True),
        ("eu1", "eu[1]", False),
        ("eu1", "eu?", True),
        ("EU1", "eu?", False),
        ("a!b", "a[!b]b", False),
    ],
)
def test_only_stars_and_question_marks_are_patterns(name: str, pattern: str, fits: bool) -> None:
    assert matches(name, pattern) is fits
