"""`kafkascope groups` lists every group of a cluster by type, with its state, members and coordinator."""

from typing import TYPE_CHECKING, Any

import click

from kafkascope.cli.describe.run_view import run_view, view_options

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster
    from kafkascope.client.describe.groups import GroupList


@click.command
@click.argument("host")
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(["classic", "consumer", "share", "streams"]),
    help="Only groups of this type; may be repeated.",
)
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only groups in this state, such as Stable or Empty."
)
@view_options
def run(host: str, types: tuple[str, ...], states: tuple[str, ...], **options: Any) -> int:
    """List every group of a cluster.

    HOST is host:port, or several separated by commas. Exits with 1 if a broker refuses, with 4 if none responds.
    """
    from kafkascope.cli.describe.group import show_groups
    from kafkascope.client.describe.groups import check_states, describe_groups

    check_states(states)

    async def ask(cluster: "Cluster") -> "GroupList":
        return await describe_groups(cluster, types, states)

    return run_view(host, options, ask, show_groups)
