"""`kafkascope catalog` prints the whole catalog as JSON, or its JSON Schema."""

import click


@click.command
@click.option("--json", "as_json", is_flag=True, help="Print the whole catalog as JSON.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of --json.")
def run(as_json: bool, schema: bool) -> None:
    """Export the whole catalog for other programs."""
    from kafkascope.cli.output import print_json
    from kafkascope.cli.terminal import prose
    from kafkascope.schema.catalog import apis, index
    from kafkascope.schema.errors.error_codes import error_codes
    from kafkascope.schema.releases import releases

    if schema:
        from kafkascope.schema.files import text

        print(text("catalog.schema.json"), end="")
        return
    if as_json:
        from kafkascope.schema.export import catalog_json

        print_json(catalog_json())
        return
    known = releases()
    requests = sum(
        last - first + 1 for e in index().values() if e.kind == "request" for first, last in e.versions.ranges
    )
    prose(
        f"Kafka {known[0].name} to {known[-1].name}: {len(apis())} APIs in {requests} request versions,"
        f" {len(index())} messages in all, {len(error_codes())} error codes."
    )
    for release in known:
        if release.coverage == "clients":
            prose(
                f"Only the client messages of {release.name} are published:"
                " its records are those of the release before."
            )
    prose("--json prints all of it, --schema its JSON Schema.")
