"""`apis`, `errors`, `error`, `diff`, `changelog`, `catalog` and `doctor`: what they tell, as text and as JSON."""

import json
import re

import jsonschema
import pytest

from kafkascope.schema.catalog import apis, index
from kafkascope.schema.errors.error_codes import error_codes
from tests.support.cli import Cli


def test_apis_lists_every_api_in_its_family(cli: Cli) -> None:
    out = cli.out("apis")
    assert out.endswith(f"\n{len(apis())} APIs\n")
    assert re.search(r"^share groups\n +key +API", out, re.MULTILINE)
    assert re.search(r"^  78 +ShareFetch +0-2 +1-2 +broker$", out, re.MULTILINE)
    assert re.search(r"^  4 +LeaderAndIsr +0-7 +removed$", out, re.MULTILINE)


def test_apis_of_a_release_are_only_those_it_has(cli: Cli) -> None:
    document = json.loads(cli.out("apis", "--release", "3.8", "--json"))
    assert "ShareFetch" not in [row["api"] for row in document]
    assert {row["api"]: row["versionsInRelease"] for row in document}["Produce"] == "0-11"


def test_apis_with_all_lists_records_too(cli: Cli) -> None:
    assert "TopicRecord" in cli.out("apis", "--all")
    document = json.loads(cli.out("apis", "--all", "--json"))
    others = [row["name"] for row in document if "api" not in row]
    assert len(document) - len(others) == len(apis())
    assert len(others) == len(index()) - 2 * len(apis())


def test_errors_lists_every_code(cli: Cli) -> None:
    assert len(cli.out("errors").splitlines()) == len(error_codes()) + 1
    document = json.loads(cli.out("errors", "--json"))
    assert [row["code"] for row in document] == sorted(error_codes())
    assert all(row["cause"] and row["remedy"] for row in document)


def test_errors_of_an_api_stand_by_field(cli: Cli) -> None:
    out = cli.out("errors", "--api", "ShareFetch:2")
    assert out.startswith("Errors that ShareFetch v2 is known to return\n")
    document = json.loads(cli.out("errors", "--api", "ShareFetch:2", "--json"))
    fields = {row["name"]: row["fields"] for row in document}
    assert fields["INVALID_RECORD_STATE"] == ["Responses.Partitions.AcknowledgeErrorCode"]


def test_an_error_has_cause_remedy_and_senders(cli: Cli) -> None:
    out = cli.out("error", "INVALID_RECORD_STATE")
    assert out.startswith("INVALID_RECORD_STATE  121\nnot retriable · since Kafka 3.9")
    assert "\nCause\n" in out
    assert "\nWhat to do\n" in out
    assert re.search(r"^  ShareFetch +definition +Responses.Partitions.AcknowledgeErrorCode$", out, re.MULTILINE)
    assert cli.out("error", "121") == out
    document = json.loads(cli.out("error", "121", "--json"))
    assert (document["code"], document["returnedBy"][0]["api"]) == (121, "ShareFetch")


def test_an_error_goes_by_its_exception_as_a_log_has_it(cli: Cli) -> None:
    for exception in ("InvalidRecordStateException", "org.apache.kafka.common.errors.InvalidRecordStateException"):
        assert cli.out("error", exception).startswith("INVALID_RECORD_STATE  121\n")


def test_an_error_goes_by_its_negative_code(cli: Cli) -> None:
    assert cli.out("error", "-1").startswith("UNKNOWN_SERVER_ERROR  -1\n")


def test_diff_of_versions_tells_what_came_and_exits_1(cli: Cli) -> None:
    answer = cli("diff", "ShareFetchRequest:1", "ShareFetchRequest:2")
    assert answer.code == 1
    assert answer.out == "\nShareFetchRequest v1 → v2\n  + ShareAcquireMode: int8\n  + IsRenewAck: bool\n"
    document = json.loads(cli("diff", "ShareFetchRequest:1", "ShareFetchRequest:2", "--json").out)
    assert document[0]["changes"][0] == {"what": "added", "path": "ShareAcquireMode", "before": None, "after": "int8"}


def test_diff_of_an_api_takes_both_directions(cli: Cli) -> None:
    out = cli("diff", "ShareFetch:1", "ShareFetch:2").out
    assert "ShareFetchRequest v1 → v2" in out
    assert "ShareFetchResponse v1 → v2\n  no difference" in out


def test_diff_without_differences_exits_0(cli: Cli) -> None:
    assert "no difference" in cli.out("diff", "ShareFetchRequest:1", "ShareFetchRequest:1")
    assert cli.out("diff", "4.3", "4.3").endswith("no difference\n")


def test_diff_of_releases_tells_versions_layouts_and_errors(cli: Cli) -> None:
    answer = cli("diff", "4.3", "4.4")
    assert answer.code == 1
    assert re.search(r"^  ~  ApiVersions +0-4 +0-5$", answer.out, re.MULTILINE)
    assert re.search(r"^  \+  UnregisterController +0$", answer.out, re.MULTILINE)
    assert "GROUP_DELETION_FAILED" in answer.out
    document = json.loads(cli("diff", "4.3.1", "4.4.0", "--json").out)
    assert (document["old"], document["new"], len(document["newErrors"])) == ("4.3", "4.4", 3)


def test_diff_of_releases_says_whether_a_field_came_or_went(cli: Cli) -> None:
    # 2.8 took ReplicaId out of EndQuorumEpoch v0 and put SnapshotId into Fetch v12
    out = " ".join(cli("diff", "2.7", "2.8", COLUMNS="200").out.split())
    gone = re.search(r"EndQuorumEpochRequest 0 0 (.*?)Topics.Partitions.ReplicaId", out)
    came = re.search(r"FetchResponse 0-12 0-12 (.*?)Responses.PartitionResponses.SnapshotId", out)
    assert gone and came
    assert gone[1] != came[1].replace("v12", "v0")


def test_diff_back_in_time_tells_the_errors_that_are_lost(cli: Cli) -> None:
    assert "GROUP_DELETION_FAILED" in cli("diff", "4.4", "4.3").out


def test_diff_of_two_kinds_is_wrong_use(cli: Cli) -> None:
    assert cli("diff", "ShareFetch:1", "ShareFetchRequest:2").code == 2
    assert cli("diff", "ShareFetchRequest", "ShareFetchRequest:2").code == 2


def test_changelog_tells_each_version_newest_first(cli: Cli) -> None:
    out = cli.out("changelog", "DescribeQuorum")
    assert re.findall(r"^v(\d+)$", out, re.MULTILINE) == ["2", "1", "0"]
    assert "Kafka 3.3+ · KIP-836" in out
    assert "+ Topics.Partitions.CurrentVoters.LastFetchTimestamp: int64" in out
    document = json.loads(cli.out("changelog", "DescribeQuorum", "--json"))
    assert [row["version"] for row in document] == [2, 1, 0]
    assert document[1]["kips"] == [836]


@pytest.mark.parametrize(
    ("api", "version", "span"),
    [("OffsetCommit", 10, "4.1"), ("InitProducerId", 6, "4.1+"), ("ShareFetch", 0, "3.9-4.0")],
)
def test_changelog_reports_where_a_version_was_unstable(cli: Cli, api: str, version: int, span: str) -> None:
    document = json.loads(cli.out("changelog", api, "--json"))
    assert {row["version"]: row["unstableIn"] for row in document}[version] == [span]
    after = cli.out("changelog", api).partition(f"v{version}\n")[2]
    assert f"unstable in {span}" in after.splitlines()[0]


def test_a_patch_without_a_version_is_named_beside_it(cli: Cli) -> None:
    # KAFKA-19444
    rows = {row["version"]: row["missingInPatches"] for row in json.loads(cli.out("changelog", "JoinGroup", "--json"))}
    assert (rows[1], rows[2]) == (["4.0.0"], [])
    assert "v1\n  Kafka 0.10.1+ · KIP-62 · not in 4.0.0" in cli.out("changelog", "JoinGroup")
    assert re.search(r"^  1 .*not in 4\.0\.0, deprecated", cli.out("show", "JoinGroup"), re.MULTILINE)
    assert re.search(r"^  11 +JoinGroup +0-9 +2-9 +broker$", cli.out("apis", "--release", "4.0.0"), re.MULTILINE)


def test_changelog_of_a_message_is_of_that_message_alone(cli: Cli) -> None:
    assert "Response" not in cli.out("changelog", "ShareFetchRequest")


def test_a_version_of_the_same_bytes_is_said_to_be_so(cli: Cli) -> None:
    assert "the same bytes as the version before" in cli.out("changelog", "HeartbeatRequest")


def test_the_catalog_as_json_keeps_its_own_schema(cli: Cli) -> None:
    document = json.loads(cli.out("catalog", "--json"))
    schema = json.loads(cli.out("catalog", "--schema"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
    assert (len(document["apis"]), len(document["messages"])) == (len(apis()), len(index()))


def test_the_catalog_counts_itself(cli: Cli) -> None:
    out = " ".join(cli.out("catalog").split())
    assert f"{len(apis())} APIs in 368 request versions" in out
    assert f"{len(index())} messages in all, {len(error_codes())} error codes" in out


def test_doctor_finds_the_codec_whole(cli: Cli) -> None:
    assert cli.out("doctor").rstrip().endswith("The catalog and the codec work.")
    document = json.loads(cli.out("doctor", "--json"))
    assert document["ok"] is True
    assert {"Python", "catalog", "cramjam", "crc32c", "[columns]", "[spark]"} <= {
        row["what"] for row in document["checks"]
    }


def test_doctor_says_what_is_missing_and_how_to_get_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    known = metadata.version

    def version(name: str) -> str:
        if name in ("crc32c", "pyspark"):
            raise metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(metadata, "version", version)
    answer = cli("doctor")
    assert answer.code == 1
    assert re.search(r"^missing +crc32c +.*pip install crc32c$", answer.out, re.MULTILINE)
    assert re.search(r"^not installed +\[spark\] +.*pip install 'kafkascope\[spark\]'$", answer.out, re.MULTILINE)
    assert json.loads(cli("doctor", "--json").out)["ok"] is False
