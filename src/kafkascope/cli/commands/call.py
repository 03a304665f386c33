"""`kafkascope call HOST API [JSON]` sends any request to a running cluster; requests that change something need
`--write`."""

from typing import Any

import click

from kafkascope.cli.arguments import complete_target
from kafkascope.cli.live.options import live_options


@click.command
@click.argument("host", metavar="HOST[:PORT]")
@click.argument("api", metavar="API", shell_complete=complete_target)
@click.argument("value", metavar="[JSON|@FILE|-]", default="{}")
@click.option("--api-version", metavar="N", type=click.IntRange(0, 32_767), help="Instead of the newest both know.")
@click.option("--to", metavar="WHO", help="leader:orders-0, coordinator:my-group, controller, node:3 or any.")
@click.option("--write", is_flag=True, help="Send it even though it changes something.")
@click.option("--dry-run", is_flag=True, help="Every byte that would go out, named; nothing is sent.")
@click.option("--template", is_flag=True, help="The request as JSON to fill in; nothing is sent.")
@click.option("--raw", is_flag=True, help="The bytes that came, as hex.")
@click.option("--repeat", metavar="N", type=click.IntRange(1, 1_000_000), default=1, help="So many times; once.")
@click.option("--time", "timed", is_flag=True, help="How long each call took, and percentiles, instead of answers.")
@click.option("--records", is_flag=True, help="Keys, values and headers of record batches too.")
@click.option("--full", is_flag=True, help="Every byte and item, however long.")
@click.option("--json", "as_json", is_flag=True, help="Kafka's JSON form of the answer, for other programs.")
@live_options
def run(host: str, api: str, value: str, template: bool, **options: Any) -> int:
    """Send a request and show its response.

    API is a name or key, with :VERSION behind it if you like. JSON is the request in Kafka's JSON form; fields that are
    left out get defaults. Topics may go by name where Kafka wants ids, and the other way round.

    Exits with 1 when the answer holds an error code that is not 0, with 4 when there is no answer.
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

        raise UsageError("@ wants the name of a file behind it, as @request.json")
    from kafkascope.cli.bytes.json_text import read_json
    from kafkascope.cli.live.call_run import run_call

    return run_call(requested, read_json(value), host, options)
