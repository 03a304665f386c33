"""Coded fields and the facts about APIs: every place, method and number that the data files name exists."""

import zipfile

import pytest

from kafkascope.schema.api_facts import api_facts, families, family_of, field_kips, kips_of
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.files import lines
from kafkascope.schema.kip_titles import kip_title
from kafkascope.schema.values import NamedValues, all_places, meaning, named_values
from kafkascope.schema.versions import parse_versions
from tests.support.places import every_field
from tools.catalog.classfile import ClassFile
from tools.catalog.jars import fetch_releases, read_releases

# A bool is 0 or 1 on the wire, and two of them have names.
NUMBERS = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64")


def at(place: str, version: int | None = None) -> list[NamedValues]:
    name, *path = place.split(".")
    return named_values(message(name), tuple(path), version)


def test_every_place_of_named_values_exists() -> None:
    assert sorted(all_places() - every_field().keys()) == []


def test_numbers_and_bits_stand_at_number_fields() -> None:
    wrong = [
        (place, named.kind, every_field()[place].type)
        for place in all_places()
        for named in at(place)
        if named.kind != "strings" and every_field()[place].type not in NUMBERS
    ]
    assert wrong == []


def test_words_stand_at_string_and_uuid_fields() -> None:
    kinds = {every_field()[place].type for place in all_places() for named in at(place) if named.kind == "strings"}
    assert kinds <= {"string", "uuid"}


def test_a_condition_names_a_field_beside_it() -> None:
    wrong = [
        (place, named.condition)
        for place in all_places()
        for named in at(place)
        if named.condition and f"{place.rpartition('.')[0]}.{named.condition[0]}" not in every_field()
    ]
    assert wrong == []


def test_no_value_has_two_names_at_one_place() -> None:
    wrong = []
    for place in all_places():
        for named in at(place):
            values = [value.value for value in named.values if not value.versions]
            if len(values) != len(set(values)):
                wrong.append(place)
    assert wrong == []


def test_versions_of_a_value_are_versions_of_its_message() -> None:
    wrong = []
    for place in all_places():
        known = message(place.partition(".")[0]).all_versions()
        for named in at(place):
            for value in (*named.values, *named.whole):
                if value.versions and value.only_at in (None, place):
                    wrong += [place] if not any(v in parse_versions(value.versions) for v in known) else []
    assert wrong == []


def test_an_acknowledge_type_of_renew_is_known_from_version_2_on() -> None:
    place = "ShareFetchRequest.Topics.Partitions.AcknowledgementBatches.AcknowledgeTypes"
    assert [value.name for value in at(place, 1)[0].values] == ["Gap", "Accept", "Release", "Reject"]
    assert [value.name for value in at(place, 2)[0].values][-1] == "Renew"
    assert meaning(at(place, 2), 4) == "Renew"
    assert meaning(at(place, 1), 4) is None


def test_a_bit_field_is_named_by_its_bits() -> None:
    place = "ShareGroupDescribeResponse.Groups.AuthorizedOperations"
    # bits are AclOperation codes: 3 Read, 6 Delete, 8 Describe
    assert meaning(at(place, 1), 1 << 3 | 1 << 6 | 1 << 8) == "Read|Delete|Describe"
    assert meaning(at(place, 1), 0) == "none allowed"
    assert meaning(at(place, 1), -(2**31)) == "not requested"


def test_a_bool_with_named_values_is_named() -> None:
    assert meaning(at("WriteTxnMarkersRequest.Markers.TransactionResult"), True) == "COMMIT"
    assert meaning(at("WriteTxnMarkersRequest.Markers.TransactionResult"), False) == "ABORT"


def test_a_number_without_a_name_has_no_meaning() -> None:
    assert meaning(at("ShareFetchRequest.ShareAcquireMode", 2), 99) is None
    assert meaning([], 1) is None


def test_every_api_has_a_permission_a_family_and_a_sender() -> None:
    for api in apis().values():
        facts = api_facts(api)
        assert facts.acls, api
        assert facts.sends, api
        assert family_of(api) in families(), api


def test_every_api_is_in_one_family() -> None:
    listed = [api for names in families().values() for api in names]
    assert sorted(listed) == sorted(apis().values())


def test_facts_are_about_apis_that_exist_in_the_order_of_their_keys() -> None:
    assert [line for line in lines("apis.txt") if not line.startswith(" ")] == list(apis().values())


def test_every_row_of_facts_is_of_a_known_kind() -> None:
    kinds = {line.split()[0] for line in lines("apis.txt") if line.startswith(" ")}
    assert kinds == {"acl", "tool", "admin", "sends", "kip"}


def test_a_permission_names_an_operation_and_a_resource_of_kafka() -> None:
    operations = (
        "Read Write Create Delete Alter Describe ClusterAction DescribeConfigs AlterConfigs IdempotentWrite"
        " CreateTokens DescribeTokens TwoPhaseCommit"
    ).split()
    resources = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")
    for api in apis().values():
        for operation, resource, _ in api_facts(api).acls:
            assert (operation in operations and resource in resources) or (operation, resource) == ("none", ""), api


def test_every_kip_names_a_version_and_a_field_that_exist() -> None:
    for api in apis().values():
        for kip in api_facts(api).kips:
            assert kip.version is None or kip.version in message(f"{api}Request").all_versions(), (api, kip)
            assert kip.place is None or kip.place in every_field(), (api, kip)


def test_a_kip_has_a_title_unless_no_source_confirmed_it() -> None:
    named = {kip.number for api in apis().values() for kip in api_facts(api).kips}
    named |= {number for name in index() for _, numbers in message(name).kips for number in numbers}
    assert {number for number in named if kip_title(number) is None} == {322, 836}
    assert {int(line.split()[0]) for line in lines("kips.txt")} <= named


def test_the_kips_of_definition_files_are_among_those_checked_by_hand() -> None:
    # SyncGroup v5 is KIP-559 (2.5 has 599), InitProducerId v4 is not KIP-890, ListTransactions v1 not KIP-1152
    for name in index():
        known = message(name)
        if known.api is None:
            continue
        checked = {(kip.version or 0, kip.number) for kip in api_facts(known.api).kips}
        assert {(version, number) for version, numbers in known.kips for number in numbers} <= checked, name


def test_kips_of_a_version_are_its_own_and_those_of_the_whole_api() -> None:
    request = message("ShareFetchRequest")
    assert kips_of(request, 1) == [932]
    assert kips_of(request, 2) == [932, 1206, 1222]
    assert field_kips(request, ("IsRenewAck",)) == [1222]
    assert field_kips(request, ("GroupId",)) == []


@pytest.mark.heavy
def test_every_admin_method_exists_in_the_newest_client() -> None:
    newest = read_releases()[-1]
    fetch_releases([newest])
    methods: set[str] = set()
    with zipfile.ZipFile(newest.jar("kafka-clients")) as jar:
        # the interface has bodies only for its default methods
        for name in ("Admin", "KafkaAdminClient"):
            class_file = ClassFile(jar.read(f"org/apache/kafka/clients/admin/{name}.class"))
            methods |= {method for method, _ in class_file.methods}
    named = {(api, method) for api in apis().values() for method in api_facts(api).admin}
    assert sorted((api, method) for api, method in named if method not in methods) == []
    assert len(named) > 60


@pytest.mark.parametrize("api", ["DescribeQuorum", "ShareGroupDescribe", "StreamsGroupDescribe"])
def test_what_people_ask_for_names_its_tool_and_admin_method(api: str) -> None:
    facts = api_facts(api)
    assert facts.tools
    assert facts.admin
