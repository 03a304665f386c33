"""Compares the API versions that nodes serve with the catalog: the closest releases, and the clients they no longer
serve."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkascope.client.describe.gaps import Gap, merge_gaps
from kafkascope.client.describe.values import NodeAddress
from kafkascope.errors import UsageError
from kafkascope.schema.api_facts import api_facts
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.model import Message
from kafkascope.schema.releases import check_release, releases
from kafkascope.schema.versions import Versions, format_versions

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

_Ranges = Mapping[int, tuple[int, int]]

# A 4.x broker advertises Produce from version 0 but accepts 3 and later (KAFKA-18659).
_PRODUCE, _FIRST_PRODUCE = 0, 3
_FETCH, _FIRST_FETCH = 1, 4  # the mark of such a broker (KIP-896)
# Served if a plugin of the broker takes metrics of clients (KIP-714): they don't depend on the release.
_TELEMETRY = frozenset((71, 72))
# Clients don't need APIs that only nodes of a cluster send to each other.
_CLIENTS = ("client", "consumer", "producer", "Streams", "Connect")


@dataclass(frozen=True, slots=True)
class ApiLine:
    """`node` is the versions it serves, `catalog` every version that any release had, `gone` those it no longer serves,
    `unknown` those that the catalog doesn't have. Versions are written as `0-3, 5`."""

    key: int
    api: str | None
    node: str
    catalog: str
    gone: str
    unknown: str


@dataclass(frozen=True, slots=True)
class NodeApis:
    """`releases` are those that fit best, `differences` the APIs in which they differ; none means a perfect fit."""

    node: NodeAddress
    releases: tuple[str, ...]
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unserved:
    """An API that a client sends and that the node serves in none of the client's versions."""

    api: str
    client: str
    node: str | None  # None if the node doesn't know the API
    why: str  # `dropped`: the client is too old for it; `missing`: the node is too old, or doesn't serve it


@dataclass(frozen=True, slots=True)
class ClientFit:
    """How a `release` of Java's clients (kafka-clients) fits the node."""

    client: str
    release: str
    unserved: tuple[Unserved, ...]


@dataclass(frozen=True, slots=True)
class ApisView:
    """`oldest_client` is the first release of Java's clients whose versions the node still serves."""

    nodes: tuple[NodeApis, ...]
    apis: tuple[ApiLine, ...]
    oldest_client: str | None
    clients: tuple[ClientFit, ...]
    gaps: tuple[Gap, ...]


def _sent_by_clients(api: str) -> bool:
    """By the main sender, which the catalog names first: Admin can abort transactions, but their markers aren't a
    client's API."""
    sends = api_facts(api).sends
    return not sends or any(word in sends[0] for word in _CLIENTS)


def answered_ranges(ranges: _Ranges) -> dict[int, tuple[int, int]]:
    """The versions that a node serves; for Produce, fewer than it advertises since 4.0."""
    answered = dict(ranges)
    modern = answered.get(_FETCH, (0, 0))[0] >= _FIRST_FETCH
    if _PRODUCE in answered and modern and answered[_PRODUCE][0] < _FIRST_PRODUCE <= answered[_PRODUCE][1]:
        answered[_PRODUCE] = (_FIRST_PRODUCE, answered[_PRODUCE][1])
    return answered


def expected_ranges(release: str, listener: str = "broker") -> dict[int, tuple[int, int]]:
    """The versions that a node of this release advertises: stable versions of the APIs on that kind of listener."""
    ranges = {}
    for key, api in apis().items():
        request = message(f"{api}Request")
        versions = request.versions_in(release)
        listeners = request.listeners_in(release)
        if not versions or (listeners and listener not in listeners):
            continue
        span = _stable_range(request, versions, release)
        if span is not None:
            ranges[key] = span
    if release.startswith("4.") and _PRODUCE in ranges:
        ranges[_PRODUCE] = (0, ranges[_PRODUCE][1])
    return ranges


def _stable_range(request: Message, versions: Versions, release: str) -> tuple[int, int] | None:
    """The first and last version of this release without unstable ones; None if it has none."""
    first, last = versions.ranges[0][0], versions.ranges[-1][1]
    last = min([last, *(number - 1 for span, number in request.unstable if release in span)])
    return (first, last) if first <= last else None


def closest_releases(ranges: _Ranges, listener: str = "broker") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The releases whose ranges differ in the fewest APIs, and the APIs in which the last of them differs."""
    scores: dict[str, list[int]] = {}
    for release in releases():
        release_ranges = expected_ranges(release.name, listener)
        keys = {*release_ranges, *ranges} - _TELEMETRY
        scores[release.name] = sorted(
            key
            for key in keys
            if release_ranges.get(key) != ranges.get(key) and not _in_a_patch(key, ranges.get(key), release.name)
        )
    least = min(len(keys) for keys in scores.values())
    best = [name for name, keys in scores.items() if len(keys) == least]
    return tuple(best), tuple(apis().get(key, str(key)) for key in scores[best[-1]])


def _in_a_patch(key: int, served: tuple[int, int] | None, release: str) -> bool:
    """4.0.0 serves JoinGroup 2-9, where later patches of 4.0 serve 0-9 (KAFKA-19444)."""
    patches = message(f"{apis()[key]}Request").patches if key in apis() else ()
    return any(
        served == (versions.ranges[0][0], versions.ranges[-1][1])
        for patch, versions in patches
        if check_release(patch) == release
    )


def api_line(key: int, served: tuple[int, int] | None) -> ApiLine:
    api = apis().get(key)
    catalog = message(f"{api}Request").all_versions() if api else []
    node = set(range(served[0], served[1] + 1)) if served else set()
    return ApiLine(
        key,
        api,
        format_versions(sorted(node)),
        format_versions(catalog),
        format_versions([version for version in catalog if served and version < served[0]]),
        format_versions(sorted(node - set(catalog))),
    )


def parse_client(text: str) -> tuple[str, str]:
    """Parses `java 2.8` to its name and release."""
    name, _, release = text.strip().partition(" ")
    if name[:1].isdigit() and not release:
        name, release = "java", name
    if name.lower() not in ("java", "kafka-clients", "apache-kafka-java"):
        raise UsageError(f"the catalog doesn't know the versions of '{name}'; write java RELEASE, as in java 2.8")
    if not release:
        raise UsageError(f"the release of '{name}' is missing; write java RELEASE, as in java 2.8")
    return f"java {release.strip()}", check_release(release.strip())


def client_fit(client: str, release: str, ranges: _Ranges) -> ClientFit:
    """The client's APIs that have no version in common with the node."""
    served = answered_ranges(ranges)
    unserved = []
    for key, api in apis().items():
        request = message(f"{api}Request")
        versions = request.versions_in(release)
        speaks = _stable_range(request, versions, release) if versions and _sent_by_clients(api) else None
        node_range = served.get(key)
        if (
            speaks is None
            or key in _TELEMETRY
            or (node_range is not None and speaks[0] <= node_range[1] and node_range[0] <= speaks[1])
        ):
            continue
        dropped = node_range is not None and speaks[1] < node_range[0]
        unserved.append(
            Unserved(api, _span(speaks), node_range and _span(node_range), "dropped" if dropped else "missing")
        )
    return ClientFit(client, release, tuple(unserved))


def _span(versions: tuple[int, int]) -> str:
    return format_versions(list(range(versions[0], versions[1] + 1)))


def oldest_client(ranges: _Ranges) -> str | None:
    """The first release from which on the node serves all APIs of every release."""
    oldest: str | None = None
    for release in reversed(releases()):
        if any(api.why == "dropped" for api in client_fit("java", release.name, ranges).unserved):
            return oldest
        oldest = release.name
    return oldest


def apis_of(
    by_node: Mapping[NodeAddress, _Ranges],
    clients: Iterable[tuple[str, str]] = (),
    gaps: Iterable[Gap] = (),
    listener: str = "broker",
) -> ApisView:
    """Lines are for the first node; `nodes` shows which nodes differ."""
    first = next(iter(by_node.values()), {})
    serves = answered_ranges(first)
    return ApisView(
        tuple(NodeApis(node, *closest_releases(ranges, listener)) for node, ranges in by_node.items()),
        tuple(api_line(key, serves.get(key)) for key in sorted({*serves, *apis()})),
        oldest_client(first) if listener == "broker" else None,
        tuple(client_fit(client, release, first) for client, release in clients),
        merge_gaps(gaps),
    )


async def describe_apis(cluster: "Cluster", clients: Iterable[tuple[str, str]] = ()) -> ApisView:
    from kafkascope.client.describe.features import versions_by_node

    responses, gaps = await versions_by_node(cluster)
    by_node = {
        node: {row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in value["apiKeys"]}
        for node, value in responses.items()
    }
    return apis_of(by_node, clients, gaps, "controller" if cluster.controllers else "broker")
