"""`kafkascope check [WHAT] HOST [GROUP…]`: judges a running cluster in one line and an exit code, or as metrics."""

from typing import Any

import click

from kafkascope.cli.arguments import json_option
from kafkascope.cli.live.check_targets import WHAT, complete_target, split_target
from kafkascope.cli.live.options import live_options
from kafkascope.cli.thresholds import threshold_option


@click.command
@click.argument("words", metavar=f"[{'|'.join(WHAT)}] HOST[:PORT] [GROUP…]", nargs=-1, shell_complete=complete_target)
@click.option("--max-lag", metavar="N", type=click.IntRange(0), help="Records of lag that are still healthy.")
@click.option("--max-lag-ms", metavar="N", type=click.IntRange(0), help="Of a voter of the quorum, in milliseconds.")
@click.option("--min-members", metavar="N", type=click.IntRange(0), help="Members that a group has at the least.")
@threshold_option
@click.option("--for", "lasting", metavar="DURATION", help="Look for so long, at what stands still or lasts; once.")
@click.option(
    "--fail-on", type=click.Choice(["info", "warning", "critical"]), default="warning", help="From here on not healthy."
)
@click.option("--format", "form", type=click.Choice(["text", "openmetrics"]), default="text", help="What is printed.")
@click.option("--listen", metavar="[ADDRESS:]PORT", help="Serve OpenMetrics there until Ctrl-C; on loopback.")
@json_option
@live_options
def run(words: tuple[str, ...], **options: Any) -> int:
    """Check a running cluster: one line and an exit code.

    Checks everything unless told what: quorum, share-group, streams-group or group (consumer and classic groups).
    Without a GROUP it checks all groups of that type. The rules are those of the report's findings, applied to one look
    at the cluster, or to several (--for).

    Exits with 0 when everything is healthy, 1 when not, 4 when the cluster can't be reached.
    """
    from kafkascope.cli.live.check_run import CheckOptions, run_check

    what, host, groups = split_target(words)
    return run_check(CheckOptions.of(what, groups, options), host, options)
