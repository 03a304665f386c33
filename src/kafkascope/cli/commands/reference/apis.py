"""`kafkascope apis` lists every API by family, with key, versions and listeners; with `--all` also records."""

import click

from kafkascope.cli.arguments import complete_release, json_option


@click.command
@click.option("--release", metavar="R", shell_complete=complete_release, help="Only APIs of this Kafka release.")
@click.option("--all", "every", is_flag=True, help="Include records, headers and data messages.")
@json_option
def run(release: str | None, every: bool, as_json: bool) -> None:
    """List every API of Kafka, by family."""
    from kafkascope.cli.output import print_json
    from kafkascope.cli.tables import table
    from kafkascope.cli.terminal import heading
    from kafkascope.schema.api_facts import families, family_of
    from kafkascope.schema.catalog import apis, index, message
    from kafkascope.schema.history.compare import versions_in
    from kafkascope.schema.releases import check_release, newest_release
    from kafkascope.schema.versions import format_versions

    # An empty variable of a script isn't the same as no --release: here and in the other commands.
    shown = newest_release() if release is None else check_release(release)
    rows = []
    for key, api in apis().items():
        request = message(f"{api}Request")
        now = versions_in(request, release if release in dict(request.patches) else shown)
        if release and not now:
            continue
        rows.append(
            {
                "key": key,
                "api": api,
                "family": family_of(api),
                "versions": format_versions(request.all_versions()),
                "release": shown,
                "versionsInRelease": format_versions(now) or None,
                "listeners": list(request.listeners_in(shown)),
            }
        )
    kinds = {"header": "headers", "data": "data messages", "key": "record keys", "value": "record values"}
    others = [
        {"name": e.name, "kind": e.kind, "key": e.key, "versions": e.versions.text}
        for e in index().values()
        if e.kind not in ("request", "response") and (not release or versions_in(message(e.name), shown))
    ]
    if as_json:
        print_json(rows + others if every else rows)
        return
    for family in families():
        members = [row for row in rows if row["family"] == family]
        if not members:
            continue
        heading(family)
        table(
            [
                (str(r["key"]), str(r["api"]), str(r["versions"]), str(r["versionsInRelease"] or "removed"), _served(r))
                for r in members
            ],
            ("key", "API", "versions", f"in {shown}", "listeners"),
        )
    for kind in ("metadata", "key", "value", "data", "header") if every else ():
        heading(kinds.get(kind, "metadata records"))
        table(
            [
                (str(o["name"]), "" if o["key"] is None else str(o["key"]), str(o["versions"]))
                for o in others
                if o["kind"] == kind
            ],
            ("message", "key", "versions"),
        )
    print(f"\n{len(rows)} APIs" + (f", {len(others)} other messages" if every else ""))


def _served(row: dict[str, object]) -> str:
    listeners = row["listeners"]
    return ", ".join(listeners) if isinstance(listeners, list) else ""
