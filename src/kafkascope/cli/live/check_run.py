"""Runs `check`: turns flags into limits, looks at the cluster, and prints one line, JSON or metrics."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.cli.live.check_targets import ALL
from kafkascope.cli.live.options import note_of_client, settings_from
from kafkascope.cli.thresholds import parse_thresholds
from kafkascope.cli.units import parse_duration
from kafkascope.client.check.run import (
    GROUP,
    QUORUM,
    SHARE,
    STREAMS,
    CheckReport,
    check_cluster,
    render_metrics,
    render_unreachable,
)
from kafkascope.client.check.verdicts import CheckLimits, summary_line
from kafkascope.client.cluster import connect, time_limit
from kafkascope.errors import ReachError, UsageError
from kafkascope.formatting import printable

if TYPE_CHECKING:
    from kafkascope.client.settings import Settings

_WORDS = {QUORUM: "quorums", SHARE: "share groups", STREAMS: "streams groups", GROUP: "groups", ALL: "checks"}
UNHEALTHY = 1


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What to look at, for how many seconds, and the limits."""

    what: str
    groups: tuple[str, ...]
    limits: CheckLimits
    seconds: float

    @property
    def kinds(self) -> tuple[str, ...]:
        return (QUORUM, SHARE, STREAMS, GROUP) if self.what == ALL else (self.what,)

    @staticmethod
    def of(what: str, groups: tuple[str, ...], options: Mapping[str, Any]) -> "CheckOptions":
        """UsageError for flags that don't apply to what is checked."""
        if groups and what in (QUORUM, ALL):
            raise UsageError(f"check {what} takes no group; use `check share-group HOST {groups[0]}`")
        if options["max_lag_ms"] is not None and what not in (QUORUM, ALL):
            raise UsageError("--max-lag-ms is for the quorum; the lag of a group is in records: use --max-lag")
        if options["min_members"] is not None and what == QUORUM:
            raise UsageError("--min-members is for groups; a quorum has voters")
        if options["as_json"] and (options["form"] != "text" or options["listen"]):
            raise UsageError("--json doesn't go with --format openmetrics or --listen; leave one out")
        lasting = options["lasting"]
        microseconds = 0 if lasting is None else parse_duration(lasting, "--for")
        limits = CheckLimits(
            options["max_lag"], options["max_lag_ms"], options["min_members"],
            parse_thresholds(options["thresholds"]), microseconds // 1000, options["fail_on"],
        )  # fmt: skip
        return CheckOptions(what, groups, limits, microseconds / 1_000_000)


def run_check(checks: CheckOptions, host: str, options: Mapping[str, Any]) -> int:
    if options["listen"] is not None:
        from kafkascope.cli.live.check_listen import listen, parse_listen

        place = parse_listen(options["listen"])
        return asyncio.run(listen(settings_from(host, options), checks, place))
    try:
        report = asyncio.run(check(settings_from(host, options), checks))
    except ReachError:
        if options["form"] == "openmetrics":
            sys.stdout.write(render_unreachable())
        raise
    if options["form"] == "openmetrics":
        # Labels have names from the wire, and OpenMetrics doesn't escape what steers a terminal.
        text = render_metrics(report)
        sys.stdout.write("\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text)
    elif options["as_json"]:
        from kafkascope.cli.output import print_json

        print_json(report_json(report))
    else:
        print(printable(summary_line(report.results, _WORDS[checks.what])))
    return 0 if report.healthy else UNHEALTHY


async def check(settings: "Settings", options: CheckOptions) -> CheckReport:
    with nullcontext() if options.seconds else time_limit(settings.timeout):
        async with connect(settings, on_note=note_of_client) as cluster:
            return await check_cluster(cluster, options.kinds, options.groups, options.limits, options.seconds)


def report_json(report: CheckReport) -> dict[str, Any]:
    return {
        "healthy": report.healthy,
        "seconds": round(report.seconds, 3),
        "checks": [
            {
                "check": result.check,
                "subject": result.subject,
                "healthy": result.healthy,
                "says": result.summary,
                "figures": dict(result.figures),
                "problems": [asdict(problem) for problem in result.problems],
                "notes": [asdict(problem) for problem in result.notes],
                "gaps": [asdict(gap) for gap in result.gaps],
            }
            for result in report.results
        ],
        "gaps": [asdict(gap) for gap in report.gaps],
    }
