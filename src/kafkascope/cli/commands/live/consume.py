"""`kafkascope consume HOST TOPIC… --share-group G` takes records as a member of a share group, and prints them."""

from typing import Any

import click

from kafkascope.cli.live.options import live_options


@click.command
@click.argument("host", metavar="HOST[:PORT]")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--share-group", "group", metavar="GROUP", required=True, help="The group to join.")
@click.option("--accept", is_flag=True, help="Accept each record: no member gets it again.")
@click.option("--release", is_flag=True, help="Hold each record until the end, then release it.")
@click.option("--reject", is_flag=True, help="Reject each record: no member gets it again.")
@click.option("--ask", is_flag=True, help="Ask what to do with each record.")
@click.option("--max", "most", metavar="N", type=click.IntRange(1, 10**12), help="Stop after this many records.")
@click.option("--for", "lasting", metavar="DURATION", help="Stop after this time; without it, run until Ctrl-C.")
@click.option("--records", is_flag=True, help="Print keys, values and headers too.")
@click.option("--full", is_flag=True, help="With --records: print them in full, however long.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per record.")
@live_options
def run(host: str, topics: tuple[str, ...], lasting: str | None, **options: Any) -> int:
    """Consume records as a member of a share group.

    While this member holds a record, no other member gets it. Every delivery counts against the group's delivery limit,
    so choose what happens to the records: --accept, --release, --reject or --ask.

    Exits with 1 if the cluster refuses or an acknowledgement fails, with 4 if the cluster can't be reached.
    """
    from kafkascope.cli.live.consume_run import ConsumeOptions, consume
    from kafkascope.cli.live.options import settings_from
    from kafkascope.cli.units import parse_duration
    from kafkascope.errors import UsageError

    outcomes = [name for name in ("accept", "release", "reject", "ask") if options[name]]
    if not outcomes:
        raise UsageError("choose what happens to the records: --accept, --release, --reject or --ask")
    if len(outcomes) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in outcomes)} exclude each other: choose one")
    if options["full"] and not options["records"]:
        raise UsageError("--full needs --records")
    microseconds = None if lasting is None else parse_duration(lasting, "--for")
    if microseconds == 0:
        raise UsageError("--for: 0 s would stop at once; write it as 10s")
    names = ("group", "most", "records", "full", "as_json")
    chosen = ConsumeOptions(
        topics=topics,
        outcome=outcomes[0],
        seconds=None if microseconds is None else microseconds / 1e6,
        **{name: options[name] for name in names},
    )
    return consume(settings_from(host, options), chosen)
