"""The recorded incident: the ledger says of every record what the programs that held it logged."""

from typing import Any

import pytest

from kafkascope.health.share_events import Delivery
from kafkascope.health.share_group_health import share_group_health
from kafkascope.health.share_ledger import share_deliveries
from tests.captures import truth
from tests.health.share_recorded import group_events, share_events

GROUP = "processors"
SAID = {"ACCEPT": "accepted", "RELEASE": "released", "REJECT": "rejected"}
# What a member did not end itself ends as its part in the incident has it.
PART = {"hung": "lock_expired", "doomed": "disconnected", "leaver": "session_closed"}

Record = tuple[str, str, int, int, int]


@pytest.mark.parametrize("without", ["nothing", "state_written"])
def test_every_delivery_ended_as_the_programs_logged(without: str) -> None:
    rows = [*share_deliveries(one for one in share_events("share", GROUP) if one.kind != without)]
    assert _told(rows) == _logged()


def test_renewals_and_archiving_are_those_of_the_incident() -> None:
    rows = [*share_deliveries(share_events("share", GROUP))]
    renewed = sum(event["event"] == "acknowledged" and event["type"] == "RENEW" for event in truth("share"))
    assert renewed == sum(row.renewals for row in rows) > 0
    archived = {(row.first_offset, row.delivery_count, row.outcome) for row in rows if row.archived}
    assert archived == {(3, 5, "released"), (5, 1, "rejected")}
    assert {row.uncertain for row in rows} == {None}


def test_last_minute_has_the_groups_last_description() -> None:
    told = [event for event in truth("share") if event["event"] == "group"][-1]
    rows = list(share_group_health(share_deliveries(share_events("share", GROUP)), group_events("share", GROUP)))
    last = rows[-1]
    assert (last.state, last.members) == (told["state"], len(told["members"]))
    assert last.lag == sum(lag for _, lag in told["startOffsetAndLag"].values())
    assert sum(row.acquired for row in rows) == len(_logged())


def _told(rows: list[Delivery]) -> dict[Record, str]:
    return {
        (str(row.client_id), str(row.topic_id), row.partition, offset, row.delivery_count or 0): row.outcome
        for row in rows
        for offset in range(row.first_offset, row.last_offset + 1)
    }


def _logged() -> dict[Record, str]:
    events = truth("share")
    ids = {event["topic"]: event["topicId"] for event in events if event["event"] == "committed"}
    found: dict[Record, str] = {}
    for event in events:
        if event["event"] == "acquired":
            for offset in range(event["firstOffset"], event["lastOffset"] + 1):
                place = (event["topicId"], event["partition"], offset, event["deliveryCount"])
                found[(event["who"], *place)] = PART.get(event["who"], "open")
        elif event["event"] == "acknowledged" and event["type"] in SAID and not _refused(events, event):
            place = (ids[event["topic"]], event["partition"], event["offset"], event["deliveryCount"])
            found[(event["who"], *place)] = SAID[event["type"]]
    return found


def _refused(events: list[dict[str, Any]], acknowledged: dict[str, Any]) -> bool:
    """Its commit, the next of this record by this member, was answered with an error, or never came."""
    commits = (
        event["error"] is not None
        for event in events
        if event["event"] == "committed"
        and event["at"] >= acknowledged["at"]
        and all(event[name] == acknowledged[name] for name in ("who", "topic", "partition"))
        and acknowledged["offset"] in event["offsets"]
    )
    return next(commits, True)
