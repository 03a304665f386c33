"""Collects everything a report shows into one `Report`. Its size is bounded, however large the marts are."""

from dataclasses import dataclass
from datetime import datetime

from kafkascope import __version__
from kafkascope.errors import InputError, UsageError
from kafkascope.formatting import first_names
from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import distinct, has_marts
from kafkascope.report.summaries.apis import ApiSummary, apis_in
from kafkascope.report.summaries.clients import Clients, clients_in
from kafkascope.report.summaries.disks import Disks, disks_in
from kafkascope.report.summaries.findings import Findings, findings_in
from kafkascope.report.summaries.quorum import Quorums, quorums_in
from kafkascope.report.summaries.recorded import exchanges_in
from kafkascope.report.summaries.scope import Scope
from kafkascope.report.summaries.share import ShareGroups, share_groups_in
from kafkascope.report.summaries.streams import StreamsGroups, streams_groups_in
from kafkascope.report.summaries.unread import Unread, unread_in

_SHARE_MARTS = ("share_deliveries", "share_group_health")
_STREAMS_MARTS = ("streams_tasks", "streams_group_health")
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Report:
    """`exchanges` counts those of the interval; `unread` counts whole recordings."""

    version: str
    made_at: datetime
    lake: str
    scope: Scope
    first_at: int | None
    last_at: int | None
    exchanges: int
    findings: Findings
    share: ShareGroups
    streams: StreamsGroups
    quorums: Quorums
    apis: ApiSummary
    clients: Clients
    disks: Disks
    unread: Unread


def build(lake: Lake, scope: Scope, made_at: datetime) -> Report:
    if not has_marts(lake):
        raise InputError(f"{lake.uri}: this lake has no marts yet; run kafkascope marts {lake.uri}")
    share = set().union(*(distinct(lake, name, "group_id") for name in _SHARE_MARTS))
    streams = set().union(*(distinct(lake, name, "group_id") for name in _STREAMS_MARTS))
    chosen_share, chosen_streams = scope.chosen(share), scope.chosen(streams)
    _check(scope, share | streams)
    unread = unread_in(lake, scope)
    first, last = unread.total.first_at, unread.total.last_at
    return Report(
        __version__,
        made_at,
        lake.uri,
        scope,
        first if scope.since is None or first is None else max(first, scope.since),
        last if scope.until is None or last is None else min(last, scope.until),
        exchanges_in(lake, scope),
        findings_in(lake, scope, share | streams),
        share_groups_in(lake, scope, chosen_share),
        streams_groups_in(lake, scope, chosen_streams, last),
        quorums_in(lake, scope),
        apis_in(lake, scope),
        clients_in(lake, scope),
        disks_in(lake, scope),
        unread,
    )


def _check(scope: Scope, group_ids: set[str]) -> None:
    for pattern in scope.groups:
        if not Scope((pattern,)).chosen(group_ids):
            names = sorted(group_ids)
            existing = f"it has {first_names(names, _MOST_NAMED)}" if names else "it has none"
            raise UsageError(f"--group: this lake has no share or streams group {pattern}; {existing}")
