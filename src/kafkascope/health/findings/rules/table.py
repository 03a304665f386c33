"""The table of all rules by name, and the thresholds in effect: the defaults with the user's overrides."""

import math
from collections.abc import Mapping

from kafkascope.errors import UsageError
from kafkascope.formatting import close_names, did_you_mean
from kafkascope.health.findings.rules import api, disks, quorum, share, streams
from kafkascope.health.findings.rules.rule import Limits, Rule

RULES: dict[str, Rule] = {rule.name: rule for part in (share, streams, quorum, api, disks) for rule in part.RULES}


def limits_of(thresholds: Mapping[str, float]) -> Mapping[str, Limits]:
    """Each rule's thresholds by name, with the overrides in `thresholds`, which are named `rule.threshold`."""
    limits = {
        rule.name: {threshold.name: threshold.default for threshold in rule.thresholds} for rule in RULES.values()
    }
    full_names = [f"{rule}.{name}" for rule, names in limits.items() for name in names]
    for full_name, value in thresholds.items():
        rule, _, name = full_name.partition(".")
        if name not in limits.get(rule, {}):
            near = close_names(full_name, full_names, cutoff=0.4)
            raise UsageError(f"unknown threshold {full_name}{did_you_mean(near)}")
        if not math.isfinite(value) or value < 0:
            raise UsageError(f"threshold {full_name} is {value:g}; it must be 0 or more")
        limits[rule][name] = value
    return limits
