"""Prints the short form of a report: the verdict, the incidents with their consequences, and each part in a line."""

from collections.abc import Sequence
from textwrap import wrap

from kafkascope.cli.tables import table
from kafkascope.cli.terminal import WIDEST_PROSE, heading, paint, prose, remark, width
from kafkascope.cli.units import number, plural, size
from kafkascope.report.build import Report
from kafkascope.report.html.icons import WORDS
from kafkascope.report.incident_words import CAUSE_WORDS, consequences_of, finding_key, impact_words
from kafkascope.report.page.quorum import quorum_line
from kafkascope.report.summaries.quorum import Quorums
from kafkascope.report.summaries.share import ShareGroupSummary
from kafkascope.report.summaries.streams import StreamsGroupSummary
from kafkascope.report.words import interval, lasting, printable, share

MOST_INCIDENTS, MOST_CONSEQUENCES, MOST_NOTES = 5, 4, 5
STYLES = {
    "critical": ("bold", "red"),
    "attention": ("bold", "yellow"),
    "healthy": ("bold", "green"),
    "unknown": ("bold",),
}
_MARKS = {"critical": "✖", "attention": "▲", "healthy": "✔", "unknown": "?"}
_SEVERITIES = {"critical": ("bold", "red"), "warning": ("yellow",), "info": ("blue",)}


def print_report(report: Report, written: Sequence[tuple[str, str, int]]) -> None:
    verdict = report.findings.verdict
    print(paint(f"{_MARKS[verdict.state]} {WORDS[verdict.state]}", *STYLES[verdict.state]))
    prose(printable(verdict.sentence))
    recorded = f"{plural(report.unread.recordings, 'recording')}, {plural(report.exchanges, 'exchange')}"
    times = f", {interval(report.first_at, report.last_at, 1_000_000)} UTC" if report.first_at is not None else ""
    remark(f"{printable(report.lake)}: {recorded}{times}")
    _incidents(report)
    _groups(report)
    heading("Not read")
    print(f"  {_unread(report)}")
    if written:
        print()
        for what, file, count in written:
            print(f"{what} written to {file} ({size(count)})")
    else:
        remark("--html FILE writes the page with pictures and evidence.")


def _incidents(report: Report) -> None:
    incidents = report.findings.incidents
    serious = [incident for incident in incidents.shown if incident.severity != "info"]
    notes = [incident for incident in incidents.shown if incident.severity == "info"]
    summaries = {finding_key(finding): finding.summary for finding in report.findings.shown}
    if serious:
        heading(f"Incidents: {number(len(serious) + incidents.left_out)}")
    for place, incident in enumerate(serious[:MOST_INCIDENTS]):
        word = paint(f"{WORDS[incident.severity].lower():<8}", *_SEVERITIES[incident.severity])
        print(f"  {word}  {_wrapped(incident.title)}")
        cost = "; ".join(
            [
                *impact_words(incident.impact),
                f"{CAUSE_WORDS.get(incident.cause, incident.cause)}, {incident.confidence}",
            ]
        )
        print(f"            {paint(_wrapped(cost), 'dim')}")
        for part in consequences_of(incident)[:MOST_CONSEQUENCES]:
            print(f"            → {_wrapped(f'{part.role}: {summaries.get(finding_key(part), part.rule)}', 2)}")
        if place == 0:
            print(f"            {_wrapped(f'Do: {incident.advice}')}")
    rest = len(serious) - MOST_INCIDENTS + incidents.left_out
    if rest > 0:
        remark(f"and {number(rest)} more", "  ")
    if notes:
        heading(f"Notes: {number(len(notes))}")
    for note in notes[:MOST_NOTES]:
        print(f"  {_wrapped(note.title, -10)}")
    if len(notes) > MOST_NOTES:
        remark(f"and {number(len(notes) - MOST_NOTES)} more", "  ")


def _wrapped(text: str, more: int = 0) -> str:
    """Of a column behind the severity; `more` cells further in."""
    indent = 12 + more
    lines = wrap(printable(text), min(width(), WIDEST_PROSE) - indent, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)


def _groups(report: Report) -> None:
    for title, groups, count in (
        ("Share groups", [(one.group_id, _share(one)) for one in report.share.shown], report.share.count),
        ("Streams groups", [(one.group_id, _streams(one)) for one in report.streams.shown], report.streams.count),
    ):
        if groups:
            heading(title)
            table([(printable(name), words) for name, words in groups])
            if count > len(groups):
                remark(f"and {number(count - len(groups))} more in less trouble", "  ")
    _quorums(report.quorums)


def _quorums(quorums: Quorums) -> None:
    if not quorums.shown:
        return
    heading("Quorum")
    if len(quorums.shown) == 1:
        prose(quorum_line(quorums.shown[0]), "  ")
    else:
        table([(printable(one.cluster_id or "not known"), quorum_line(one)) for one in quorums.shown])
    if quorums.left_out:
        remark(f"and {number(quorums.left_out)} more in less trouble", "  ")


def _share(group: ShareGroupSummary) -> str:
    words = [f"{plural(group.acquired, 'record')} acquired", f"{number(group.redelivered)} again"]
    for outcome, told in (("lock_expired", "lock expired"), ("disconnected", "disconnected"), ("rejected", "rejected")):
        if group.outcomes.get(outcome):
            words.append(f"{number(group.outcomes[outcome])} {told}")
    words += [f"{number(group.archived)} given up"] if group.archived else []
    words += [f"lag {number(group.health.lag)}"] if group.health.lag is not None else []
    return ", ".join(words)


def _streams(group: StreamsGroupSummary) -> str:
    totals = group.totals
    words = [plural(totals.tasks, "task"), plural(totals.moves, "move")]
    words += [f"longest pause {lasting(1000 * totals.pause_max_ms)}"] if totals.pause_max_ms else []
    words += [f"unheld {lasting(1000 * totals.unheld_ms)} of all tasks together"] if totals.unheld_ms else []
    words += [f"{plural(totals.lost, 'member')} lost"] if totals.lost else []
    return ", ".join(words)


def _unread(report: Report) -> str:
    total = report.unread.total
    lost = f"{size(total.lost_bytes)} lost at {plural(total.lost_places, 'place')}"
    quarantined = f"{plural(total.quarantined, 'frame')} in quarantine"
    return f"{lost}, {share(total.tls_bytes, total.tcp_bytes)} TLS, {quarantined}"
