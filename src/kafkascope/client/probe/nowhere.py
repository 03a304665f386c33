"""A request in, the same about nobody out: ids of nodes, directories and features that it names are changed to such as
live nowhere. What a running cluster is made of is not what an example may be about."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID, uuid5

from kafkascope.client.probe.arguments import MISSING, MISSING_ID
from kafkascope.schema.layouts.layout import LayoutField

# Far above what anybody numbers nodes with; an id that is there after all is passed over.
FIRST_NODE, STRIDE = 2_000_000_000, 100_000
# Fields with node ids that the definitions do not mark with the entity type brokerId.
NODES = frozenset("controllerId nodeId preferredSuccessors voterId".split())
DIRECTORIES = frozenset(
    "candidateDirectoryId cordonedLogDirs id logDirs offlineLogDirs replicaDirectoryId voterDirectoryId".split()
)
# Directories below this number are Kafka's own words, as for none and for lost (KIP-858).
RESERVED_DIRECTORIES = 100
PATHS, FEATURES = "path", "feature"


def names_node(field: LayoutField) -> bool:
    return field.type == "int32" and (field.source.entity == "brokerId" or field.name in NODES)


def names_directory(field: LayoutField) -> bool:
    return field.type == "uuid" and field.name in DIRECTORIES


def nowhere(fields: tuple[LayoutField, ...], value: Mapping[str, Any], nodes: Collection[int]) -> dict[str, Any]:
    """`nodes` are those that the cluster has. Different ids stay different; below 0 they stand for nobody already."""
    changed = dict(value)
    for field in fields:
        content = value.get(field.name)
        if content is None:
            continue
        if field.type == "struct":
            inner = [nowhere(field.fields, one, nodes) for one in (content if field.array else [content])]
            changed[field.name] = inner if field.array else inner[0]
        elif names_node(field) or names_directory(field) or field.name in (PATHS, FEATURES):
            inner = [_elsewhere(one, field.name, nodes) for one in (content if field.array else [content])]
            changed[field.name] = inner if field.array else inner[0]
    return changed


def _elsewhere(one: Any, name: str, nodes: Collection[int]) -> Any:
    if isinstance(one, UUID):
        return one if one.int < RESERVED_DIRECTORIES else uuid5(MISSING_ID, str(one))
    if isinstance(one, str):
        return f"/{MISSING}" if name == PATHS else MISSING
    if one < 0:
        return one
    found = FIRST_NODE + one % STRIDE
    while found in nodes:
        found += STRIDE
    return found
