"""`kafkascope log` lists what brokers keep on their disks, as lines, statistics or JSON, or checks it."""

import click

from kafkascope.cli.arguments import json_option


def complete_type(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from kafkascope.logs.typed_records import type_names

    return [name for name in type_names() if name.lower().startswith(incomplete.lower())]


@click.command
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option("--topic", "topics", metavar="NAME", multiple=True, help="Only this topic; * and ? are wildcards.")
@click.option("--offsets", metavar="A B", nargs=2, help="Only offsets from A to before B; - is an open end.")
@click.option("--between", metavar="A B", nargs=2, help="Only times from A to before B; - is an open end.")
@click.option(
    "--type", "types", metavar="NAME", multiple=True, shell_complete=complete_type,
    help="Only records of this type, such as PartitionRecord.",
)  # fmt: skip
@click.option("--records", is_flag=True, help="Also print keys, values and headers of users' topics.")
@click.option("--stats", is_flag=True, help="Print totals for each partition.")
@click.option("--check", is_flag=True, help="Check checksums, offsets, tails, indexes and sequences.")
@json_option
def run(
    paths: tuple[str, ...],
    topics: tuple[str, ...],
    offsets: tuple[str, str] | None,
    between: tuple[str, str] | None,
    types: tuple[str, ...],
    records: bool,
    stats: bool,
    check: bool,
    as_json: bool,
) -> int:
    """List batches and records of log directories.

    PATH is a segment, another file of a log, a partition's folder, a data directory, or a folder with the directories
    of several brokers. Records of Kafka's own topics are decoded. Files are only read, so a broker may be running.
    Times are UTC.

    Exits with 1 if nothing matches the filters or --check finds a problem, with 3 if a file or a part of it can't be
    read.
    """
    from kafkascope.errors import UsageError
    from kafkascope.extras import need_extras

    if stats and check:
        raise UsageError("--stats and --check can't be combined; leave one out")
    if check and (offsets or between or types or records):
        raise UsageError("--check checks whole partitions; use no other filter than --topic")
    if stats and records:
        raise UsageError("--stats prints no records; leave out --records")
    need_extras("log", "columns")
    from kafkascope.cli.log.options import selection_of
    from kafkascope.cli.log.run import Command

    command = Command(paths, selection_of(topics, offsets, between, types), records=records)
    if check:
        return command.check(as_json=as_json)
    if stats:
        return command.stats(as_json=as_json)
    return command.json_lines() if as_json else command.lines()
