"""`kafkascope observe HOST --lake DIR` polls a running cluster and records its history in a lake."""

from typing import Any

import click

from kafkascope.cli.arguments import json_option
from kafkascope.cli.live.options import live_options


@click.command
@click.argument("host", metavar="HOST[:PORT]")
@click.option("--lake", "where", metavar="LAKE", required=True, help="A folder or URI; created if missing.")
@click.option(
    "--every", metavar="DURATION", default="10s", help="Time from the start of one poll to the next; default 10s."
)
@click.option("--for", "lasting", metavar="DURATION", help="Stop after this long instead of at Ctrl-C.")
@click.option("--once", is_flag=True, help="Poll once, then stop.")
@click.option("--groups", metavar="GROUP", multiple=True, help="Only these groups; * and ? are wildcards.")
@click.option(
    "--commit-every", metavar="DURATION", default="1m", help="Longest time before responses are committed; default 1m."
)
@json_option
@live_options
def run(
    host: str,
    where: str,
    every: str,
    lasting: str | None,
    once: bool,
    groups: tuple[str, ...],
    commit_every: str,
    as_json: bool,
    **live: Any,
) -> int:
    """Poll a cluster into a lake.

    Polls the quorum, groups of all types, their members, offsets and lag. Each call becomes an exchange in the same
    tables that `ingest` fills, and `marts` and `report` work on them. Ctrl-C stops it and commits everything received
    until then.

    Exits with 4 if the cluster can't be reached at the start. Later it keeps polling, and reports what it missed.
    """
    from kafkascope.cli.live.options import settings_from
    from kafkascope.cli.units import parse_duration
    from kafkascope.errors import UsageError
    from kafkascope.extras import need_extras

    times = {
        "--every": parse_duration(every, "--every"),
        "--commit-every": parse_duration(commit_every, "--commit-every"),
        "--for": None if lasting is None else parse_duration(lasting, "--for"),
    }
    for flag, microseconds in times.items():
        if microseconds == 0:
            raise UsageError(f"{flag}: 0 isn't a time to wait; write it as 10s")
    if not where.strip():
        raise UsageError("--lake: the name of the folder is empty; write . for this folder")
    if once and lasting is not None:
        raise UsageError("--once polls once, so --for has no effect; leave one out")
    need_extras("observe", "lake")
    from kafkascope.cli.live.observe_run import ObserveOptions, observe

    options = ObserveOptions(where, times["--every"] or 0, times["--for"], once, groups, times["--commit-every"] or 0)
    return observe(settings_from(host, live), options, as_json=as_json)
