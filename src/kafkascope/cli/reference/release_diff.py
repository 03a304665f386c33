"""Prints what changed between two releases: APIs, versions, layouts, records, errors."""

from kafkascope.cli.output import print_json
from kafkascope.cli.tables import table
from kafkascope.cli.terminal import heading, paint, prose
from kafkascope.schema.history.change_text import change_json, signed
from kafkascope.schema.history.compare import MessageChange
from kafkascope.schema.history.release_changes import KIND_TITLES, between, by_kind, coverage_remarks
from kafkascope.schema.releases import check_release


def diff_releases(old: str, new: str, as_json: bool) -> int:
    difference = between(check_release(old), check_release(new))
    changes, errors = difference.messages, difference.errors
    differ = bool(changes or errors)
    if as_json:
        print_json(
            {
                "old": difference.old,
                "new": difference.new,
                "messages": [_json(change) for change in changes],
                ("newErrors" if difference.forward else "lostErrors"): [
                    {"code": e.code, "name": e.name, "since": e.release} for e in errors
                ],
            }
        )
        return 1 if differ else 0
    print(paint(f"Kafka {difference.old} → {difference.new}", "bold"))
    for remark in coverage_remarks(difference.old, difference.new):
        prose(remark)
    for kind, rows in by_kind(changes).items():
        if rows:
            heading(KIND_TITLES[kind])
            table([_row(change) for change in rows], ("", "message", difference.old, difference.new, ""))
    if errors:
        heading("New errors" if difference.forward else "Errors that don't exist yet")
        table([(str(e.code), e.name, f"since {e.release}") for e in errors])
    if not differ:
        print("no difference")
    return 1 if differ else 0


def _row(change: MessageChange) -> tuple[str, ...]:
    sign = {"added": "+", "removed": "-"}.get(change.what, "~")
    remarks = [f"v{version} {signed(item)}" for version, item in change.changes[:3]]
    if len(change.changes) > 3:
        remarks.append(f"and {len(change.changes) - 3} more")
    return sign, change.name, change.before or "", change.after or "", "; ".join(remarks)


def _json(change: MessageChange) -> dict[str, object]:
    return {
        "message": change.name,
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "changes": [{"version": version} | change_json(item) for version, item in change.changes],
    }
