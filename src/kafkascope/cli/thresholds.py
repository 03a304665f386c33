"""Defines the option for thresholds of findings: `--threshold share_lock_expired.records=5`."""

import click

threshold_option = click.option(
    "--threshold",
    "thresholds",
    metavar="RULE.NAME=N",
    multiple=True,
    help="Change a threshold of a finding; may be repeated.",
)


def parse_thresholds(texts: tuple[str, ...]) -> dict[str, float]:
    from kafkascope.errors import UsageError
    from kafkascope.health.findings.rules.table import limits_of

    thresholds: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            thresholds[name.strip()] = float(value)
        except ValueError:
            raise UsageError(
                f"--threshold: '{text}' isn't NAME=NUMBER; write it as share_lock_expired.records=5"
            ) from None
    limits_of(thresholds)
    return thresholds
