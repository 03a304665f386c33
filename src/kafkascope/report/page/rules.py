"""Renders the rules that fired in this report, with their thresholds and the reasons for them."""

from collections.abc import Iterable

from kafkascope.health.findings.rules.table import RULES
from kafkascope.markup import Html, el
from kafkascope.report.charts.figure import empty, table
from kafkascope.report.html.prose import prose
from kafkascope.report.page.links import rule_name


def rules_section(names: Iterable[str]) -> Html:
    fired = [RULES[name] for name in sorted(set(names)) if name in RULES]
    note = "The rules that made the findings above. A rule fires at its default threshold unless another one was set."
    return el(
        "section",
        el("h2", "Rules", id="rules"),
        el("p", note, class_="note") if fired else empty("No rule fired."),
        [
            el(
                "section",
                el("h3", el("code", rule.name)),
                el("p", prose(rule.says)),
                el("p", "Severity: ", prose(rule.severity), class_="note"),
                table(
                    f"Thresholds of {rule.name}",
                    ("threshold", "default #", "unit", "reason"),
                    [
                        (
                            el("code", threshold.name),
                            f"{threshold.default:,.12g}",
                            threshold.unit,
                            prose(threshold.reason),
                        )
                        for threshold in rule.thresholds
                    ],
                ),
                id=rule_name(rule.name),
            )
            for rule in fired
        ],
        aria_labelledby="rules",
    )
