"""`kafkascope ingest`: recordings in, tables of a lake out, and the marts brought up to date."""

import click

from kafkascope.cli.arguments import json_option

cores_option = click.option(
    "--cores", metavar="N", type=click.IntRange(1), help="Cores of this machine to use; all by default."
)


@click.command
@click.argument("uris", metavar="URI…", nargs=-1, required=True)
@click.option("--lake", "where", metavar="LAKE", required=True, help="A folder or URI; made where it is not there.")
@click.option("--no-marts", is_flag=True, help="The tables alone; `kafkascope marts LAKE` makes the marts later.")
@click.option("--keep-payloads", is_flag=True, help="Store keys, values and headers of records too.")
@click.option("--pseudonymise", is_flag=True, help="Replace client ids, addresses and principals, for sharing.")
@click.option("--plan", type=click.Choice(["auto", "buckets", "shuffle"]), default="auto", help="How tasks share work.")
@click.option("--port", "ports", metavar="N", type=int, multiple=True, help="A port of Kafka's, where it is in doubt.")
@click.option("--follow", is_flag=True, help="Go on with files that come into the folder, until Ctrl-C.")
@cores_option
@json_option
def run(
    uris: tuple[str, ...],
    where: str,
    no_marts: bool,
    keep_payloads: bool,
    pseudonymise: bool,
    plan: str,
    ports: tuple[int, ...],
    follow: bool,
    cores: int | None,
    as_json: bool,
) -> int:
    """Read recordings into a lake of Delta tables.

    URI is a file, a folder or a pattern, here or on an object store: captures, request logs, files of frames. What is
    in the lake already is left out, so the same call again adds nothing.

    Exits with 3 when a file could not be read; the others are in the lake.
    """
    need_spark()
    from kafkascope.cli.ingest_run import Command

    command = Command(uris, where, cores=cores, marts=not no_marts, as_json=as_json)
    return command.run(contents=keep_payloads, pseudonymise=pseudonymise, plan=plan, ports=ports, follow=follow)


def need_spark() -> None:
    """One line where the extra is missing."""
    from importlib.util import find_spec

    from kafkascope.errors import UsageError

    missing = [name for name in ("pyspark", "deltalake", "numba", "pyarrow") if find_spec(name) is None]
    if missing:
        raise UsageError(f"this needs {' and '.join(missing)}: pip install 'kafkascope[spark]'")
