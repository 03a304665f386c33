"""`kafkascope ingest` reads recordings into the tables of a lake and updates its marts."""

import click

from kafkascope.cli.arguments import json_option
from kafkascope.cli.spark.options import cores_option, need_spark
from kafkascope.cli.thresholds import parse_thresholds, threshold_option
from kafkascope.cli.units import parse_duration

# In microseconds.
_HOUR = 3_600_000_000


@click.command
@click.argument("uris", metavar="URI…", nargs=-1, required=True)
@click.option("--lake", "where", metavar="LAKE", required=True, help="A folder or URI; created if missing.")
@click.option("--no-marts", is_flag=True, help="Write only the tables; `kafkascope marts LAKE` builds the marts later.")
@threshold_option
@click.option("--keep-payloads", is_flag=True, help="Also store keys, values and headers of records.")
@click.option("--pseudonymise", is_flag=True, help="Replace client ids, addresses and principals, for sharing.")
@click.option(
    "--plan", type=click.Choice(["auto", "buckets", "shuffle"]), default="auto", help="How tasks share the work."
)
@click.option(
    "--port", "ports", metavar="N", type=int, multiple=True, help="A port that Kafka uses, for connections in doubt."
)
@click.option("--follow", is_flag=True, help="Keep reading new files of the folder until Ctrl-C.")
@click.option(
    "--share-group", "group", metavar="GROUP", help="URI… are topics of plain frames; read them as a member of GROUP."
)
@click.option("--bootstrap", metavar="HOST", help="With --share-group: the cluster's address.")
@click.option("--config", metavar="FILE", help="With --share-group: a file of client settings, as for live commands.")
@click.option(
    "--marts-every",
    "every",
    metavar="SECONDS",
    type=click.FloatRange(0),
    help="With --follow, build marts at most this often.",
)
@click.option(
    "--vacuum-after",
    "vacuum",
    metavar="TIME",
    default="24h",
    show_default=True,
    help="Delete files that left the tables this long ago; `never` keeps them until `lake vacuum`.",
)
@cores_option
@json_option
def run(
    uris: tuple[str, ...],
    where: str,
    no_marts: bool,
    thresholds: tuple[str, ...],
    keep_payloads: bool,
    pseudonymise: bool,
    plan: str,
    ports: tuple[int, ...],
    follow: bool,
    group: str | None,
    bootstrap: str | None,
    config: str | None,
    every: float | None,
    vacuum: str,
    cores: int | None,
    as_json: bool,
) -> int:
    """Read recordings into a lake of Delta tables.

    URI is a file, a folder or a pattern, on this machine or an object store: captures, request logs, files of frames,
    log directories of brokers. What is already in the lake is skipped, so repeating the command adds nothing.

    With --share-group, URI is a topic whose records are plain frames. Each record is in the lake exactly once.

    Exits with 1 if a URI doesn't exist, with 3 if a file could not be read; the other files are in the lake then.
    """
    from kafkascope.errors import UsageError

    for port in ports:
        if not 0 < port < 65_536:
            raise UsageError(f"--port: {port} isn't a port; ports are 1 to 65535")
    limits = parse_thresholds(thresholds)
    if no_marts and limits:
        raise UsageError("--threshold changes findings, and --no-marts makes none; leave one out")
    if every is not None and (no_marts or not follow):
        raise UsageError("--marts-every needs --follow, and doesn't work with --no-marts")
    hours = None if vacuum == "never" else parse_duration(vacuum, "--vacuum-after") / _HOUR
    if group is None and (bootstrap or config):
        raise UsageError(f"{'--bootstrap' if bootstrap else '--config'} needs --share-group GROUP")
    if group is not None and (ports or plan != "auto" or every is not None):
        raise UsageError("--port, --plan and --marts-every are for recordings; leave them out with --share-group")
    need_spark("ingest")
    if group is not None:
        from kafkascope.cli.spark.share_ingest import ShareCommand

        share = ShareCommand(
            uris, where, group, bootstrap, config, contents=keep_payloads, pseudonymise=pseudonymise, cores=cores,
            thresholds=None if no_marts else limits, as_json=as_json,
        )  # fmt: skip
        return share.run(follow=follow)
    from kafkascope.cli.spark.ingest_run import Command
    from kafkascope.pipeline.ingestion.ingest import Options
    from kafkascope.pipeline.mart_rebuilder import EVERY_SECONDS

    options = Options(
        contents=keep_payloads, pseudonymise=pseudonymise, plan=plan, kafka_ports=ports, tasks=cores,
        vacuum_hours=hours,
    )  # fmt: skip
    every = EVERY_SECONDS if every is None else every
    command = Command(uris, where, options, None if no_marts else limits, as_json=as_json, every=every)
    return command.follow() if follow else command.once()
