"""`kafkascope errors` lists every error code, or those that an API can return, by field and with the source."""

import click

from kafkascope.cli.arguments import complete_target, json_option


@click.command
@click.option("--api", metavar="API[:V]", shell_complete=complete_target, help="Only errors that this API can return.")
@json_option
def run(api: str | None, as_json: bool) -> None:
    """List error codes, all of them or those of one API."""
    from kafkascope.cli.output import print_json
    from kafkascope.cli.tables import table
    from kafkascope.schema.errors.error_codes import error_codes

    if api is not None:
        _of_api(api, as_json)
        return
    codes = list(error_codes().values())
    if as_json:
        from kafkascope.schema.export import error_json

        print_json([error_json(error) for error in codes])
        return
    rows = [(str(e.code), e.name, "retriable" if e.retriable else "", e.release) for e in codes]
    table(rows, ("code", "error", "", "since"), indent="")


def _of_api(target_text: str, as_json: bool) -> None:
    from kafkascope.cli.output import print_json
    from kafkascope.cli.reference.error_table import print_errors
    from kafkascope.cli.terminal import title
    from kafkascope.errors import UsageError
    from kafkascope.schema.catalog import message
    from kafkascope.schema.errors.message_errors import errors_of
    from kafkascope.schema.export import message_error_json
    from kafkascope.schema.layouts.layout import layout
    from kafkascope.schema.targets import parse_target

    target = parse_target(target_text)
    name = target.messages[-1]
    known = message(name)
    if known.api is None:
        raise UsageError(f"{name} isn't a request or response, so it returns no errors")
    if target.version is not None:
        layout(name, target.version)  # reports the known versions if it isn't one
    errors = errors_of(known, target.version)
    if as_json:
        print_json([message_error_json(error) for error in errors])
        return
    at = "" if target.version is None else f" v{target.version}"
    title(f"Errors that {known.api}{at} is known to return")
    print_errors(errors)
