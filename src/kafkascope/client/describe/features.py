"""Describes the finalized features of a cluster and the levels that each node supports."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import Gap, merge_gaps
from kafkascope.client.describe.values import NodeAddress

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

# The first level of metadata.version of each release (MetadataVersion).
_METADATA_LEVELS = {
    1: "3.0-IV1",
    2: "3.1-IV0",
    3: "3.2-IV0",
    4: "3.3-IV0",
    5: "3.3-IV1",
    6: "3.3-IV2",
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
    31: "4.4-IV0",
}


@dataclass(frozen=True, slots=True)
class SupportedLevels:
    """The levels of a feature that one node supports."""

    node: NodeAddress
    min_level: int
    max_level: int


@dataclass(frozen=True, slots=True)
class Feature:
    """`level` is the finalized one, None if the feature is off (level 0). `release` is its name for metadata.version,
    `highest` the highest level that all nodes support."""

    name: str
    level: int | None
    release: str | None
    highest: int
    supported: tuple[SupportedLevels, ...]


@dataclass(frozen=True, slots=True)
class FeaturesView:
    """`epoch` of the finalized features; None if the brokers report none (before 2.7)."""

    epoch: int | None
    features: tuple[Feature, ...]
    gaps: tuple[Gap, ...]


def features_of(responses: Mapping[NodeAddress, Mapping[str, Any]], gaps: Iterable[Gap] = ()) -> FeaturesView:
    """From ApiVersions responses by node. Finalized levels are those of the node with the latest epoch."""
    newest = max(responses.values(), key=lambda value: value.get("finalizedFeaturesEpoch", -1), default={})
    epoch = newest.get("finalizedFeaturesEpoch", -1)
    levels = {feature["name"]: feature["maxVersionLevel"] for feature in newest.get("finalizedFeatures", ())}
    supported: dict[str, list[SupportedLevels]] = {}
    for node, value in sorted(responses.items(), key=lambda item: item[0].node_id):
        for feature in value.get("supportedFeatures", ()):
            supported.setdefault(feature["name"], []).append(
                SupportedLevels(node, feature["minVersion"], feature["maxVersion"])
            )
    names = sorted({*levels, *supported}, key=lambda name: (name != "metadata.version", name))
    return FeaturesView(
        None if epoch < 0 else epoch,
        tuple(_feature(name, levels.get(name), supported.get(name, [])) for name in names),
        merge_gaps(gaps),
    )


def _feature(name: str, level: int | None, supported: list[SupportedLevels]) -> Feature:
    highest = min((levels.max_level for levels in supported), default=0)
    release = None
    if name == "metadata.version" and level is not None:
        release = _METADATA_LEVELS.get(level)
    return Feature(name, level or None, release, highest, tuple(supported))


async def describe_features(cluster: "Cluster") -> FeaturesView:
    responses, gaps = await versions_by_node(cluster)
    return features_of(responses, gaps)


async def versions_by_node(cluster: "Cluster") -> tuple[dict[NodeAddress, Mapping[str, Any]], list[Gap]]:
    """The whole ApiVersions response of each node."""
    from kafkascope import __version__
    from kafkascope.client.describe.calls import map_nodes
    from kafkascope.client.targets import Node

    async def ask(node: NodeAddress) -> Mapping[str, Any]:
        request = {"clientSoftwareName": "kafkascope", "clientSoftwareVersion": __version__}
        return (await cluster.call("ApiVersions", request, to=Node(node.node_id))).value

    return await map_nodes(cluster, "versions", "ApiVersions", ask)
