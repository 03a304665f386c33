"""`kafkascope observe HOST --lake DIR` polls a running cluster and records its history in the tables of a lake."""

from typing import Any

import click

from kafkascope.cli.arguments import json_option
from kafkascope.cli.live.options import live_options


@click.command
@click.argument("host", metavar="HOST[:PORT]")
@click.option("--lake", "where", metavar="LAKE", required=True, help="A folder or URI; made where it is not there.")
@click.option("--every", metavar="DURATION", default="10s", help="From the start of one poll to the next; 10s.")
@click.option("--for", "lasting", metavar="DURATION", help="Stop after that long; without it, at Ctrl-C.")
@click.option("--once", is_flag=True, help="One poll, then stop.")
@click.option("--groups", metavar="GROUP", multiple=True, help="Only these; * and ? stand for any letters.")
@click.option("--commit-every", metavar="DURATION", default="1m", help="How long answers wait for a commit; 1m.")
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

    Quorum, groups of all types, their members, offsets and lag are asked for again and again, and each call lands as an
    exchange in the same tables that `ingest` fills: `marts` and `report` work on them. Ctrl-C stops it; what was asked
    until then is committed.

    Exits with 4 when the cluster cannot be reached at the start. Later it goes on, and says what it missed.
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
            raise UsageError(f"{flag}: 0 is no time to wait; say 10s")
    if not where.strip():
        raise UsageError("--lake: an empty text is no folder; say . for this one")
    if once and lasting is not None:
        raise UsageError("--once is one poll; --for has no meaning with it")
    need_extras("observe", "lake")
    from kafkascope.cli.live.observe_run import ObserveOptions, observe

    options = ObserveOptions(where, times["--every"] or 0, times["--for"], once, groups, times["--commit-every"] or 0)
    return observe(settings_from(host, live), options, as_json=as_json)
