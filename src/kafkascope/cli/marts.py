"""`kafkascope marts`: the tables of a lake in, its marts anew out."""

import click

from kafkascope.cli.arguments import json_option
from kafkascope.cli.ingest import cores_option, need_spark


@click.command
@click.argument("where", metavar="LAKE")
@click.option(
    "--threshold", "thresholds", metavar="RULE.NAME=VALUE", multiple=True, help="Another threshold for a finding."
)
@cores_option
@json_option
def run(where: str, thresholds: tuple[str, ...], cores: int | None, as_json: bool) -> int:
    """Build the marts of a lake.

    Deliveries, tasks, quorum, latencies and findings are made anew from the lake's tables; readers see the old ones
    until the new ones are whole. `ingest` does this at its end.
    """
    need_spark()
    from kafkascope.cli.ingest_run import spark_session, step
    from kafkascope.cli.output import print_json
    from kafkascope.cli.read_units import number
    from kafkascope.lake.home import open_lake
    from kafkascope.pipeline.marts.build import build_marts

    lake = open_lake(where)
    wanted = parse_thresholds(thresholds)
    with spark_session(cores) as spark:
        step("building the marts")
        rows = build_marts(spark, lake, wanted)
    if as_json:
        print_json(rows)
    else:
        for name, count in rows.items():
            print(f"{name:<24}{number(count):>12}")
    return 0


def parse_thresholds(given: tuple[str, ...]) -> dict[str, float]:
    from kafkascope.errors import UsageError
    from kafkascope.health.findings_rules import limits_of

    found: dict[str, float] = {}
    for text in given:
        name, equals, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise UsageError(f"--threshold {text}: as share_lock_expired.records=5") from None
        if not equals:
            raise UsageError(f"--threshold {text}: as share_lock_expired.records=5")
    limits_of(found)
    return found
