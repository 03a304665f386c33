"""The recorded incident: the ledger says of every record what the programs that held it logged."""

import pytest

from kafkascope.health.share.group_health import share_group_health
from kafkascope.health.share.ledger import share_deliveries
from tests.captures import truth
from tests.health.share_recorded import group_events, share_events
from tests.support.incidents import check_locks_expired_when_they_did, delivered_outcomes, logged_outcomes

GROUP = "processors"
GROUPS = {"share": GROUP, "poison": "accounting"}


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("without", ["nothing", "state_written"])
def test_every_delivery_ended_as_the_programs_logged(name: str, without: str) -> None:
    rows = [*share_deliveries(event for event in share_events(name, GROUPS[name]) if event.kind != without)]
    assert delivered_outcomes(rows) == logged_outcomes(name)


def test_locks_expired_when_their_time_had_passed() -> None:
    check_locks_expired_when_they_did([*share_deliveries(share_events("share", GROUP))])


def test_renewals_and_archiving_are_those_of_the_incident() -> None:
    rows = [*share_deliveries(share_events("share", GROUP))]
    renewed = sum(event["event"] == "acknowledged" and event["type"] == "RENEW" for event in truth("share"))
    assert renewed == sum(row.renewals for row in rows) > 0
    archived = {(row.first_offset, row.delivery_count, row.outcome) for row in rows if row.archived}
    assert archived == {(3, 5, "released"), (5, 1, "rejected")}
    assert {row.uncertain for row in rows} == {None}


def test_poison_and_rejected_record_are_archived_as_the_members_logged() -> None:
    rows = [*share_deliveries(share_events("poison", GROUPS["poison"]))]
    (rejected,) = (event for event in truth("poison") if event.get("type") == "REJECT")
    released = [event for event in truth("poison") if event.get("type") == "RELEASE"]
    archived = {(row.first_offset, row.delivery_count, row.outcome, row.client_id) for row in rows if row.archived}
    assert archived == {
        (event["offset"], event["deliveryCount"], outcome, event["who"])
        for event, outcome in ((released[-1], "released"), (rejected, "rejected"))
    }
    by_member = sorted((row.delivery_count, row.client_id) for row in rows if row.outcome == "released")
    assert by_member == [(event["deliveryCount"], event["who"]) for event in released]


def test_last_minute_has_the_groups_last_description() -> None:
    last_event = [event for event in truth("share") if event["event"] == "group"][-1]
    rows = list(share_group_health(share_deliveries(share_events("share", GROUP)), group_events("share", GROUP)))
    last = rows[-1]
    assert (last.state, last.members) == (last_event["state"], len(last_event["members"]))
    assert last.lag == sum(lag for _, lag in last_event["startOffsetAndLag"].values())
    assert sum(row.acquired for row in rows) == len(logged_outcomes())
