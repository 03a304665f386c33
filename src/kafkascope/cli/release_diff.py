"""Two releases in, what changed between them out: APIs, versions that came and went, layouts, records, errors."""

from dataclasses import replace

from kafkascope.cli.change_lines import change_json, signed
from kafkascope.cli.output import print_json
from kafkascope.cli.terminal import heading, paint, prose, table
from kafkascope.schema.catalog import index
from kafkascope.schema.compare import MessageChange, compare_releases
from kafkascope.schema.error_codes import error_codes
from kafkascope.schema.releases import check_release, release_order, releases

KINDS = {
    "request": "Requests and responses",
    "metadata": "Metadata records",
    "key": "Record keys and values",
    "data": "Data messages and headers",
}
_SAME = {"response": "request", "value": "key", "header": "data"}


def diff_releases(old: str, new: str, as_json: bool) -> int:
    before, after = check_release(old), check_release(new)
    changes = compare_releases(before, after)
    order = release_order()
    first, last = sorted((order[before], order[after]))
    errors = [e for e in error_codes().values() if first < order[e.release] <= last]
    forward = order[before] < order[after]
    if as_json:
        print_json(
            {
                "old": before,
                "new": after,
                "messages": [_json(change) for change in changes],
                ("newErrors" if forward else "lostErrors"): [
                    {"code": e.code, "name": e.name, "since": e.release} for e in errors
                ],
            }
        )
        return 1 if changes or errors else 0
    print(paint(f"Kafka {before} → {after}", "bold"))
    for release in releases():
        if release.name in (before, after) and release.coverage != "all":
            prose(_coverage(release.name, release.coverage))
    for kind, title in KINDS.items():
        of_kind = [c for c in changes if _SAME.get(index()[c.name].kind, index()[c.name].kind) == kind]
        if of_kind:
            heading(title)
            table([_row(change) for change in _paired(of_kind)], ("", "message", before, after, ""))
    if errors:
        heading("New errors" if forward else "Errors that are not there yet")
        table([(str(e.code), e.name, f"since {e.release}") for e in errors])
    if not changes and not errors:
        print("no difference")
    return 1 if changes or errors else 0


def _coverage(name: str, coverage: str) -> str:
    if coverage == "clients":
        return f"Of {name} only the client messages are published yet: its records are taken as in the release before."
    return (
        f"Of {name} only version ranges are known: it has no definition files, so layouts and records are not compared."
    )


def _paired(changes: list[MessageChange]) -> list[MessageChange]:
    """Request and response of an API, or key and value of a record, that changed alike are one row."""
    rows: list[MessageChange] = []
    for change in changes:
        for first, second in (("Request", "Response"), ("Key", "Value")):
            partner = change.name.removesuffix(second) + first
            twin = next((row for row in rows if row.name == partner and change.name.endswith(second)), None)
            if twin and replace(twin, name=change.name) == change and not change.changes:
                rows[rows.index(twin)] = replace(twin, name=change.name.removesuffix(second))
                break
        else:
            rows.append(change)
    return rows


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
