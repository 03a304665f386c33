"""`kafkascope changelog API` lists each version, newest first: releases, KIPs, changes on the wire."""

import click

from kafkascope.cli.arguments import complete_target, json_option


@click.command
@click.argument("name", metavar="API", shell_complete=complete_target)
@json_option
def run(name: str, as_json: bool) -> None:
    """Show the history of an API or message by version."""
    from kafkascope.cli.output import print_json
    from kafkascope.cli.reference.change_lines import print_changes
    from kafkascope.cli.terminal import heading, remark
    from kafkascope.errors import UsageError
    from kafkascope.schema.export import span_text
    from kafkascope.schema.history.change_text import change_json
    from kafkascope.schema.history.versions_of import history
    from kafkascope.schema.targets import parse_target

    target = parse_target(name)
    if target.version is not None:
        raise UsageError(f"changelog takes no version; write {name.partition(':')[0]}, or use diff for two versions")
    answer = []
    for entry in history(target.messages):
        spans = span_text(list(entry.spans))
        if as_json:
            listed = {
                title: [change_json(change) for change in changes_of] for title, changes_of in entry.changes.items()
            }
            answer.append(
                {
                    "version": entry.version,
                    "releases": spans,
                    "kips": list(entry.kips),
                    "missingInPatches": list(entry.missing_in),
                    "unstableIn": [str(span) for span in entry.unstable],
                    "deprecatedIn": [str(span) for span in entry.deprecated],
                    "changes": listed,
                }
            )
            continue
        heading(f"v{entry.version}")
        facts = [f"Kafka {spans}", *(f"KIP-{number}" for number in entry.kips)]
        facts += [f"not in {patch}" for patch in entry.missing_in]
        facts += [f"unstable in {span}" for span in entry.unstable]
        facts += [f"deprecated in {span}" for span in entry.deprecated]
        remark(" · ".join(facts), "  ")
        if entry.older is None:
            print("  the first version")
            continue
        if not any(entry.changes.values()):
            print("  the same bytes as the version before")
        for title, changes_of in entry.changes.items():
            if changes_of:
                print(f"  {title}")
                print_changes(list(changes_of), "    ")
    if as_json:
        print_json(answer)
