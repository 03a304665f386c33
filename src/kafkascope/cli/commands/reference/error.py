"""`kafkascope error NAME|CODE` explains an error: cause, remedy, whether to retry, and the APIs that return it."""

import click

from kafkascope.cli.arguments import complete_error, json_option


# Unknown options count as the argument, since -1 is an error code.
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="NAME|CODE", shell_complete=complete_error)
@json_option
def run(name: str, as_json: bool) -> None:
    """Explain an error code, name or Java exception."""
    from kafkascope.cli.output import print_json
    from kafkascope.cli.tables import table
    from kafkascope.cli.terminal import heading, paint, prose, remark
    from kafkascope.schema.catalog import apis, message
    from kafkascope.schema.errors.error_codes import cause_and_remedy, find_error
    from kafkascope.schema.errors.message_errors import errors_of
    from kafkascope.schema.export import error_json

    error = find_error(name)
    users = [
        (api, item)
        for api in apis().values()
        for item in errors_of(message(f"{api}Response"))
        if item.error.code == error.code
    ]
    if as_json:
        returned = [{"api": api, "origin": item.origin, "fields": list(item.fields)} for api, item in users]
        print_json(error_json(error) | {"returnedBy": returned})
        return
    cause, remedy = cause_and_remedy(error.name)
    print(paint(f"{error.name}  {error.code}", "bold"))
    facts = ["retriable" if error.retriable else "not retriable", f"since Kafka {error.release}"]
    facts += [error.exception] if error.exception else []
    facts += [f"earlier {', '.join(error.aliases)}"] if error.aliases else []
    remark(" · ".join(facts))
    heading("Cause")
    prose(cause, "  ")
    heading("What to do")
    prose(remedy, "  ")
    heading("Returned by")
    if users:
        table([(api, item.origin, " ".join(item.fields) or "field not known") for api, item in users])
    else:
        prose("No API is known to return it: neither a definition file nor the broker's code names it.", "  ")
