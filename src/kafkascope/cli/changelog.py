"""`kafkascope changelog API`: each version, newest first: release, KIPs, what changed on the wire."""

import click

from kafkascope.cli.arguments import complete_target, json_option


@click.command
@click.argument("name", metavar="API", shell_complete=complete_target)
@json_option
def run(name: str, as_json: bool) -> None:
    """Tell the history of an API or message, version by version."""
    from kafkascope.cli.arguments import parse_target
    from kafkascope.cli.change_lines import change_json, print_changes
    from kafkascope.cli.output import print_json
    from kafkascope.cli.overview import kips_of_version
    from kafkascope.cli.terminal import heading, remark
    from kafkascope.errors import UsageError
    from kafkascope.schema.catalog import message
    from kafkascope.schema.compare import compare_layouts
    from kafkascope.schema.export import span_text
    from kafkascope.schema.layout import layout

    target = parse_target(name)
    if target.version is not None:
        raise UsageError(f"changelog takes all versions; say {name.partition(':')[0]}, or use diff for two of them")
    known = [message(item) for item in target.messages]
    versions = known[0].all_versions()
    answer = []
    for version in reversed(versions):
        older = version - 1 if version - 1 in versions else None
        changes = {
            item.name: compare_layouts(layout(item.name, older), layout(item.name, version))
            if older is not None
            else []
            for item in known
        }
        kips = kips_of_version(known[0], version)
        spans = span_text(known[0].releases_of(version))
        if as_json:
            listed = {title: [change_json(change) for change in found] for title, found in changes.items()}
            answer.append({"version": version, "releases": spans, "kips": kips, "changes": listed})
            continue
        heading(f"v{version}")
        remark(" · ".join([f"Kafka {spans}", *(f"KIP-{number}" for number in kips)]), "  ")
        if older is None:
            print("  the first version")
            continue
        if not any(changes.values()):
            print("  the same bytes as the version before")
        for title, found in changes.items():
            if found:
                print(f"  {title}")
                print_changes(found, "    ")
    if as_json:
        print_json(answer)
