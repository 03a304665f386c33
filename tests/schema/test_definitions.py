"""Kafka's definition files with all their oddities, and twenty releases of one message merged into one tree."""

from typing import Any

import pytest

from tools.catalog.definitions import Definition, FieldDefinition, parse
from tools.catalog.merge import Merged, MergedField, check, choose, merge, shape, tree
from tools.catalog.write import message_lines

HEAD = '"apiKey": 1, "type": "request", "name": "TestRequest", "listeners": ["broker"]'


def define(fields: str, valid: str = "0-3", flexible: str = "2+", head: str = HEAD) -> Definition:
    return parse(f'{{ {head}, "validVersions": "{valid}", "flexibleVersions": "{flexible}", "fields": [{fields}] }}')


def field(name: str, type_: str = "int32", versions: str = "0+", **more: Any) -> str:
    extra = "".join(f', "{key}": {value}' for key, value in more.items())
    return f'{{ "name": "{name}", "type": "{type_}", "versions": "{versions}"{extra} }}'


def only(definition: Definition) -> FieldDefinition:
    (definition_field,) = definition.fields
    return definition_field


# protocol note 23
def test_comments_are_dropped_but_not_inside_strings() -> None:
    definition = parse("""
        // Licensed to someone under // something
        {
          "apiKey": 78, // the key
          "type": "request",
          "listeners": ["broker"],
          "name": "TestRequest", // "name": "Other"
          "validVersions": "0",
          "flexibleVersions": "0+",
          "fields": [
            { "name": "Url", "type": "string", "versions": "0+", "default": "http://x", "about": "say \\"//\\" twice" }
          ] // the end
        }
    """)
    assert (definition.name, definition.api_key, definition.kind) == ("TestRequest", 78, "request")
    assert only(definition).default == "http://x"


@pytest.mark.parametrize(
    ("type_", "written", "default"),
    [
        ("int32", '"0x7fffffff"', "2147483647"),
        ("int64", '"0x7fffffffffffffff"', "9223372036854775807"),
        ("int32", '"-1"', "-1"),
        ("int32", "-1", "-1"),
        ("int32", '"0"', None),
        ("bool", '"true"', "true"),
        ("bool", '"false"', None),
        ("bool", "true", "true"),
        ("string", '"null"', "null"),
        ("string", '""', None),
        ("string", '"range"', "range"),
        ("float64", '"0.0"', None),
        ("float64", '"1.5"', "1.5"),
        ("[]int32", '"null"', "null"),
    ],
)
def test_defaults_have_one_spelling(type_: str, written: str, default: str | None) -> None:
    assert only(define(field("F", type_, default=written))).default == default


def test_a_tag_may_be_written_as_a_string() -> None:
    for tag in ("0", '"0"'):
        parsed = only(define(field("F", versions="2+", taggedVersions='"2+"', tag=tag)))
        assert (parsed.tag, parsed.tagged) == (0, "2+")


def test_valid_versions_none_comes_without_fields() -> None:
    definition = parse(f'{{ {HEAD}, "validVersions": "none" }}')
    assert definition.fields == []
    assert definition.valid == "none"


def test_a_removed_message_keeps_the_versions_that_it_had() -> None:
    removed = parse(f'{{ {HEAD}, "validVersions": "none" }}')
    merged = merge({"3.9": define(field("F")), "4.0": removed})
    assert merged.valid == {"3.9": frozenset({0, 1, 2, 3}), "4.0": frozenset()}
    assert names(merged, 3, "3.9") == ["F"]


def test_common_structs_are_filled_in_wherever_they_are_used() -> None:
    definition = parse(f"""{{ {HEAD}, "validVersions": "0", "flexibleVersions": "none",
        "fields": [
          {{ "name": "One", "type": "[]Pair", "versions": "0+" }},
          {{ "name": "Two", "type": "Pair", "versions": "0+", "nullableVersions": "0+" }}
        ],
        "commonStructs": [
          {{ "name": "Pair", "versions": "0+", "fields": [
            {{ "name": "Inner", "type": "[]Leaf", "versions": "0+" }} ] }},
          {{ "name": "Leaf", "versions": "0+", "fields": [
            {{ "name": "Key", "type": "string", "versions": "0+" }} ] }}
        ] }}""")
    first, second = definition.fields
    assert [child.name for child in first.fields] == [child.name for child in second.fields] == ["Inner"]
    assert [leaf.name for leaf in first.fields[0].fields] == ["Key"]
    assert first.is_struct and second.nullable == "0+"


def test_a_struct_that_contains_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="Node contains itself"):
        parse(f"""{{ {HEAD}, "validVersions": "0", "flexibleVersions": "none",
            "fields": [ {{ "name": "Root", "type": "Node", "versions": "0+" }} ],
            "commonStructs": [ {{ "name": "Node", "versions": "0+", "fields": [
                {{ "name": "Next", "type": "[]Node", "versions": "0+" }} ] }} ] }}""")


def test_header_strings_may_stay_classic() -> None:
    # RequestHeader's ClientId (protocol note 1)
    parsed = only(define(field("ClientId", "string", "1+", nullableVersions='"1+"', flexibleVersions='"none"')))
    assert parsed.classic
    assert not only(define(field("Name", "string"))).classic


# protocol note 28
def test_text_behind_the_end_is_dropped() -> None:
    # 2.8's DescribeProducersRequest closes twice
    definition = parse(f'{{ {HEAD}, "validVersions": "0", "fields": [{field("Topics", "[]string")} ]}}\n  ]\n}}\n')
    assert only(definition).name == "Topics"


def test_trailing_commas_are_dropped_but_not_inside_strings() -> None:
    definition = parse(
        f'{{ {HEAD}, "validVersions": "0", "fields": [{field("F", "string", default=chr(34) + ",]" + chr(34))}, ], }}'
    )
    assert only(definition).default == ",]"


def test_a_tagged_field_without_versions_takes_its_tagged_versions() -> None:
    # 3.5's FetchRequest
    definition = define('{ "name": "ReplicaState", "type": "int32", "taggedVersions": "15+", "tag": 1 }')
    assert only(definition).versions == "15+"


def test_kips_and_errors_are_read_from_comments() -> None:
    definition = parse(f"""// Version 9 of the license (KIP-999)
    {{
      {HEAD},
      // Version 1 adds X (KIP-320, KIP-98).
      //
      // Version 2 is the same as version 1 (KIP-482).
      // Supported errors:
      // - NOT_COORDINATOR (version 0+)
      // - INVALID_RECORD_STATE (version 1+) - only for AcknowledgeErrorCode
      "validVersions": "0-2", "flexibleVersions": "2+", "fields": []
    }}""")
    assert definition.kips == {1: [320, 98], 2: [482]}
    listed = [(error.name, error.versions, error.fields) for error in definition.errors]
    assert listed == [("INVALID_RECORD_STATE", "1+", ("AcknowledgeErrorCode",)), ("NOT_COORDINATOR", "0+", ())]


def test_a_kip_named_apart_from_a_version_is_of_none() -> None:
    definition = parse(f"""{{
      {HEAD},
      // Version 1 is the same as version 0 (KIP-994).
      // This API can return InvalidRegularExpression (KIP-1152).
      // Version 2 adds the support for new error code PRODUCER_FENCED.
      //
      // Verison 3 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).
      "validVersions": "0-3", "flexibleVersions": "2+", "fields": []
    }}""")
    assert definition.kips == {1: [994], 3: [890]}


def test_a_later_release_corrects_the_kips_of_a_version() -> None:
    merged = merge({"2.5": define("", "0-1"), "2.6": define("", "0-1")})
    for release, kip in (("2.5", 599), ("2.6", 559)):
        merged.definitions[release].kips[1] = [kip]
    assert "kip 1 559" in message_lines(merged, {}, ["2.5", "2.6"], ["2.5", "2.6"])


def names(merged: Merged, version: int, release: str) -> list[str]:
    block = choose(merged.blocks, version, release)
    present = [f for f in block.fields if version in f.versions and version not in f.tagged]
    return [f.name_in(release) for f in present]


def by_name(fields: list[MergedField], name: str) -> MergedField:
    return next(merged_field for merged_field in fields if merged_field.name == name)


# protocol notes 24, 27
def test_two_layouts_of_one_version_get_a_block_each() -> None:
    merged = merge(
        {
            "3.9": define(field("StateEpoch") + "," + field("StartOffset", "int64"), "0"),
            "4.0": define(field("StateEpoch") + "," + field("StartOffset", "int64"), "0"),
            "4.1": define(field("StateEpoch") + "," + field("LeaderEpoch") + "," + field("StartOffset", "int64"), "0"),
        }
    )
    assert [(block.first, block.last) for block in merged.blocks] == [(None, None), ("3.9", "4.0")]
    assert names(merged, 0, "4.0") == ["StateEpoch", "StartOffset"]
    assert names(merged, 0, "4.1") == ["StateEpoch", "LeaderEpoch", "StartOffset"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (field("F", "int32"), field("F", "int64")),
        (field("F", "string"), field("F", "[]string")),
        (field("F", "string", nullableVersions='"0+"'), field("F", "string")),
        (field("A") + "," + field("F", "string"), field("F", "string") + "," + field("A")),
        (field("F", versions="2+", taggedVersions='"2+"', tag=0), field("F", versions="2+")),
        (
            field("F", versions="2+", taggedVersions='"2+"', tag=0),
            field("F", versions="2+", taggedVersions='"2+"', tag=0, default='"5"'),
        ),
    ],
    ids=["type", "array", "null-no-more", "order", "tag-no-more", "tag-default"],
)
def test_a_changed_wire_is_another_layout(before: str, after: str) -> None:
    merged = merge({"3.0": define(before, "2"), "3.1": define(after, "2")})
    assert len(merged.blocks) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (field("F", "bytes"), field("F", "records")),
        (field("F", "records"), field("F", "records", nullableVersions='"0+"')),
        (field("F"), field("G")),
        (field("F"), field("F", entityType='"brokerId"')),
        (field("F", default='"5"'), field("F", default='"6"')),
        (field("F"), field("F") + "," + field("T", versions="2+", taggedVersions='"2+"', tag=0)),
    ],
    ids=["bytes-records", "nullable-now", "renamed", "entity", "default", "tag-added"],
)
def test_a_changed_definition_of_the_same_wire_is_one_layout(before: str, after: str) -> None:
    merged = merge({"3.0": define(before, "2"), "3.1": define(after, "2")})
    assert len(merged.blocks) == 1


def test_a_flexible_version_that_was_not_flexible_is_another_layout() -> None:
    # EndQuorumEpoch v0 in 2.7
    merged = merge({"2.7": define(field("F"), "0", "none"), "2.8": define(field("F"), "0", "0+")})
    assert [(block.first, sorted(block.flexible)) for block in merged.blocks] == [(None, [0]), ("2.7", [])]


# protocol note 25
def test_fields_of_removed_versions_come_from_the_last_release_that_had_them() -> None:
    merged = merge(
        {
            "3.9": define(field("Old", versions="0-1") + "," + field("Both"), "0-3"),
            "4.0": define(field("Both"), "2-3"),
        }
    )
    (block,) = merged.blocks
    assert sorted(block.versions) == [0, 1, 2, 3]
    assert [(f.name, sorted(f.versions)) for f in block.fields] == [("Old", [0, 1]), ("Both", [0, 1, 2, 3])]
    assert merged.valid["4.0"] == frozenset({2, 3})


# protocol note 26
def test_a_tag_that_a_later_release_adds_to_an_old_version_knows_its_release() -> None:
    features = field("Features", versions="3+", taggedVersions='"3+"', tag=0)
    ready = field("Ready", "bool", "3+", taggedVersions='"3+"', tag=1)
    merged = merge(
        {
            "2.4": define(field("F"), "0-3", "3+"),
            "2.7": define(field("F") + "," + features, "0-3", "3+"),
            "3.4": define(field("F") + "," + features + "," + ready, "0-3", "3+"),
        }
    )
    (block,) = merged.blocks
    assert {f.name: f.since for f in block.fields} == {"F": None, "Features": "2.7", "Ready": "3.4"}
    assert names(merged, 3, "2.4") == ["F"]
    assert len(shape(block.fields, 3, "2.7")) == 2


# protocol note 29
def test_a_field_goes_by_its_newest_name_and_keeps_the_earlier_ones() -> None:
    merged = merge(
        {
            "2.2": define(field("Index")),
            "2.3": define(field("Index")),
            "2.4": define(field("Key")),
            "3.0": define(field("ApiKey")),
        }
    )
    (merged_field,) = merged.blocks[0].fields
    assert merged_field.name == "ApiKey"
    assert merged_field.was == {"2.3": "Index", "2.4": "Key"}
    assert [merged_field.name_in(release) for release in ("2.2", "2.3", "2.4", "3.0")] == [
        "Index",
        "Index",
        "Key",
        "ApiKey",
    ]


def test_a_name_given_to_another_field_of_a_later_version_stays_apart() -> None:
    # StreamsGroupHeartbeatResponse's AcceptableRecoveryLag
    merged = merge(
        {
            "4.3": define(field("Lag"), "0", "0+"),
            "4.4": define(field("LagLegacy", versions="0") + "," + field("Lag", "int64", "1+"), "0-1", "0+"),
        }
    )
    (block,) = merged.blocks
    assert [(f.name, f.type, sorted(f.versions), f.was) for f in block.fields] == [
        ("LagLegacy", "int32", [0], {"4.3": "Lag"}),
        ("Lag", "int64", [1], {}),
    ]


def test_a_renamed_message_goes_by_its_newest_name() -> None:
    older = HEAD.replace("TestRequest", "AlterIsrRequest")
    newer = HEAD.replace("TestRequest", "AlterPartitionRequest")
    merged = merge({"3.1": define(field("F"), head=older), "3.2": define(field("F"), head=newer)})
    assert merged.name == "AlterPartitionRequest"
    assert [definition.name for definition in merged.definitions.values()] == [
        "AlterIsrRequest",
        "AlterPartitionRequest",
    ]


def test_check_finds_a_merged_tree_that_says_something_else() -> None:
    merged = merge({"3.0": define(field("A") + "," + field("B"))})
    check(merged)
    by_name(merged.blocks[0].fields, "B").name = "C"
    with pytest.raises(ValueError, match=r"TestRequest v0 of 3.0"):
        check(merged)


def test_tree_keeps_the_fields_of_the_versions_asked_for() -> None:
    definition = define(field("A", versions="0-1") + "," + field("B", versions="2+") + "," + field("C", versions="1+"))
    assert [f.name for f in tree(definition, frozenset({1}))] == ["A", "C"]
    assert [f.name for f in tree(definition, frozenset({3}))] == ["B", "C"]
