"""What `ingest` and `marts` share on the command line: cores, and one line that says what Spark lacks here."""

import click

cores_option = click.option(
    "--cores", metavar="N", type=click.IntRange(1), help="Cores of this machine to use; all by default."
)
_NEEDED = ("pyspark", "deltalake", "numba", "pyarrow")


def need_spark() -> None:
    """Before anything is made: the packages and Java are there."""
    from importlib.util import find_spec

    from kafkascope.errors import UsageError

    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"this needs {' and '.join(missing)}: pip install 'kafkascope[spark]'")
    from kafkascope.pipeline.session import find_java

    find_java()
