"""`kafkascope show NAME[:V]` describes an API or message over all its versions, or one version in full."""

import click

from kafkascope.cli.arguments import complete_release, complete_target, json_option


@click.command
@click.argument("name", metavar="NAME[:V]", shell_complete=complete_target)
@click.option(
    "--release", metavar="R", shell_complete=complete_release, help="Use the layout and names of this Kafka release."
)
@click.option("--schema", is_flag=True, help="Print only the schema, as typed JSON to copy.")
@json_option
def run(name: str, release: str | None, schema: bool, as_json: bool) -> None:
    """Show an API, a message, or every byte of a version.

    NAME is an API (ShareFetch, or its key 78) or a message (ShareFetchRequest). With a version, as in
    ShareFetchRequest:2, it prints the page of that version.
    """
    from kafkascope.errors import UsageError
    from kafkascope.schema.targets import parse_target

    target = parse_target(name)
    if target.version is None:
        if schema or release is not None:
            raise UsageError(f"this needs a version: {target.messages[0]}:N")
        from kafkascope.cli.reference.overview import show_overview

        show_overview(target, as_json)
        return
    from kafkascope.cli.reference.page import show_pages

    show_pages(target.messages, target.version, release, schema_only=schema, as_json=as_json)
