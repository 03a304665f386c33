"""`kafkascope marts` brings the marts of a lake up to date with its tables."""

import click

from kafkascope.cli.arguments import json_option
from kafkascope.cli.spark.options import cores_option, need_spark
from kafkascope.cli.thresholds import parse_thresholds, threshold_option


@click.command
@click.argument("where", metavar="LAKE")
@threshold_option
@click.option("--rebuild", is_flag=True, help="Build all marts from the beginning.")
@cores_option
@json_option
def run(where: str, thresholds: tuple[str, ...], rebuild: bool, cores: int | None, as_json: bool) -> int:
    """Bring the marts of a lake up to date.

    Continues from where the last build ended, and rebuilds the findings. `ingest` does this at its end. Run it to
    change thresholds, or after `ingest --no-marts` or `lake expire`.
    """
    limits = parse_thresholds(thresholds)
    need_spark("marts")
    from kafkascope.cli.spark.marts_state import severities
    from kafkascope.cli.spark.session import ProgressLine, spark_session
    from kafkascope.lake.home import find_lake
    from kafkascope.lake.place import readable
    from kafkascope.lake.upkeep.upgrade import upgraded
    from kafkascope.pipeline.mart.build import build_marts

    lake = upgraded(find_lake(where))
    progress = ProgressLine()
    built: list[str] = []
    with readable(where):
        with spark_session(cores, progress) as spark, progress.step("building the marts"):
            rows = build_marts(spark, lake, limits, rebuild=rebuild, report=built.append)
        severity_counts = severities(lake)
    if as_json:
        from kafkascope.cli.output import print_json

        seconds = {step: round(duration, 3) for step, duration in progress.seconds.items()}
        print_json({"lake": lake.uri, "built": built, "marts": rows, "findings": severity_counts, "seconds": seconds})
        return 0
    _print(where, rows, built, severity_counts, progress.seconds)
    return 0


def _print(
    where: str, rows: dict[str, int], built: list[str], severity_counts: dict[str, int], seconds: dict[str, float]
) -> None:
    from shlex import quote

    from kafkascope.cli.spark.ingest_account import findings_text, print_lines
    from kafkascope.cli.spark.session import timings
    from kafkascope.cli.tables import table
    from kafkascope.formatting import number

    table([(number(count), name) for name, count in rows.items()], right=(0,))
    print_lines(
        [*built, findings_text(severity_counts), f"took {timings(seconds)}", f"next: kafkascope report {quote(where)}"]
    )
