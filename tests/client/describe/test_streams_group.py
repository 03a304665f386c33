"""Answers about a recorded streams group become views: tasks, lag as Kafka's tool has it, what it waits for."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from kafkascope.client.describe.offsets import Offset
from kafkascope.client.describe.streams_group import input_partitions, streams_group_of, subtopologies_of
from kafkascope.client.describe.streams_values import StreamsGroupView
from tests.client.describe.recorded import answers

REPARTITION = "counters-KSTREAM-AGGREGATE-STATE-STORE-0000000007-repartition"


def groups() -> list[Mapping[str, Any]]:
    described = [value["groups"][0] for value in answers("streams", 1, "StreamsGroupDescribe")]
    return [candidate for candidate in described if not candidate["errorCode"]]


def view(group: Mapping[str, Any], topics: Mapping[str, int] | None = None) -> StreamsGroupView:
    return streams_group_of(group, {}, {}, {}, topics)


def at(state: str, epoch: int) -> StreamsGroupView:
    return view(
        next(
            candidate for candidate in groups() if (candidate["groupState"], candidate["groupEpoch"]) == (state, epoch)
        )
    )


def test_stable_group_holds_every_task_and_waits_for_nothing() -> None:
    group = at("Stable", 4)
    assert group.waits == () and len(group.processes) == 2
    active = sorted(task for member in group.members for task in member.assignment.active)
    assert active == ["0_0", "0_1", "0_2", "1_0", "1_1", "1_2"]
    assert all(member.assignment == member.target for member in group.members)


def test_topology_names_sources_repartition_and_changelog_topics() -> None:
    first, second = at("Stable", 4).subtopologies
    assert (first.source_topics, first.repartition_sink_topics) == (("words",), (REPARTITION,))
    assert [(topic.name, topic.partitions) for topic in second.repartition_source_topics] == [(REPARTITION, 3)]
    assert first.nodes == () and at("Stable", 4).topology_description is None


def test_rebalance_waits_for_the_member_that_has_a_task_to_give_up() -> None:
    waits = at("Reconciling", 5).waits
    assert any(line.startswith("first") and "has yet to release active 0_1" in line for line in waits)
    assert any(line.startswith("third") and line.endswith("to release active 0_1") for line in waits)


def test_rebalance_waits_for_a_member_that_has_not_confirmed_what_it_gave_up() -> None:
    waits = at("Reconciling", 4).waits
    assert any(
        line.startswith("second") and "waits for active 0_2, 1_1, 1_2, until first" in line and "epoch 3" in line
        for line in waits
    )


def test_group_that_is_assigning_waits_for_its_coordinator() -> None:
    assert at("Assigning", 7).waits[0] == "the coordinator has not assigned epoch 7 yet; the assignment is of 6"


def test_lag_is_end_less_committed_or_less_first_where_nothing_is_committed() -> None:
    group = next(
        candidate for candidate in groups() if candidate["groupState"] == "Stable" and len(candidate["members"]) == 2
    )
    places = input_partitions(group)
    assert {topic for topic, _ in places} == {"words", REPARTITION} and len(places) == 6
    ends = {place: Offset(100, 3) for place in places}
    firsts = {place: Offset(10, 3) for place in places if place != ("words", 0)}
    seen = streams_group_of(group, {("words", 0): Offset(40, 2)}, firsts, ends, None)
    by_place = {(source.topic, source.partition): source for source in seen.inputs}
    assert (by_place["words", 0].current_offset, by_place["words", 0].lag) == (40, 60)
    assert (by_place["words", 1].current_offset, by_place["words", 1].lag) == (None, 90)
    assert (by_place["words", 1].task, by_place[REPARTITION, 2].task) == ("0_1", "1_2")
    assert seen.lag == 60 + 5 * 90


def test_lag_is_unknown_where_an_offset_is() -> None:
    group = next(candidate for candidate in groups() if candidate["groupState"] == "Stable")
    seen = streams_group_of(group, {}, {}, {place: Offset(100, 0) for place in input_partitions(group)}, None)
    assert seen.lag is None and {source.lag for source in seen.inputs} == {None}


def test_topics_that_do_not_exist_and_old_topologies_are_statuses() -> None:
    group = deepcopy(dict(groups()[0]))
    group["topology"]["epoch"] = 1
    names = {name for part in subtopologies_of(group) for name in part.source_topics}
    seen = view(group, {REPARTITION: 5})
    assert names == {"words"}
    details = {status.name: status.detail for status in seen.statuses}
    assert "words" in details["MISSING_SOURCE_TOPICS"]
    assert "changelog" in details["MISSING_INTERNAL_TOPICS"]
    assert f"{REPARTITION} has 5 partitions, but needs 3" in details["INCORRECTLY_PARTITIONED_TOPICS"]
    assert "epoch 1" in details["STALE_TOPOLOGY"]


def test_nothing_is_said_of_topics_that_may_not_be_seen() -> None:
    assert view(groups()[0], None).statuses == ()


def test_whole_topology_is_told_by_version_1() -> None:
    """4.4, of which there is no broker to record: the layout of KIP-1331."""
    group = deepcopy(dict(groups()[0]))
    node = {"name": "KSTREAM-SOURCE-0", "nodeType": 1, "sourceTopics": ["words"], "sinkTopic": None}
    node |= {"stores": [], "successors": ["KSTREAM-AGGREGATE-2"]}
    group["topologyDescription"] = {"subtopologies": [{"subtopologyId": "0", "nodes": [node]}], "globalStores": []}
    group |= {"topologyDescriptionStatus": 3, "assignorName": "sticky"}
    seen = view(group)
    assert (seen.topology_description, seen.assignor) == ("AVAILABLE", "sticky")
    assert [(vertex.name, vertex.kind) for vertex in seen.subtopologies[0].nodes] == [("KSTREAM-SOURCE-0", "SOURCE")]


def test_task_offsets_show_how_far_a_copy_of_the_state_is() -> None:
    group = deepcopy(dict(groups()[0]))
    member = group["members"][0]
    member["taskOffsets"] = [{"subtopologyId": "0", "partition": 1, "offset": 40}]
    member["taskEndOffsets"] = [{"subtopologyId": "0", "partition": 1, "offset": 100}]
    assert [(offset.task, offset.lag) for offset in view(group).members[0].task_offsets] == [("0_1", 60)]
