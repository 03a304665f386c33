"""Layouts: what a version looks like in a release, down to the fewest bytes that it takes."""

import pytest

import kafkascope
from kafkascope.errors import UsageError
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import LayoutField, layout
from tests.support.pairs import every_pair, every_place
from tests.support.values import random_value


def names(name: str, version: int, release: str | None = None) -> list[str]:
    return [field.name for field in layout(name, version, release).fields]


def at(name: str, version: int, path: str, release: str | None = None) -> LayoutField:
    fields = layout(name, version, release).fields
    *outer, last = path.split(".")
    for part in outer:
        fields = next(field.fields for field in fields if field.name == part)
    return next(field for field in fields if field.name == last)


def test_there_are_883_of_them() -> None:
    assert len(every_pair()) == 883
    assert all(layout(name, version).fields is not None for name, version in every_pair())


# protocol notes 24, 27
def test_a_release_gets_its_own_layout() -> None:
    name, path = "ReadShareGroupStateSummaryResponse", "results.partitions"
    assert "leaderEpoch" in [field.name for field in at(name, 0, path).fields]
    assert "leaderEpoch" in [field.name for field in at(name, 0, path, "4.1").fields]
    for release in ("3.9", "4.0", "4.0.1"):
        assert "leaderEpoch" not in [field.name for field in at(name, 0, path, release).fields]
    assert [names("LeaderChangeMessage", 0, release) for release in ("2.7", "2.8", "3.0")] == [
        ["leaderId", "voters"],
        ["leaderId", "voters", "grantingVoters"],
        ["version", "leaderId", "voters", "grantingVoters"],
    ]
    assert names("ConsumerGroupHeartbeatRequest", 0, "3.6") != names("ConsumerGroupHeartbeatRequest", 0, "3.7")
    # 2.7's field comes before the ones that 2.8 kept
    assert [f.name for f in at("EndQuorumEpochRequest", 0, "topics.partitions", "2.7").fields][1] == "replicaId"
    assert "replicaId" not in [f.name for f in at("EndQuorumEpochRequest", 0, "topics.partitions", "2.8").fields]


def test_bytes_of_one_release_are_not_read_as_anothers() -> None:
    partition = {"partition": 1, "errorCode": 0, "errorMessage": None, "stateEpoch": 2, "startOffset": 3}
    value = {"results": [{"partitions": [partition]}]}
    data = kafkascope.encode("ReadShareGroupStateSummaryResponse", 0, value, "3.9")
    old = kafkascope.decode("ReadShareGroupStateSummaryResponse", 0, data, "4.0")
    assert old.exact
    assert old.value["results"][0]["partitions"] == [partition]
    with pytest.raises(kafkascope.DecodeError):
        kafkascope.decode("ReadShareGroupStateSummaryResponse", 0, data)


# protocol note 26
def test_a_tag_is_there_from_its_release_on() -> None:
    plain = ["errorCode", "apiKeys", "throttleTimeMs"]
    features = ["supportedFeatures", "finalizedFeaturesEpoch", "finalizedFeatures"]
    assert names("ApiVersionsResponse", 3, "2.6") == plain
    assert names("ApiVersionsResponse", 3, "2.7") == names("ApiVersionsResponse", 3, "3.3") == plain + features
    assert (
        names("ApiVersionsResponse", 3, "3.4")
        == names("ApiVersionsResponse", 3)
        == [*plain, *features, "zkMigrationReady"]
    )


# protocol note 29
def test_names_are_those_of_the_release() -> None:
    assert "acceptableRecoveryLag" in names("StreamsGroupHeartbeatResponse", 0, "4.3")
    assert "acceptableRecoveryLagLegacy" in names("StreamsGroupHeartbeatResponse", 0)
    assert layout("AlterIsrRequest", 0).message.name == "AlterPartitionRequest"
    aliases = at("StreamsGroupHeartbeatResponse", 0, "acceptableRecoveryLagLegacy").aliases
    assert aliases == ("AcceptableRecoveryLagLegacy", "acceptableRecoveryLag", "AcceptableRecoveryLag")


# protocol note 19
@pytest.mark.parametrize(
    ("name", "path", "nullable"),
    [
        ("OffsetFetchRequest", "topics", set(range(2, 8))),
        ("MetadataResponse", "topics.name", {12, 13}),
        ("DescribeConfigsRequest", "resources.configurationKeys", {0, 1, 2, 3, 4}),
        ("CreateTopicsResponse", "topics.configs", {5, 6, 7}),
        ("FindCoordinatorResponse", "errorMessage", {1, 2, 3}),
    ],
)
def test_nullable_versions_are_those_of_the_definition(name: str, path: str, nullable: set[int]) -> None:
    nullable_versions = set()
    for version in message(name).all_versions():
        parts = path.split(".")
        fields = layout(name, version).fields
        for part in parts:
            hit = next((field for field in fields if field.name == part), None)
            fields = hit.fields if hit else ()
        if hit and hit.nullable:
            nullable_versions.add(version)
    assert nullable_versions == nullable


# protocol note 1
def test_one_string_in_all_of_kafka_stays_classic_in_a_flexible_version() -> None:
    def classic(fields: tuple[LayoutField, ...]) -> list[str]:
        return [f.name for f in fields if not f.compact] + [name for f in fields for name in classic(f.fields)]

    classic_strings = [
        (*pair, names) for pair in every_pair() if layout(*pair).flexible and (names := classic(layout(*pair).fields))
    ]
    assert classic_strings == [("RequestHeader", 2, ["clientId"])]


def test_minimum_is_the_fewest_bytes_that_a_message_takes() -> None:
    """Counts are refused by it: too large a minimum would refuse what is right."""
    for name, version, release in every_place():
        known = layout(name, version, release)
        least = sum(field.minimum for field in known.fields) + known.flexible
        # Themes of nothing: defaults, least numbers, nulls, empty ones.
        sizes = [len(kafkascope.encode(name, version, random_value(known, case), release)) for case in (0, 1, 3, 4)]
        assert least <= min(sizes), (name, version, release)
        plain = [f for f in known.fields if f.tag is None]
        sized = [f for f in plain if f.array or f.type == "string" or (f.nullable and f.type == "struct")]
        empty = {f.name: None if f.nullable else [] if f.array else "" for f in sized}
        if not any(f.type == "struct" and not f.array and not f.nullable for f in plain):
            assert len(kafkascope.encode(name, version, empty, release)) == least, (name, version, release)


def test_elements_take_a_byte_at_least() -> None:
    """protocol note 22: a count of elements of no bytes could not be held against the frame."""

    def arrays(fields: tuple[LayoutField, ...]) -> list[LayoutField]:
        return [
            array_field for field in fields for array_field in ([field] if field.array else []) + arrays(field.fields)
        ]

    for place in every_place():
        for field in arrays(layout(*place).fields):
            assert field.element_minimum >= 1, (place, field.name)


def test_defaults_are_new_objects_each_time() -> None:
    for place in every_place():
        for field in layout(*place).fields:
            default = field.default_value()
            if isinstance(default, (list, dict)):
                assert field.default_value() is not default
                assert field.default_value() == default


def test_versions_that_are_not_there_are_named_with_those_that_are() -> None:
    with pytest.raises(UsageError) as caught:
        layout("ShareFetchRequest", 3)
    assert str(caught.value) == "ShareFetchRequest has no version 3; it has 0-2 (v0 in 3.9-4.0; v1 in 4.1+; v2 in 4.2+)"
    with pytest.raises(UsageError, match=r"ProduceRequest v0 isn't in Kafka 4.0; releases that have it: 0.8.2-3.9"):
        layout("ProduceRequest", 0, "4.0")
    with pytest.raises(UsageError):
        layout("ProduceRequest", -1)


def test_a_patch_release_is_its_release() -> None:
    assert layout("ProduceRequest", 3, "3.9.2") is layout("ProduceRequest", 3, "3.9")
