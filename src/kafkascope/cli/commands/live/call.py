"""`kafkascope call HOST API [JSON]` sends any request to a running cluster. Requests that change something need
`--write`."""

from typing import Any

import click

from kafkascope.cli.arguments import complete_target
from kafkascope.cli.live.options import live_options


@click.command
@click.argument("host", metavar="HOST[:PORT]")
@click.argument("api", metavar="API", shell_complete=complete_target)
@click.argument("value", metavar="[JSON|@FILE|-]", default="{}")
@click.option(
    "--api-version",
    metavar="N",
    type=click.IntRange(0, 32_767),
    help="This version instead of the newest one that both sides know.",
)
@click.option(
    "--to", metavar="WHO", help="Where to send it: leader:orders-0, coordinator:my-group, controller, node:3 or any."
)
@click.option("--write", is_flag=True, help="Send it even if it changes something.")
@click.option("--dry-run", is_flag=True, help="Print the annotated bytes of the request; send nothing.")
@click.option("--template", is_flag=True, help="Print the request as JSON to fill in; send nothing.")
@click.option("--raw", is_flag=True, help="Print the received bytes as hex.")
@click.option("--repeat", metavar="N", type=click.IntRange(1, 1_000_000), default=1, help="Send it N times; default 1.")
@click.option(
    "--time", "timed", is_flag=True, help="Print the time of each call, and percentiles, instead of responses."
)
@click.option("--records", is_flag=True, help="Include keys, values and headers of record batches.")
@click.option("--full", is_flag=True, help="Print every byte and item, however long.")
@click.option("--json", "as_json", is_flag=True, help="Print the response in Kafka's JSON form, for other programs.")
@live_options
def run(host: str, api: str, value: str, template: bool, **options: Any) -> int:
    """Send a request and show its response.

    API is a name or key, optionally with :VERSION. JSON is the request in Kafka's JSON form; missing fields get their
    defaults. Where Kafka expects topic ids you may write names, and vice versa.

    Exits with 1 if the response has an error code other than 0, with 4 if there is no response.
    """
    from kafkascope.cli.live.call_request import read_request

    requested = read_request(api, options["api_version"])
    if template:
        from kafkascope.cli.output import print_json
        from kafkascope.client.arguments import template as make

        print_json(make(requested.api, requested.candidates[-1]))
        return 0
    if value == "@":
        from kafkascope.errors import UsageError

        raise UsageError("@ needs the name of a file after it, as in @request.json")
    from kafkascope.cli.bytes.json_text import read_json
    from kafkascope.cli.live.call_run import run_call

    return run_call(requested, read_json(value), host, options)
