"""Version ranges tell the release and whom a node does not serve."""

import pytest

from kafkascope.client.describe.apis import (
    api_line,
    apis_of,
    client_fit,
    closest_releases,
    expected_ranges,
    oldest_client,
    parse_client,
)
from kafkascope.client.describe.values import NodeAddress
from kafkascope.errors import UsageError
from kafkascope.schema.releases import releases
from tests.client.describe.recorded import answers

NODE = NodeAddress(1, "127.0.0.1:9092")


def recorded() -> dict[int, tuple[int, int]]:
    value = max(answers("clients", 1, "ApiVersions"), key=lambda response: len(response["apiKeys"]))
    return {api_key["apiKey"]: (api_key["minVersion"], api_key["maxVersion"]) for api_key in value["apiKeys"]}


def test_recorded_broker_looks_like_its_release() -> None:
    names, differences = closest_releases(recorded())
    assert (names, differences) == (("4.3",), ())


@pytest.mark.parametrize("release", [release.name for release in releases()])
def test_every_release_looks_like_itself(release: str) -> None:
    names, differences = closest_releases(expected_ranges(release))
    assert release in names and differences == ()


def test_a_patch_that_serves_other_versions_looks_like_its_release() -> None:
    # 4.0.0 serves JoinGroup 2-9, 4.0.1 and later 0-9 (KAFKA-19444)
    ranges = expected_ranges("4.0")
    ranges[11] = (2, 9)
    assert closest_releases(ranges) == (("4.0",), ())


def test_release_is_found_though_some_apis_differ() -> None:
    """As of a broker with a patch of its vendor; without a plugin for telemetry it lacks two more."""
    ranges = expected_ranges("3.9")
    del ranges[32], ranges[71], ranges[72]
    ranges[9999] = (0, 0)
    assert closest_releases(ranges) == (("3.9",), ("DescribeConfigs", "9999"))


def test_clients_before_2_1_are_too_old_for_4_0() -> None:
    """KIP-896: brokers of 4.0 serve clients from 2.1 on."""
    assert oldest_client(expected_ranges("4.0")) == "2.1"
    assert oldest_client(expected_ranges("4.3")) == "2.1"


def test_old_client_has_no_version_in_common() -> None:
    fit = client_fit("java 0.10.2", "0.10.2", recorded())
    dropped = {unserved.api: (unserved.client, unserved.node) for unserved in fit.unserved if unserved.why == "dropped"}
    # the broker says 0 of Produce, and answers from 3 on (KAFKA-18659)
    assert dropped["Produce"] == ("0-2", "3-13")
    assert "Fetch" in dropped


def test_client_of_the_same_release_finds_everything() -> None:
    assert client_fit("java 4.3", "4.3", expected_ranges("4.3")).unserved == ()


def test_newer_client_misses_what_the_node_lacks() -> None:
    fit = client_fit("java 4.3", "4.3", expected_ranges("3.9"))
    assert {unserved.why for unserved in fit.unserved} == {"missing"}
    assert "ShareFetch" in {unserved.api for unserved in fit.unserved}
    # what brokers send to one another is no client's business
    assert "WriteShareGroupState" not in {unserved.api for unserved in fit.unserved}


def test_client_is_named_by_release_with_or_without_java() -> None:
    assert parse_client("java 2.8") == ("java 2.8", "2.8")
    assert parse_client("3.9.1") == ("java 3.9.1", "3.9")
    with pytest.raises(UsageError, match="librdkafka"):
        parse_client("librdkafka 2.3")
    with pytest.raises(UsageError, match=r"9\.9"):
        parse_client("java 9.9")
    for nobody in ("", " ", "java", "java ", "librdkafka"):
        with pytest.raises(UsageError, match=r"write java RELEASE, as in java 2\.8"):
            parse_client(nobody)


def test_line_tells_what_is_gone_and_what_is_unknown() -> None:
    gone = api_line(1, (4, 18))
    assert (gone.api, gone.node, gone.gone, gone.unknown) == ("Fetch", "4-18", "0-3", "")
    newer = api_line(18, (0, 9))
    assert newer.unknown.endswith("9")
    stranger = api_line(9999, (0, 1))
    assert (stranger.api, stranger.unknown) == (None, "0-1")


def test_nodes_that_differ_are_told_apart() -> None:
    view = apis_of({NODE: expected_ranges("4.3"), NodeAddress(2, None): expected_ranges("4.2")})
    assert [node.releases for node in view.nodes] == [("4.3",), ("4.2",)]
