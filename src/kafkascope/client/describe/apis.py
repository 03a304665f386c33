"""Version ranges of nodes in, `Apis` out: beside the catalog, which release it looks like, whom it does not serve."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkascope.client.describe.gaps import Gap, merged
from kafkascope.client.describe.values import Node
from kafkascope.errors import UsageError
from kafkascope.schema.api_facts import api_facts
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.model import Message
from kafkascope.schema.releases import check_release, releases
from kafkascope.schema.versions import Versions, format_versions

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

Ranges = Mapping[int, tuple[int, int]]

# A 4.x broker says that it has Produce from version 0 and answers from 3 on (KAFKA-18659).
PRODUCE, FIRST_PRODUCE = 0, 3
FETCH, FIRST_FETCH = 1, 4  # by which such a broker is known (KIP-896)
# Served where a plugin of the broker takes metrics of clients (KIP-714): they tell nothing of a release.
TELEMETRY = frozenset((71, 72))
# What none but nodes of a cluster send to one another is no client's business.
CLIENTS = ("client", "consumer", "producer", "Streams", "Connect")


@dataclass(frozen=True, slots=True)
class ApiLine:
    """`node` is what it answers, `catalog` every version that any release had, `gone` what it serves no more, `unknown`
    what the catalog does not have. Versions as `0-3, 5`."""

    key: int
    api: str | None
    node: str
    catalog: str
    gone: str
    unknown: str


@dataclass(frozen=True, slots=True)
class NodeApis:
    """`releases` are those that fit best, `differences` the APIs that they have otherwise; none is a perfect fit."""

    node: Node
    releases: tuple[str, ...]
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unserved:
    """An API that a client sends and the node answers in none of its versions."""

    api: str
    client: str
    node: str | None  # None where the node does not know the API
    why: str  # `dropped`: the client is too old for it; `missing`: the node is too old, or does not do it


@dataclass(frozen=True, slots=True)
class ClientFit:
    """`release` of Java's clients (kafka-clients), beside the node."""

    client: str
    release: str
    unserved: tuple[Unserved, ...]


@dataclass(frozen=True, slots=True)
class Apis:
    """`oldest_client` is the first release of Java's clients of which the node has dropped nothing."""

    nodes: tuple[NodeApis, ...]
    apis: tuple[ApiLine, ...]
    oldest_client: str | None
    clients: tuple[ClientFit, ...]
    gaps: tuple[Gap, ...]


def sent_by_clients(api: str) -> bool:
    """The catalog names the main sender first: an Admin that can mend transactions does not make their markers a
    client's."""
    sends = api_facts(api).sends
    return not sends or any(word in sends[0] for word in CLIENTS)


def answered(ranges: Ranges) -> dict[int, tuple[int, int]]:
    """What a node answers, which is less than what it says of Produce since 4.0."""
    found = dict(ranges)
    modern = found.get(FETCH, (0, 0))[0] >= FIRST_FETCH
    if PRODUCE in found and modern and found[PRODUCE][0] < FIRST_PRODUCE <= found[PRODUCE][1]:
        found[PRODUCE] = (FIRST_PRODUCE, found[PRODUCE][1])
    return found


def expected(release: str, listener: str = "broker") -> dict[int, tuple[int, int]]:
    """What a node of this release says it serves: stable versions of the APIs on that kind of listener."""
    found = {}
    for key, api in apis().items():
        one = message(f"{api}Request")
        versions = one.versions_in(release)
        listeners = one.listeners_in(release)
        if not versions or (listeners and listener not in listeners):
            continue
        span = stable(one, versions, release)
        if span is not None:
            found[key] = span
    if release.startswith("4.") and PRODUCE in found:
        found[PRODUCE] = (0, found[PRODUCE][1])
    return found


def stable(one: Message, versions: Versions, release: str) -> tuple[int, int] | None:
    """First and last version that this release has without being told to try unstable ones; None where it has none."""
    first, last = versions.ranges[0][0], versions.ranges[-1][1]
    last = min([last, *(number - 1 for span, number in one.unstable if release in span)])
    return (first, last) if first <= last else None


def release_of(ranges: Ranges, listener: str = "broker") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The releases whose ranges differ in the fewest APIs, and in which the last of them does."""
    scores: dict[str, list[int]] = {}
    for release in releases():
        wanted = expected(release.name, listener)
        keys = {*wanted, *ranges} - TELEMETRY
        scores[release.name] = sorted(key for key in keys if wanted.get(key) != ranges.get(key))
    least = min(len(keys) for keys in scores.values())
    best = [name for name, keys in scores.items() if len(keys) == least]
    return tuple(best), tuple(apis().get(key, str(key)) for key in scores[best[-1]])


def line_of(key: int, served: tuple[int, int] | None) -> ApiLine:
    api = apis().get(key)
    known = message(f"{api}Request").all_versions() if api else []
    has = set(range(served[0], served[1] + 1)) if served else set()
    return ApiLine(
        key,
        api,
        format_versions(sorted(has)),
        format_versions(known),
        format_versions([one for one in known if served and one < served[0]]),
        format_versions(sorted(has - set(known))),
    )


def parse_client(text: str) -> tuple[str, str]:
    """`java 2.8` in, its name and release out."""
    name, _, release = text.strip().partition(" ")
    if name[:1].isdigit() and not release:
        name, release = "java", name
    if name.lower() not in ("java", "kafka-clients", "apache-kafka-java"):
        raise UsageError(f"the catalog does not know which versions '{name}' speaks; say java RELEASE, as java 2.8")
    if not release:
        raise UsageError(f"which release of '{name}'? say java RELEASE, as java 2.8")
    return f"java {release.strip()}", check_release(release.strip())


def fit_of(client: str, release: str, ranges: Ranges) -> ClientFit:
    """Which of the client's APIs have no version in common with the node."""
    served = answered(ranges)
    found = []
    for key, api in apis().items():
        one = message(f"{api}Request")
        versions = one.versions_in(release)
        speaks = stable(one, versions, release) if versions and sent_by_clients(api) else None
        have = served.get(key)
        if speaks is None or key in TELEMETRY or (have is not None and speaks[0] <= have[1] and have[0] <= speaks[1]):
            continue
        dropped = have is not None and speaks[1] < have[0]
        found.append(Unserved(api, _span(speaks), have and _span(have), "dropped" if dropped else "missing"))
    return ClientFit(client, release, tuple(found))


def _span(versions: tuple[int, int]) -> str:
    return format_versions(list(range(versions[0], versions[1] + 1)))


def oldest_client(ranges: Ranges) -> str | None:
    """The first release from which on no later one has an API dropped."""
    oldest: str | None = None
    for release in reversed(releases()):
        if any(one.why == "dropped" for one in fit_of("java", release.name, ranges).unserved):
            return oldest
        oldest = release.name
    return oldest


def apis_of(
    by_node: Mapping[Node, Ranges],
    clients: Iterable[tuple[str, str]] = (),
    gaps: Iterable[Gap] = (),
    listener: str = "broker",
) -> Apis:
    """Lines are those of the first node; nodes that differ show in `nodes`."""
    first = next(iter(by_node.values()), {})
    serves = answered(first)
    return Apis(
        tuple(NodeApis(node, *release_of(ranges, listener)) for node, ranges in by_node.items()),
        tuple(line_of(key, serves.get(key)) for key in sorted({*serves, *apis()})),
        oldest_client(first) if listener == "broker" else None,
        tuple(fit_of(client, release, first) for client, release in clients),
        merged(gaps),
    )


async def describe_apis(cluster: "Cluster", clients: Iterable[tuple[str, str]] = ()) -> Apis:
    from kafkascope.client.describe.features import versions_by_node

    answers, gaps = await versions_by_node(cluster)
    by_node = {
        node: {one["apiKey"]: (one["minVersion"], one["maxVersion"]) for one in value["apiKeys"]}
        for node, value in answers.items()
    }
    return apis_of(by_node, clients, gaps, "controller" if cluster.controllers else "broker")
