"""What `ingest` and `marts` share on the command line: cores, thresholds, and one line where Spark is not to be had."""

import click

cores_option = click.option(
    "--cores", metavar="N", type=click.IntRange(1), help="Cores of this machine to use; all by default."
)
threshold_option = click.option(
    "--threshold", "thresholds", metavar="RULE.NAME=N", multiple=True, help="Another threshold for a finding."
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


def parse_thresholds(given: tuple[str, ...]) -> dict[str, float]:
    from kafkascope.errors import UsageError
    from kafkascope.health.findings.rules import limits_of

    found: dict[str, float] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise UsageError(f"--threshold: '{text}' sets nothing; say share_lock_expired.records=5") from None
    limits_of(found)
    return found
