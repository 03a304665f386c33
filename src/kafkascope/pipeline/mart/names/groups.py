"""Selects the mart of groups: their type, state, coordinator and members, from calls and descriptions."""

from kafkascope.pipeline.mart.base.events import columns_of, select
from kafkascope.pipeline.mart.names.topics import only

_DESCRIBED = "groups.error_code groups.group_id groups.group_state groups.members.member_id"
TABLES = {
    "exchanges": "group_id member_id api broker_address request_at response_at error_code status",
    "join_group_request": "group_id protocol_type",
    "list_groups_response": "error_code groups",
    "describe_groups_response": f"{_DESCRIBED} groups.protocol_type",
    "consumer_group_describe_response": _DESCRIBED,
    "share_group_describe_response": _DESCRIBED,
    "streams_group_describe_response": _DESCRIBED,
}

_GROUP = columns_of(
    "broker_address string, group_id string, member_id string, at timestamp, calls bigint, group_type string,"
    "certain int, protocol_type string, state string, coordinator string"
)
# A group that moves to the consumer protocol has members of both, and its type is `consumer`. So calls of a newer
# protocol outrank classic ones, and descriptions and lists outrank calls.
_CLASSIC, _NEWER, _DESCRIBED_TYPE = map(str, range(3))
_TYPE_OF_CALL = """CASE
  WHEN coalesce(error_code, 0) <> 0 THEN NULL
  WHEN api IN ('JoinGroup', 'SyncGroup', 'Heartbeat') THEN 'classic'
  WHEN api = 'ConsumerGroupHeartbeat' THEN 'consumer'
  WHEN api IN ('ShareGroupHeartbeat', 'ShareFetch', 'ShareAcknowledge') THEN 'share'
  WHEN api = 'StreamsGroupHeartbeat' THEN 'streams' END"""
# Only a group's coordinator responds to these without an error. ShareFetch and ShareAcknowledge go to leaders.
_OF_COORDINATOR = (
    "api IN ('JoinGroup', 'SyncGroup', 'Heartbeat', 'LeaveGroup', 'ConsumerGroupHeartbeat', 'ShareGroupHeartbeat',"
    " 'StreamsGroupHeartbeat', 'OffsetCommit', 'OffsetFetch', 'TxnOffsetCommit')"
)


_LISTED = {
    "broker_address": "r.broker_address",
    "group_id": "g.group_id",
    "at": "coalesce(r.response_at, r.request_at)",
    "calls": "0",
    "certain": _DESCRIBED_TYPE,
    "coordinator": "r.broker_address",
}


def _described(table: str, where: str, **values: str) -> str:
    return select(
        _GROUP,
        f"FROM {{{table}}} r LATERAL VIEW explode(r.groups) AS g"
        f" LATERAL VIEW OUTER explode(g.members.member_id) AS m WHERE g.error_code = 0{where}",
        **{**_LISTED, "member_id": "m", "state": "g.group_state", **values},
    )


SIGHTINGS = (
    select(
        _GROUP,
        "FROM {exchanges} WHERE group_id <> ''",
        broker_address="broker_address",
        group_id="group_id",
        member_id="member_id",
        at="coalesce(request_at, response_at)",
        calls="1",
        group_type=_TYPE_OF_CALL,
        certain=f"IF(api IN ('JoinGroup', 'SyncGroup', 'Heartbeat'), {_CLASSIC}, {_NEWER})",
        coordinator=f"IF(status = 'answered' AND error_code = 0 AND {_OF_COORDINATOR}, broker_address, NULL)",
    ),
    select(
        _GROUP,
        "FROM {join_group_request} WHERE group_id <> ''",
        broker_address="broker_address",
        group_id="group_id",
        at="request_at",
        calls="0",
        protocol_type="protocol_type",
    ),
    select(
        _GROUP,
        "FROM {list_groups_response} r LATERAL VIEW explode(r.groups) AS g WHERE r.error_code = 0",
        **_LISTED,
        group_type="lower(g.group_type)",
        protocol_type="g.protocol_type",
        state="g.group_state",
    ),
    # Brokers return Dead for every id that isn't a classic group.
    _described(
        "describe_groups_response",
        " AND g.group_state <> 'Dead'",
        group_type="'classic'",
        protocol_type="g.protocol_type",
    ),
    _described("consumer_group_describe_response", "", group_type="'consumer'"),
    _described("share_group_describe_response", "", group_type="'share'"),
    _described("streams_group_describe_response", "", group_type="'streams'"),
)


def _newest(value: str, *before: str) -> str:
    """The newest value with its rank; null and empty values don't count."""
    return f"max(IF({value} <> '', struct({', '.join((*before, 's.at', f'{value} AS value'))}), NULL))"


# First by member, which turns many calls into few rows. Then calls at an address of unknown cluster go to the cluster
# that has the group, if there is exactly one.
STATEMENT = f"""
SELECT group_id, cluster_id, max(group_type).value AS group_type, max(protocol_type).value AS protocol_type,
       max(state).value AS state, max(coordinator).value AS coordinator, count(DISTINCT member_id) AS members,
       sum(calls) AS calls, min(first_at) AS first_at, max(last_at) AS last_at
FROM (
  SELECT *, coalesce(own_cluster, {only("own_cluster", "ids")}) AS cluster_id
  FROM (
    SELECT s.group_id, c.cluster_id AS own_cluster, nullif(s.member_id, '') AS member_id,
           {_newest("s.group_type", "s.certain")} AS group_type, {_newest("s.protocol_type")} AS protocol_type,
           {_newest("s.state")} AS state, {_newest("s.coordinator")} AS coordinator, sum(s.calls) AS calls,
           min(s.at) AS first_at, max(s.at) AS last_at
    FROM ({{sightings}}) s LEFT JOIN {{{{clusters}}}} c ON s.broker_address = c.broker_address
    GROUP BY 1, 2, 3
  )
  WINDOW ids AS (PARTITION BY group_id)
)
GROUP BY group_id, cluster_id
"""
