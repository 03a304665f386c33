"""Renders a finding: subject, interval, figures, advice, and the exchanges that prove it."""

import shlex
from typing import Any

from kafkascope.formatting import count, percent, span
from kafkascope.markup import Html, el
from kafkascope.report.charts.figure import more
from kafkascope.report.html.icons import badge
from kafkascope.report.html.prose import advice, prose
from kafkascope.report.page.links import Links
from kafkascope.report.summaries.findings import EvidenceLink, ShownFinding
from kafkascope.report.words import clock, interval, lasting

_KINDS = {
    "share_group": "share group",
    "share_member": "member of a share group",
    "share_partition": "partition of a share group",
    "streams_group": "streams group",
    "streams_member": "member of a streams group",
    "streams_task": "task of a streams group",
    "replica_log": "log of a replica",
    "api": "API",
}


def finding_article(finding: ShownFinding, links: Links) -> Html:
    length = None if finding.from_at is None or finding.to_at is None else finding.to_at - finding.from_at
    chart = links.chart_of(finding)
    kind = _KINDS.get(finding.subject_kind, finding.subject_kind.replace("_", " "))
    return el(
        "article",
        el("h4", badge(finding.severity), " ", el("span", prose(finding.summary))),
        el(
            "p",
            el("span", None if finding.subject.startswith(kind) else f"{kind} ", el("code", finding.subject)),
            el(
                "span",
                interval(finding.from_at, finding.to_at, 1_000_000),
                " UTC",
                f", {lasting(length)}" if length else None,
            ),
            el("span", "rule ", _rule(finding.rule, links)),
            el("span", el("a", "chart", href=f"#{chart}")) if chart else None,
            class_="facts",
        ),
        el("dl", [_figure(*figure) for figure in figures_of(finding)], class_="figures") if finding.figures else None,
        advice(finding.advice) if finding.advice else None,
        _evidence(finding, links),
        id=links.name_of(finding),
        class_="proof",
    )


def _rule(name: str, links: Links) -> Html:
    words, address = el("code", name), links.rule(name)
    return el("a", words, href=address) if address else words


def _figure(name: str, value: str) -> Html:
    return el("div", el("dt", name), el("dd", value))


def figures_of(finding: ShownFinding) -> list[tuple[str, str]]:
    """Names and values with units. `lag` and `lag_ms` are different figures."""
    figures = []
    for name, value in finding.figures.items():
        plain = name.removesuffix("_ms").removesuffix("_us")
        words = f"{plain} time" if plain != name and plain in finding.figures else plain
        figures.append((words.replace("_", " "), figure_value(name, value)))
    return figures


def figure_value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if name.endswith("_ms"):
        return span(value)
    if name.endswith("_us"):
        return lasting(int(value))
    if name.endswith("share") and 0 <= value <= 1:
        return percent(value)
    # Six digits of a small number are enough; a large one has all before the point.
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 100_000 else f"{value:,g}"


def _evidence(finding: ShownFinding, links: Links) -> Html | None:
    if not finding.evidence:
        return None
    exchanges = count(len(finding.evidence) + finding.evidence_left_out, "exchange")
    return el(
        "details",
        el("summary", f"Evidence: {exchanges}"),
        el("ul", [el("li", _proof(proof, links)) for proof in finding.evidence], class_="evidence"),
        more(finding.evidence_left_out, "in the table findings of the lake"),
    )


def _proof(proof: EvidenceLink, links: Links) -> list[Html | str]:
    words: list[Html | str] = []
    if proof.request_at is not None:
        words += [
            f"{clock(proof.request_at)} ",
            el("b", proof.api or "unknown API"),
            f" of {proof.client_id or 'unknown'} ",
        ]
    if links.site:
        words += [el("a", "exchange ", el("code", proof.exchange_id), href=links.site.exchange(proof)), " "]
    return [*words, el("code", command(proof))]


def command(proof: EvidenceLink) -> str:
    """The command that shows the whole exchange."""
    file = shlex.quote(proof.capture_uri) if proof.capture_uri else "FILE"
    return f"kafkascope read {file} --exchange {proof.exchange_id}"
