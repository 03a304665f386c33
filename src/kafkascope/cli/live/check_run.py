"""Runs `check`: turns flags into limits, looks at the cluster, and prints one line, JSON or metrics."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kafkascope.cli.live.check_options import CheckOptions
from kafkascope.cli.live.check_targets import ALL
from kafkascope.cli.live.options import note_of_client, settings_from
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
from kafkascope.client.check.verdicts import summary_line
from kafkascope.client.cluster import connect, time_limit
from kafkascope.errors import ReachError
from kafkascope.formatting import printable

if TYPE_CHECKING:
    from kafkascope.client.settings import Settings

_WORDS = {QUORUM: "quorums", SHARE: "share groups", STREAMS: "streams groups", GROUP: "groups", ALL: "checks"}
UNHEALTHY = 1


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
