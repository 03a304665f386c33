"""Names the places on the page that findings and charts link to."""

from dataclasses import dataclass

from kafkascope.health.findings.rules.table import RULES
from kafkascope.markup import Html, el
from kafkascope.report.build import Report
from kafkascope.report.html.prose import prose
from kafkascope.report.page.site import Site
from kafkascope.report.summaries.findings import ShownFinding

_PARTS_OF_GROUPS = ("share_member", "share_partition", "streams_member", "streams_task")
_MOST = 8
_PLACES = {"api": "apis", "client": "clients", "recording": "unread"}
_PLACES |= dict.fromkeys(("cluster", "group", "partition", "replica_log"), "disks")


def share_place(place: int) -> str:
    return f"share-group-{place}"


def streams_place(place: int) -> str:
    return f"streams-group-{place}"


def quorum_place(place: int) -> str:
    return f"cluster-{place}"


def finding_name(place: int) -> str:
    return f"finding-{place}"


def rule_name(rule: str) -> str:
    return f"rule-{rule}"


@dataclass(frozen=True, slots=True)
class Links:
    """`charts` maps kind and subject to a place on the page, `findings` a finding to its name."""

    charts: dict[tuple[str, str], str]
    findings: dict[int, str]
    shown: tuple[ShownFinding, ...]
    site: Site | None = None

    def rule(self, name: str) -> str | None:
        """Where a rule is described."""
        if name not in RULES:
            return None
        return self.site.rule(name) if self.site else f"#{rule_name(name)}"

    def chart_of(self, finding: ShownFinding) -> str | None:
        kind = finding.subject_kind
        if kind in ("quorum", "replica"):
            for between in (" of cluster ", " at "):
                cluster = finding.subject.partition(between)[2]
                if cluster:
                    return self.charts.get(("quorum", cluster))
            return self.charts.get(("quorum", ""))
        if kind.startswith(("share_", "streams_")):
            group = finding.subject.rpartition("/")[0] if kind in _PARTS_OF_GROUPS else finding.subject
            return self.charts.get((kind.partition("_")[0], group))
        return _PLACES.get(kind)

    def name_of(self, finding: ShownFinding) -> str | None:
        return self.findings.get(id(finding))

    def about(self, place: str) -> Html | None:
        """Links to the findings about a chart."""
        about = [finding for finding in self.shown if self.chart_of(finding) == place]
        if not about:
            return None
        lines = [
            el("li", prose(finding.summary), " ", el("a", "finding", href=f"#{self.findings[id(finding)]}"))
            for finding in about[:_MOST]
        ]
        left = len(about) - len(lines)
        return el(
            "div",
            el("p", el("b", "Findings")),
            el("ul", lines),
            el("p", el("a", f"and {left} more", href="#incidents"), class_="more") if left else None,
            class_="followed",
        )


def links_of(report: Report, site: Site | None = None) -> Links:
    charts = {("share", group.group_id): share_place(at) for at, group in enumerate(report.share.shown, 1)}
    charts |= {("streams", group.group_id): streams_place(at) for at, group in enumerate(report.streams.shown, 1)}
    charts |= {("quorum", view.cluster_id or ""): quorum_place(at) for at, view in enumerate(report.quorums.shown, 1)}
    shown = report.findings.shown
    return Links(charts, {id(finding): finding_name(at) for at, finding in enumerate(shown, 1)}, shown, site)
