"""A share group of Java and Python members on three brokers, while members join, leave and are killed, a broker is
killed and leaders move. Every record is accepted once, and four logs agree about each: the members' own, the group's
offsets, the state topic on the brokers' disks, and the health ledger of a capture. `make soak` has 100,000 records."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kafkascope.health.share.events import ACKNOWLEDGED, Delivery
from tests.client.share_accounts import Place, acquired_by_member, ended_by_member, last_states, ledger
from tests.client.share_run import GROUP, KILLED, PARTITIONS, Played, play

SHORT, WHOLE = 6_000, 100_000


@dataclass(frozen=True, slots=True)
class Story:
    count: int
    played: Played
    rows: list[Delivery]
    wanted: set[Place]


pytestmark = pytest.mark.heavy
whole = (pytest.mark.soak, pytest.mark.skipif("KAFKASCOPE_SOAK" not in os.environ, reason="runs in make soak"))


@pytest.fixture(scope="module", params=[SHORT, pytest.param(WHOLE, marks=whole)])
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    count: int = request.param
    played = play(count, tmp_path_factory.mktemp("share"))
    wanted = {(partition, offset) for partition in range(PARTITIONS) for offset in range(count // PARTITIONS)}
    return Story(count, played, ledger(played.capture, GROUP), wanted)


def accepted(story: Story) -> dict[Place, tuple[str, int]]:
    """Who accepted each record, with which delivery, by the ledger; a record that two accepted fails."""
    owners: dict[Place, tuple[str, int]] = {}
    for client, ended in ended_by_member(story.rows).items():
        for (place, delivery_count, outcome), times in ended.items():
            if outcome == "accepted":
                assert times == 1 and place not in owners, (place, client, owners.get(place))
                owners[place] = client, delivery_count
    return owners


def test_leaders_moved_away_and_back(story: Story) -> None:
    before, without, after = story.played.leaders
    assert KILLED in before.values() and KILLED not in without.values() and KILLED in after.values()


def test_every_record_is_accepted_once(story: Story, record_property: Callable[[str, object], None]) -> None:
    assert accepted(story).keys() == story.wanted
    ends: Counter[str] = Counter()
    for row in story.rows:
        ends[row.outcome] += row.last_offset - row.first_offset + 1
    shown = ", ".join(f"{count:,} {outcome}" for outcome, count in ends.most_common())
    record_property(
        "measured", f"a share group of {len(story.played.accounts)} members, {story.count:,} records: {shown}"
    )


def test_each_member_was_told_what_the_ledger_says(story: Story) -> None:
    """What may have counted for a member is in the ledger or isn't; everything else agrees to the record."""
    by_member = ended_by_member(story.rows)
    # The others may be so fast that one gets nothing.
    assert by_member.keys() <= story.played.accounts.keys()
    for client, account in story.played.accounts.items():
        counted, confirmed = by_member[client], +account.confirmed
        assert confirmed - counted == Counter(), client
        assert (counted - confirmed) - account.unknown == Counter(), client


def test_the_ledger_has_every_acquisition(story: Story) -> None:
    by_member = acquired_by_member(story.rows)
    for client, account in story.played.accounts.items():
        assert account.deliveries - by_member[client] == Counter(), client
        if account.acquired is None:
            assert account.ranges - by_member[client] == Counter(), client
        else:
            assert account.acquired == by_member[client].total(), client


def test_the_ledger_explains_every_end(story: Story) -> None:
    unexplained = [row for row in story.rows if row.rule == "unexplained" or row.outcome == "open"]
    assert unexplained == []


def test_the_state_topic_has_each_record_as_its_member_accepted_it(story: Story) -> None:
    """The three disks hold the same, and the last state of a record names the delivery that accepted it."""
    writes = story.played.writes
    assert len(writes) == 3
    states = last_states(writes[1])
    assert states == {place: (ACKNOWLEDGED, count) for place, (_, count) in accepted(story).items()}


def test_the_groups_offsets_are_those_of_the_state_topic(story: Story) -> None:
    last = {write.partition: write for write in story.played.writes[1]}
    for partition in story.played.partitions:
        write = last[partition.partition]
        assert (partition.start_offset, partition.lag) == (write.start_offset, 0)
        assert partition.end_offset == story.count // PARTITIONS == write.start_offset + max(write.complete, 0)
