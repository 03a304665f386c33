"""The table of all rules by name, and the thresholds in effect: the defaults with the user's overrides."""

import math
from collections.abc import Mapping
from difflib import get_close_matches

from kafkascope.errors import UsageError
from kafkascope.health.findings import api_rules as findings_api_rules
from kafkascope.health.findings import disks_rules as findings_disks_rules
from kafkascope.health.findings import quorum_rules as findings_quorum_rules
from kafkascope.health.findings import share_rules as findings_share_rules
from kafkascope.health.findings import streams_rules as findings_streams_rules
from kafkascope.health.findings.rule import Limits, Rule

RULES: dict[str, Rule] = {
    rule.name: rule
    for rules in (
        findings_share_rules,
        findings_streams_rules,
        findings_quorum_rules,
        findings_api_rules,
        findings_disks_rules,
    )
    for rule in rules.RULES
}


def limits_of(thresholds: Mapping[str, float]) -> Mapping[str, Limits]:
    """Each rule's thresholds by name, with the overrides in `thresholds`, which are named `rule.threshold`."""
    limits = {
        rule.name: {threshold.name: threshold.default for threshold in rule.thresholds} for rule in RULES.values()
    }
    full_names = [f"{rule}.{name}" for rule, names in limits.items() for name in names]
    for full_name, value in thresholds.items():
        rule, _, name = full_name.partition(".")
        if name not in limits.get(rule, {}):
            near = get_close_matches(full_name, full_names, 1, 0.4)
            raise UsageError(f"unknown threshold {full_name}" + (f"; did you mean {near[0]}?" if near else ""))
        if not math.isfinite(value) or value < 0:
            raise UsageError(f"threshold {full_name} is {value:g}; it must be 0 or more")
        limits[rule][name] = value
    return limits
