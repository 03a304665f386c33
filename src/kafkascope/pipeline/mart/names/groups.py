"""Selects the mart of groups: their type, state, coordinator and members, from calls and descriptions."""

from kafkascope.pipeline.mart.base.events import ROW_AT, columns_of, select
from kafkascope.pipeline.mart.increments.sums import Sums
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
    "broker_address string, group_id string, member_id string, at bigint, calls bigint, group_type string,"
    "certain int, protocol_type string, state string, coordinator string, row_at bigint"
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
    "at": "unix_micros(coalesce(r.response_at, r.request_at))",
    "row_at": ROW_AT.format("r"),
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
        at="unix_micros(coalesce(request_at, response_at))",
        row_at="unix_micros(coalesce(request_at, response_at))",
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
        at="unix_micros(request_at)",
        row_at="unix_micros(coalesce(request_at, response_at))",
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
    """A value with its rank and time; null and empty values don't count."""
    return f"IF({value} <> '', struct({', '.join((*before, 'at', f'{value} AS value'))}), NULL) AS {value}"


_NEWEST = "struct<at:bigint, value:string>"
SUMS = Sums(
    "groups",
    {"broker_address": "string", "group_id": "string", "member_id": "string"},
    {
        "group_type": ("struct<certain:int, at:bigint, value:string>", "max"),
        "protocol_type": (_NEWEST, "max"),
        "state": (_NEWEST, "max"),
        "coordinator": (_NEWEST, "max"),
        "calls": ("bigint", "sum"),
        "first_at": ("bigint", "min"),
        "last_at": ("bigint", "max"),
    },
)
# What is added up, of the union of sightings.
COUNTED_SIGHTINGS = f"""
SELECT row_at, broker_address, group_id, nullif(member_id, '') AS member_id,
       {_newest("group_type", "certain")}, {_newest("protocol_type")}, {_newest("state")}, {_newest("coordinator")},
       calls, at AS first_at, at AS last_at
FROM ({{sightings}})
"""

# Calls at an address of unknown cluster go to the cluster that has the group, if there is exactly one.
STATEMENT = f"""
SELECT group_id, cluster_id, max(group_type).value AS group_type, max(protocol_type).value AS protocol_type,
       max(state).value AS state, max(coordinator).value AS coordinator, count(DISTINCT member_id) AS members,
       sum(calls) AS calls, timestamp_micros(min(first_at)) AS first_at, timestamp_micros(max(last_at)) AS last_at
FROM (
  SELECT *, coalesce(own_cluster, {only("own_cluster", "ids")}) AS cluster_id
  FROM (
    SELECT s.*, c.cluster_id AS own_cluster
    FROM {{{{group_sums}}}} s LEFT JOIN {{{{clusters}}}} c ON s.broker_address = c.broker_address
    WHERE {{now}}
  )
  WINDOW ids AS (PARTITION BY group_id)
)
GROUP BY group_id, cluster_id
"""
