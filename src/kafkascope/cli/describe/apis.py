"""Prints an `ApisView`: which release the nodes look like, each API beside the catalog, clients that find nothing."""

from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.tables import Cell, Content, grid, odd
from kafkascope.cli.terminal import heading, prose, remark, title
from kafkascope.client.describe.apis import ApisView, ClientFit, NodeApis

_MOST_NAMED = 5


def show_apis(view: ApisView, everything: bool) -> None:
    title("APIs", f"{sum(bool(one.node) for one in view.apis)} served, {len(view.apis)} in the catalog")
    print()
    grid(("node", "address", "looks like"), [_node(one) for one in view.nodes], "node")
    if view.oldest_client:
        print()
        prose(f"Java clients from {view.oldest_client} on find a version of every API that they share with it.", "  ")
    for fit in view.clients:
        _client(fit)
    lines = [one for one in view.apis if everything or one.gone or one.unknown or not one.api]
    heading("Every API" if everything else "APIs with versions that are gone, or that the catalog does not know")
    rows: list[tuple[Content, ...]] = [
        (
            one.key,
            one.api or odd("unknown"),
            one.node or Cell("none", ("dim",)),
            one.catalog,
            Cell(one.gone, ("yellow",)),
            odd(one.unknown),
        )
        for one in lines
    ]
    grid(("key", "API", "served", "in the catalog", "gone", "unknown"), rows, "key")
    if not everything:
        remark(f"{len(view.apis) - len(lines)} more; --all shows them.", "  ")
    show_gaps(view.gaps)


def _node(one: NodeApis) -> tuple[Content, ...]:
    names = " or ".join(one.releases) if len(one.releases) <= 3 else f"{one.releases[0]} to {one.releases[-1]}"
    fit = f", but for {', '.join(one.differences[:_MOST_NAMED])}" if one.differences else ""
    if one.differences[_MOST_NAMED:]:
        fit += f" and {len(one.differences) - _MOST_NAMED} more"
    return one.node.node_id, one.node.address, f"Kafka {names}{fit}"


def _client(fit: ClientFit) -> None:
    dropped = [one for one in fit.unserved if one.why == "dropped"]
    missing = [one for one in fit.unserved if one.why != "dropped"]
    heading(f"Client {fit.client}")
    if not fit.unserved:
        prose("Finds a version of every API that it sends.", "  ")
    if dropped:
        prose("Too old for these; the node serves its versions no more:", "  ")
        grid(("API", "client has", "node serves"), [(one.api, one.client, one.node) for one in dropped], indent="    ")
    if missing:
        prose(f"Newer than the node, which lacks {', '.join(one.api for one in missing)}.", "  ")
