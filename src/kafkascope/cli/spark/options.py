"""Options and checks that `ingest` and `marts` share."""

import click

cores_option = click.option(
    "--cores", metavar="N", type=click.IntRange(1), help="Cores of this machine to use; all by default."
)


def need_spark(command: str) -> None:
    """UsageError if a package or Java is missing, before anything is written."""
    from kafkascope.extras import need_extras

    need_extras(command, "spark")
    from kafkascope.pipeline.session import find_java

    find_java()
