"""Prints the short form of a report: the verdict, the incidents with their consequences, and a line per part."""

from collections.abc import Sequence
from textwrap import wrap

from kafkascope.cli.tables import table
from kafkascope.cli.terminal import WIDEST_PROSE, heading, paint, prose, remark, width
from kafkascope.formatting import count, number, printable, size
from kafkascope.report.build import Report
from kafkascope.report.html.icons import STATE_WORDS
from kafkascope.report.incident_words import CAUSE_WORDS, consequence_words, consequences_of, finding_key, impact_words
from kafkascope.report.page.quorum import quorum_line
from kafkascope.report.summaries.quorum import Quorums
from kafkascope.report.summaries.share import ShareGroupSummary
from kafkascope.report.summaries.streams import StreamsGroupSummary
from kafkascope.report.words import interval, lasting, share

_MOST_INCIDENTS, _MOST_CONSEQUENCES, _MOST_NOTES = 5, 4, 5
STYLES = {
    "critical": ("bold", "red"),
    "attention": ("bold", "yellow"),
    "healthy": ("bold", "green"),
    "unknown": ("bold",),
}
_MARKS = {"critical": "✖", "attention": "▲", "healthy": "✔", "unknown": "?"}
_SEVERITIES = {"critical": ("bold", "red"), "warning": ("yellow",), "info": ("blue",)}


def print_report(report: Report, written: Sequence[tuple[str, str, int]]) -> None:
    print_verdict(report)
    _notes(report)
    _groups(report)
    heading("Not read")
    print(f"  {_unread(report)}")
    if written:
        print()
        for what, file, length in written:
            print(f"{what} written to {file} ({size(length)})")
    else:
        remark("--html FILE writes the page with charts and evidence.")


def print_verdict(report: Report) -> None:
    """Prints the verdict and the incidents that lead to it."""
    verdict = report.findings.verdict
    print(paint(f"{_MARKS[verdict.state]} {STATE_WORDS[verdict.state]}", *STYLES[verdict.state]))
    prose(printable(verdict.sentence))
    recorded = f"{count(report.unread.recordings, 'recording')}, {count(report.exchanges, 'exchange')}"
    times = f", {interval(report.first_at, report.last_at, 1_000_000)} UTC" if report.first_at is not None else ""
    remark(f"{printable(report.lake)}: {recorded}{times}")
    _incidents(report)


def _incidents(report: Report) -> None:
    incidents = report.findings.incidents
    serious = [incident for incident in incidents.shown if incident.severity != "info"]
    by_key = {finding_key(finding): finding for finding in report.findings.shown}
    if serious:
        heading(f"Incidents: {number(len(serious) + incidents.left_out)}")
    for place, incident in enumerate(serious[:_MOST_INCIDENTS]):
        word = paint(f"{STATE_WORDS[incident.severity].lower():<8}", *_SEVERITIES[incident.severity])
        print(f"  {word}  {_wrapped(incident.title)}")
        cost = "; ".join(
            [
                *impact_words(incident.impact),
                f"{CAUSE_WORDS.get(incident.cause, incident.cause)}, {incident.confidence}",
            ]
        )
        print(f"            {paint(_wrapped(cost), 'dim')}")
        for part in consequences_of(incident)[:_MOST_CONSEQUENCES]:
            words = consequence_words(part, by_key.get(finding_key(part)), incident)
            print(f"            → {_wrapped(f'{part.role}: {words}', 2)}")
        if place == 0:
            print(f"            {_wrapped(f'Do: {incident.advice}')}")
    rest = len(serious) - _MOST_INCIDENTS + incidents.left_out
    if rest > 0:
        remark(f"and {number(rest)} more", "  ")


def _notes(report: Report) -> None:
    notes = [incident for incident in report.findings.incidents.shown if incident.severity == "info"]
    if notes:
        heading(f"Notes: {number(len(notes))}")
    for note in notes[:_MOST_NOTES]:
        print(f"  {_wrapped(note.title, -10)}")
    if len(notes) > _MOST_NOTES:
        remark(f"and {number(len(notes) - _MOST_NOTES)} more", "  ")


def _wrapped(text: str, more: int = 0) -> str:
    """Wraps text in the column after the severity, indented by `more` cells."""
    indent = 12 + more
    lines = wrap(printable(text), min(width(), WIDEST_PROSE) - indent, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)


def _groups(report: Report) -> None:
    for title, groups, total in (
        ("Share groups", [(group.group_id, _share(group)) for group in report.share.shown], report.share.count),
        ("Streams groups", [(group.group_id, _streams(group)) for group in report.streams.shown], report.streams.count),
    ):
        if groups:
            heading(title)
            table([(printable(name), words) for name, words in groups])
            if total > len(groups):
                remark(f"and {number(total - len(groups))} more in less trouble", "  ")
    _quorums(report.quorums)


def _quorums(quorums: Quorums) -> None:
    if not quorums.shown:
        return
    heading("Quorum")
    if len(quorums.shown) == 1:
        prose(quorum_line(quorums.shown[0]), "  ")
    else:
        table([(printable(quorum.cluster_id or "unknown"), quorum_line(quorum)) for quorum in quorums.shown])
    if quorums.left_out:
        remark(f"and {number(quorums.left_out)} more in less trouble", "  ")


def _share(group: ShareGroupSummary) -> str:
    words = [f"{count(group.acquired, 'record')} acquired", f"{number(group.redelivered)} redelivered"]
    for outcome, label in (
        ("lock_expired", "lock expired"),
        ("disconnected", "disconnected"),
        ("rejected", "rejected"),
    ):
        if group.outcomes.get(outcome):
            words.append(f"{number(group.outcomes[outcome])} {label}")
    words += [f"{number(group.archived)} archived"] if group.archived else []
    words += [f"lag {number(group.health.lag)}"] if group.health.lag is not None else []
    return ", ".join(words)


def _streams(group: StreamsGroupSummary) -> str:
    totals = group.totals
    words = [count(totals.tasks, "task"), count(totals.moves, "move")]
    words += [f"longest pause {lasting(1000 * totals.pause_max_ms)}"] if totals.pause_max_ms else []
    words += [f"{lasting(1000 * totals.unheld_ms)} without owner (all tasks together)"] if totals.unheld_ms else []
    words += [f"{count(totals.lost, 'member')} lost"] if totals.lost else []
    return ", ".join(words)


def _unread(report: Report) -> str:
    total = report.unread.total
    lost = f"{size(total.lost_bytes)} lost at {count(total.lost_places, 'place')}"
    quarantined = f"{count(total.quarantined, 'frame')} in quarantine"
    return f"{lost}, {share(total.tls_bytes, total.tcp_bytes)} TLS, {quarantined}"
