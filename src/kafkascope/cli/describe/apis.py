"""Prints an `ApisView`: the release that nodes look like, each API compared with the catalog, clients that are too
old."""

from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.tables import Cell, Content, grid, odd
from kafkascope.cli.terminal import heading, prose, remark, title
from kafkascope.client.describe.apis import ApisView, ClientFit, NodeApis
from kafkascope.formatting import first_names

_MOST_NAMED = 5


def show_apis(view: ApisView, everything: bool) -> None:
    title("APIs", f"{sum(bool(api.node) for api in view.apis)} served, {len(view.apis)} in the catalog")
    print()
    grid(("node", "address", "looks like"), [_node(node) for node in view.nodes], "node")
    if view.oldest_client:
        print()
        prose(f"Java clients from {view.oldest_client} on share a version of every API with it.", "  ")
    for fit in view.clients:
        _client(fit)
    lines = [api for api in view.apis if everything or api.gone or api.unknown or not api.api]
    heading("Every API" if everything else "APIs with versions that are gone, or that the catalog doesn't know")
    rows: list[tuple[Content, ...]] = [
        (
            api.key,
            api.api or odd("unknown"),
            api.node or Cell("none", ("dim",)),
            api.catalog,
            Cell(api.gone, ("yellow",)),
            odd(api.unknown),
        )
        for api in lines
    ]
    grid(("key", "API", "served", "in the catalog", "gone", "unknown"), rows, "key")
    if not everything:
        remark(f"{len(view.apis) - len(lines)} more; --all shows them.", "  ")
    show_gaps(view.gaps)


def _node(node: NodeApis) -> tuple[Content, ...]:
    names = " or ".join(node.releases) if len(node.releases) <= 3 else f"{node.releases[0]} to {node.releases[-1]}"
    fit = f", but for {first_names(node.differences, _MOST_NAMED)}" if node.differences else ""
    return node.node.node_id, node.node.address, f"Kafka {names}{fit}"


def _client(fit: ClientFit) -> None:
    dropped = [unserved for unserved in fit.unserved if unserved.why == "dropped"]
    missing = [unserved for unserved in fit.unserved if unserved.why != "dropped"]
    heading(f"Client {fit.client}")
    if not fit.unserved:
        prose("Shares a version of every API that it sends.", "  ")
    if dropped:
        prose("Too old for these APIs; the node no longer serves its versions:", "  ")
        grid(("API", "client has", "node serves"), [(api.api, api.client, api.node) for api in dropped], indent="    ")
    if missing:
        prose(f"Newer than the node, which lacks {', '.join(api.api for api in missing)}.", "  ")
