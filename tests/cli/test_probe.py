"""`probe` proves every version that a broker offers, exactly, and changes nothing unless told so."""

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from kafkascope.client.probe.prober import UNSERVED
from lab.cluster import Cluster
from lab.secured import SECURED_USERS
from lab.settings import CONTROLLER, SASL
from tests.support.cli import Cli, is_one_line_error


def test_the_schema_is_one_and_holds_what_is_printed(cluster: Cluster, cli: Cli) -> None:
    schema = json.loads(cli.out("probe", "--schema"))
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(cli.out("probe", cluster.bootstrap, "--api", "DescribeQuorum", "--api", "55", "--json"))
    jsonschema.validate(document, schema)
    assert [(proof["api"], proof["version"]) for proof in document["proofs"]] == [
        ("DescribeQuorum", 0),
        ("DescribeQuorum", 1),
        ("DescribeQuorum", 2),
    ]
    document["proofs"][0]["state"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_text_counts_what_was_proven_and_says_why_the_rest_was_not(cluster: Cluster, cli: Cli) -> None:
    out = cli.out("probe", cluster.bootstrap, "--api", "DescribeQuorum", "--api", "DeleteTopics")
    assert "looks like 4.3" in out.splitlines()[0]
    assert "3 of 9 (API, version) pairs proven" in out
    assert "would delete topics" in out
    full = cli.out("probe", cluster.bootstrap, "--api", "DescribeQuorum", "--full")
    assert "UNKNOWN_TOPIC_OR_PARTITION in Topics.Partitions.ErrorCode" in full


def test_an_unknown_api_is_suggested_for(cli: Cli) -> None:
    answer = cli("probe", "127.0.0.1:1", "--api", "DescribeQuorm")
    assert (answer.code, is_one_line_error(answer.err)) == (1, True)
    assert "did you mean DescribeQuorum" in answer.err


@pytest.mark.parametrize("flag", ["--json", "--write"])
def test_an_api_that_controllers_alone_serve_is_not_there(flag: str, cluster: Cluster, cli: Cli) -> None:
    answer = cli("probe", cluster.bootstrap, "--api", "Vote", flag)
    assert (answer.code, answer.out, is_one_line_error(answer.err)) == (1, "", True)
    assert "this broker doesn't serve Vote; it is for controllers" in answer.err


def test_a_host_is_needed_and_must_be_there(cli: Cli) -> None:
    assert cli("probe").code == 2
    answer = cli("probe", "127.0.0.1:1")
    assert (answer.code, is_one_line_error(answer.err)) == (4, True)


@pytest.mark.parametrize(("version", "release"), [("4.3.1", "4.3"), ("3.9.2", "3.9")])
@pytest.mark.heavy
def test_an_empty_cluster_stays_empty_without_the_word_and_takes_every_example_with_it(
    version: str, release: str, cli: Cli, record_property: Callable[[str, object], None]
) -> None:
    with Cluster(release=version) as running:
        call = ("FindCoordinator", '{"keyType": 1, "coordinatorKeys": ["t"]}')
        about = ("DescribeTransactions", '{"transactionalIds": ["t"]}')
        for request in (call, about):
            answer = cli("call", running.bootstrap, *request)
            assert (answer.code, is_one_line_error(answer.err)) == (2, True)
            assert "would create the topic __transaction_state, which this cluster doesn't have yet" in answer.err
        reading = json.loads(cli.out("probe", running.bootstrap, "--json"))
        assert json.loads(cli.out("call", running.bootstrap, "Metadata", "--json"))["topics"] == []
        writing = json.loads(cli.out("probe", running.bootstrap, "--write", "--json"))
        assert cli("call", running.bootstrap, *about).code == 1
        controller = running.nodes[1].place.address(CONTROLLER[0])
        controlling = json.loads(cli.out("probe", controller, "--bootstrap-controller", "--json"))
    for what, document in {"reading": reading, "--write": writing, "controller": controlling}.items():
        counts = document["counts"]
        assert document["releases"] == [release]
        assert (counts["failed"], counts["unknown"], counts["examplesRefused"]) == (0, 0, 0)
        record_property(
            "measured",
            f"probe of {version}, {what}: {counts['proven']} of {counts['offered']} (API, version) pairs proven,"
            f" {counts['answers']} answers, all exact, {counts['examplesAccepted']} examples accepted",
        )
    assert writing["counts"]["proven"] == writing["counts"]["offered"]
    unserved = {(proof["api"], proof["version"]) for proof in writing["proofs"] if proof["example"] == "unserved"}
    # OffsetCommit v0 is refused only where its topic is there, and other examples make and delete it.
    unserved |= {("OffsetCommit", 0)} if release == "3.9" else set()
    assert unserved == (UNSERVED.keys() if release == "3.9" else set())


def test_half_the_rights_prove_as_much(secured_cluster: Cluster, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(SECURED_USERS["bob"])
    login = ("--sasl-mechanism", "SCRAM-SHA-256", "--username", "bob", "--password-file", f"{tmp_path}/password")
    address = secured_cluster.addresses(SASL)
    document = json.loads(cli.out("probe", address, *login, "--json"))
    assert (document["counts"]["failed"], document["counts"]["examplesRefused"]) == (0, 0)
    seen = {error["error"] for proof in document["proofs"] for error in proof["errors"]}
    assert {"TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"} <= seen
    # a login would begin anew
    assert {proof["state"] for proof in document["proofs"] if proof["api"].startswith("Sasl")} == {"not sent"}
    answer = cli("call", address, "DescribeQuorum", *login)
    assert (answer.code, answer.err) == (1, "")
    assert "errorCode is CLUSTER_AUTHORIZATION_FAILED (31)." in answer.out
