"""Renders the incidents: each with its cause, its impact, what to do, its consequences, and its findings, folded."""

from kafkascope.formatting import count
from kafkascope.markup import Html, el
from kafkascope.report.charts.figure import empty, more, tiles
from kafkascope.report.html.icons import STATE_WORDS, badge, icon
from kafkascope.report.html.prose import advice, prose
from kafkascope.report.incident_words import (
    CAUSE_WORDS,
    consequence_words,
    consequences_of,
    finding_key,
    impact_words,
    incident_name,
)
from kafkascope.report.page.findings import finding_article
from kafkascope.report.page.links import Links
from kafkascope.report.summaries.findings import UNKNOWN_STATE, Findings, ShownFinding
from kafkascope.report.summaries.incidents import ShownIncident
from kafkascope.report.words import interval, lasting, number

TILE_LINKS = {
    "incidents": "incidents",
    "findings": "incidents",
    "notes": "incidents",
    "share groups": "share-groups",
    "streams groups": "streams-groups",
    "recordings": "unread",
}
_Key = tuple[str, str, int | None]
_CONFIDENCE = {
    "certain": "certain: the recording proves it",
    "likely": "likely: nothing else explains it as well",
    "possible": "possible: look for yourself",
}


def verdict(findings: Findings, about: tuple[tuple[str, str, str], ...]) -> Html:
    """`about` has tiles beside those of the worst incident."""
    judged = findings.verdict
    serious = [incident for incident in findings.incidents.shown if incident.severity != "info"]
    notes = len(findings.incidents.shown) - len(serious)
    worst = serious[0] if serious else None
    return el(
        "section",
        el("h2", "Verdict", id="verdict", class_="unseen"),
        el(
            "div",
            el("p", icon(judged.state), el("strong", STATE_WORDS[judged.state]), class_="word"),
            el("p", prose(judged.sentence), class_="sentence"),
            el("p", "; ".join(impact_words(worst.impact)), class_="cost") if worst and worst.impact else None,
            class_=f"verdict {judged.state}",
        ),
        tiles(
            (
                ("incidents", number(len(serious) + findings.incidents.left_out), "worst first"),
                ("findings", number(judged.critical + judged.warning + judged.info), "under their incidents"),
                ("notes", number(notes), "good to know"),
                *about,
            ),
            TILE_LINKS,
        ),
        aria_labelledby="verdict",
    )


def incidents_section(findings: Findings, links: Links) -> Html:
    by_key = {finding_key(finding): finding for finding in findings.shown}
    shown = list(enumerate(findings.incidents.shown, 1))
    serious = [(place, incident) for place, incident in shown if incident.severity != "info"]
    notes = [(place, incident) for place, incident in shown if incident.severity == "info"]
    explained = {finding_key(part) for _, incident in shown for part in incident.consequences}
    others = [finding for key, finding in by_key.items() if key not in explained]
    return el(
        "section",
        el("h2", "Incidents", id="incidents"),
        [_incident(incident, place, by_key, links) for place, incident in serious],
        None if serious else empty(_nothing(findings)),
        more(findings.incidents.left_out, "incidents, in the table incidents of the lake"),
        _notes(notes, by_key, links),
        _others(others, findings.left_out, links),
        aria_labelledby="incidents",
    )


def _nothing(findings: Findings) -> str:
    if findings.verdict.state == UNKNOWN_STATE:
        return findings.verdict.sentence
    return "No rule found anything that needs action."


def _incident(incident: ShownIncident, place: int, by_key: dict[_Key, ShownFinding], links: Links) -> Html:
    impact = impact_words(incident.impact)
    return el(
        "article",
        el("h3", badge(incident.severity), " ", el("span", prose(incident.title))),
        _facts(incident),
        el("p", prose(incident.explanation), class_="explanation"),
        el("p", el("b", "Cost: "), "; ".join(impact), class_="advice") if impact else None,
        advice(incident.advice) if incident.advice else None,
        el("p", el("b", "What would disprove it: "), prose(incident.disproof), class_="advice"),
        _consequences(incident, by_key),
        _findings(incident, by_key, links),
        id=incident_name(place),
        class_=f"finding {incident.severity}",
    )


def _facts(incident: ShownIncident) -> Html:
    length = None if incident.from_at is None or incident.to_at is None else incident.to_at - incident.from_at
    return el(
        "p",
        el("span", "cause ", el("b", CAUSE_WORDS.get(incident.cause, incident.cause.replace("_", " ")))),
        el(
            "span",
            interval(incident.from_at, incident.to_at, 1_000_000),
            " UTC",
            f", {lasting(length)}" if length else None,
        ),
        el("span", _CONFIDENCE.get(incident.confidence, incident.confidence)),
        class_="facts",
    )


def _consequences(incident: ShownIncident, by_key: dict[_Key, ShownFinding]) -> Html | None:
    lines = []
    for part in consequences_of(incident):
        words = consequence_words(part, by_key.get(finding_key(part)), incident)
        lines.append(el("li", el("b", part.role), ": ", prose(words)))
    lines += [el("li", prose(note)) for note in incident.notes]
    if not lines:
        return None
    return el("div", el("p", el("b", "What followed")), el("ul", lines), class_="followed")


def _findings(incident: ShownIncident, by_key: dict[_Key, ShownFinding], links: Links) -> Html | None:
    findings = [by_key[finding_key(part)] for part in incident.consequences if finding_key(part) in by_key]
    if not findings:
        return None
    words = f"{count(len(findings), 'finding')} with figures and evidence"
    return el(
        "details",
        el("summary", words),
        [finding_article(finding, links) for finding in findings],
        more(len(incident.consequences) - len(findings), "in the table findings of the lake"),
    )


def _notes(notes: list[tuple[int, ShownIncident]], by_key: dict[_Key, ShownFinding], links: Links) -> Html | None:
    if not notes:
        return None
    return el(
        "section",
        el("h3", "Notes"),
        el("p", "Findings that need no action.", class_="note"),
        [
            el(
                "article",
                el("p", badge("info"), " ", prose(note.title), class_="title"),
                el("p", prose(note.explanation), class_="note"),
                _findings(note, by_key, links),
                id=incident_name(place),
                class_="finding info",
            )
            for place, note in notes
        ],
    )


def _others(findings: list[ShownFinding], left_out: int, links: Links) -> Html | None:
    """Findings of incidents that are left out."""
    if not findings and not left_out:
        return None
    return el(
        "section",
        el("h3", "Other findings"),
        [finding_article(finding, links) for finding in findings],
        more(left_out, "findings, in the table findings of the lake"),
    )
