"""Verdict and findings in, the first two parts of the page out."""

import shlex
from collections.abc import Iterable
from typing import Any

from kafkascope.health.findings.words import percent, span
from kafkascope.report.charts.figure import empty, more, tiles
from kafkascope.report.html.icons import WORDS, badge, icon
from kafkascope.report.html.markup import Html, el
from kafkascope.report.summaries.findings import UNKNOWN, Findings, Proof, ShownFinding
from kafkascope.report.words import clock, interval, lasting, number

KINDS = {
    "share_group": "share group",
    "share_member": "member of a share group",
    "share_partition": "partition of a share group",
    "streams_group": "streams group",
    "streams_member": "member of a streams group",
    "streams_task": "task of a streams group",
    "api": "API",
}


def verdict(findings: Findings, about: Iterable[tuple[str, str, str]]) -> Html:
    """`about` are tiles beside the counts."""
    told = findings.verdict
    return el(
        "section",
        el("h2", "Verdict", id="verdict", class_="unseen"),
        el(
            "div",
            el("p", icon(told.state), el("strong", WORDS[told.state]), class_="word"),
            el("p", told.sentence, class_="sentence"),
            class_=f"verdict {told.state}",
        ),
        tiles(
            (
                ("critical", number(told.critical), "act now"),
                ("warnings", number(told.warning), "look soon"),
                ("notes", number(told.info), "good to know"),
                *about,
            )
        ),
        aria_labelledby="verdict",
    )


def findings_section(findings: Findings) -> Html:
    return el(
        "section",
        el("h2", "Findings", id="findings"),
        _filter(findings) if findings.shown else None,
        [_finding(one) for one in findings.shown],
        more(findings.left_out, "findings, in the table findings of the lake"),
        None if findings.shown else empty(_nothing(findings)),
        aria_labelledby="findings",
    )


def _nothing(findings: Findings) -> str:
    if findings.verdict.state == UNKNOWN:
        return findings.verdict.sentence
    return "No rule found anything beyond its threshold."


def _filter(findings: Findings) -> Html:
    """It works by style alone; without it all are shown."""
    told = findings.verdict
    counts = (("critical", told.critical), ("warning", told.warning), ("info", told.info))
    return el(
        "fieldset",
        el("legend", "Show"),
        [
            el(
                "label",
                el("input", type="checkbox", id=f"show-{severity}", checked=True),
                badge(severity),
                f" {number(count)}",
            )
            for severity, count in counts
            if count
        ],
        class_="filter",
    )


def _finding(one: ShownFinding) -> Html:
    length = None if one.from_at is None or one.to_at is None else one.to_at - one.from_at
    kind = KINDS.get(one.subject_kind, one.subject_kind.replace("_", " "))
    return el(
        "article",
        el("h3", badge(one.severity), " ", el("span", one.summary)),
        el(
            "p",
            el("span", kind, " ", el("b", one.subject)),
            el("span", interval(one.from_at, one.to_at, 1_000_000), " UTC", f", {lasting(length)}" if length else None),
            el("span", "rule ", el("code", one.rule)),
            class_="facts",
        ),
        el("dl", [_figure(*figure) for figure in figures_of(one)], class_="figures") if one.figures else None,
        el("p", el("b", "What to do: "), one.advice, class_="advice") if one.advice else None,
        _evidence(one),
        class_=f"finding {one.severity}",
    )


def _figure(name: str, value: str) -> Html:
    return el("div", el("dt", name), el("dd", value))


def figures_of(one: ShownFinding) -> list[tuple[str, str]]:
    """Names and values with units. `lag` and `lag_ms` are two."""
    found = []
    for name, value in one.figures.items():
        plain = name.removesuffix("_ms").removesuffix("_us")
        words = f"{plain} time" if plain != name and plain in one.figures else plain
        found.append((words.replace("_", " "), figure_value(name, value)))
    return found


def figure_value(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if name.endswith("_ms"):
        return span(value)
    if name.endswith("_us"):
        return lasting(int(value))
    if name.endswith("share") and 0 <= value <= 1:
        return percent(value)
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def _evidence(one: ShownFinding) -> Html | None:
    if not one.evidence:
        return None
    count = len(one.evidence) + one.evidence_left_out
    return el(
        "details",
        el("summary", f"Evidence: {number(count)} exchange{'' if count == 1 else 's'}"),
        el("ul", [el("li", _proof(proof)) for proof in one.evidence], class_="evidence"),
        more(one.evidence_left_out, "in the table findings of the lake"),
    )


def _proof(proof: Proof) -> list[Html | str]:
    told: list[Html | str] = []
    if proof.request_at is not None:
        told += [
            f"{clock(proof.request_at)} ",
            el("b", proof.api or "unknown API"),
            f" of {proof.client_id or 'unknown'} ",
        ]
    return [*told, el("code", command(proof))]


def command(proof: Proof) -> str:
    """What shows it whole."""
    file = shlex.quote(proof.capture_uri) if proof.capture_uri else "FILE"
    return f"kafkascope read {file} --exchange {proof.exchange_id}"
