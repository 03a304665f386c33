"""`kafkascope probe HOST` calls every version of every API that a node serves and checks each response byte for
byte."""

from typing import TYPE_CHECKING, Any

import click

from kafkascope.cli.arguments import json_option
from kafkascope.cli.live.options import live_options

if TYPE_CHECKING:
    from kafkascope.client.probe.result import Probe
    from kafkascope.client.settings import Settings


@click.command
@click.argument("host", metavar="HOST[:PORT]", required=False)
@click.option("--api", "only", metavar="API", multiple=True, help="Only this API; may be repeated.")
@click.option(
    "--write", is_flag=True, help="Create a topic, groups and a transaction to describe; remove them at the end."
)
@click.option("--full", is_flag=True, help="List every version with its errors, or why it wasn't sent.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of --json.")
@json_option
@live_options
def run(
    host: str | None, only: tuple[str, ...], write: bool, full: bool, schema: bool, as_json: bool, **options: Any
) -> int:
    """Prove the codec on a running cluster.

    Calls every API that only reads, at every version that the node serves, and checks that each response decodes
    exactly and encodes to the same bytes. Sends the catalog's examples too. Without --write nothing is changed.

    Exits with 1 if a response isn't exact, a call fails, an example is refused, or the node doesn't serve an --api.
    """
    import asyncio

    from kafkascope.cli.output import print_json
    from kafkascope.client.probe.result import as_json as to_json
    from kafkascope.client.probe.result import schema_text
    from kafkascope.errors import UsageError

    if schema:
        print(schema_text(), end="")
        return 0
    if host is None:
        raise UsageError("HOST is missing: kafkascope probe localhost:9092")
    from kafkascope.cli.live.options import settings_from

    names = frozenset(_api(name) for name in only)
    result = asyncio.run(_probe(settings_from(host, options), write, names))
    if as_json:
        print_json(to_json(result))
    else:
        from kafkascope.cli.live.probe_view import print_probe

        print_probe(result, full=full)
    return 0 if result.ok else 1


def _api(name: str) -> str:
    from kafkascope.errors import NotFoundError
    from kafkascope.schema.names import clip, find_api, suggest

    matching = find_api(name)
    if matching is None:
        raise NotFoundError(f"unknown API {clip(name)}{suggest(name)}")
    return matching


async def _probe(settings: "Settings", write: bool, only: frozenset[str]) -> "Probe":
    import time
    from contextlib import AsyncExitStack

    from kafkascope.cli.live.options import note_of_client
    from kafkascope.client.cluster import connect, time_limit
    from kafkascope.client.probe.prober import check_offered, probe
    from kafkascope.client.probe.temporary import temporary_resources

    began = time.monotonic()
    async with AsyncExitStack() as stack:
        with time_limit(settings.timeout):
            cluster = await stack.enter_async_context(connect(settings, on_note=note_of_client))
        if not write or cluster.controllers:
            left = max(settings.timeout - (time.monotonic() - began), 0.0)
            return await probe(cluster, write=write, apis_only=only, seconds=left)
        await check_offered(cluster, only)  # before anything is created
        async with temporary_resources(cluster) as name:
            return await probe(cluster, write=True, prefer=name, apis_only=only)
