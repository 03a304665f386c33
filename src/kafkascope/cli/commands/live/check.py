"""`kafkascope check [WHAT] HOST [GROUP…]` judges a running cluster, in one line and an exit code, or as metrics."""

from typing import Any

import click

from kafkascope.cli.arguments import json_option
from kafkascope.cli.live.check_targets import WHAT, complete_target, split_target
from kafkascope.cli.live.options import live_options
from kafkascope.cli.thresholds import threshold_option


@click.command
@click.argument("words", metavar=f"[{'|'.join(WHAT)}] HOST[:PORT] [GROUP…]", nargs=-1, shell_complete=complete_target)
@click.option("--max-lag", metavar="N", type=click.IntRange(0), help="Highest healthy lag, in records.")
@click.option(
    "--max-lag-ms", metavar="N", type=click.IntRange(0), help="Highest healthy lag of a quorum voter, in milliseconds."
)
@click.option("--min-members", metavar="N", type=click.IntRange(0), help="Fewest members of a healthy group.")
@threshold_option
@click.option(
    "--for",
    "lasting",
    metavar="DURATION",
    help="Watch for this long, to see what stalls or lasts; by default look once.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["info", "warning", "critical"]),
    default="warning",
    help="Severity from which on the result is not healthy.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "openmetrics"]), default="text", help="Format of the output."
)
@click.option(
    "--listen", metavar="[ADDRESS:]PORT", help="Serve OpenMetrics there until Ctrl-C; default address is loopback."
)
@json_option
@live_options
def run(words: tuple[str, ...], **options: Any) -> int:
    """Check a running cluster: one line and an exit code.

    WHAT is quorum, share-group, streams-group, group (consumer and classic groups) or all, the default. Without a GROUP
    it checks all groups of that type. The rules are those of the report's findings, applied to one look at the cluster,
    or to several (--for).

    Exits with 0 if everything is healthy, 1 if not, 4 if the cluster can't be reached.
    """
    from kafkascope.cli.live.check_options import CheckOptions
    from kafkascope.cli.live.check_run import run_check

    what, host, groups = split_target(words)
    return run_check(CheckOptions.of(what, groups, options), host, options)
