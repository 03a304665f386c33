"""Replaces the ids of nodes, directories and features in a request with ids that don't exist, because an example must
not touch anything in a running cluster."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID, uuid5

from kafkascope.client.probe.arguments import MISSING_ID, MISSING_NAME
from kafkascope.schema.layouts.layout import LayoutField

# Far above usual node ids; an id that exists after all is skipped.
FIRST_NODE, STRIDE = 2_000_000_000, 100_000
# Fields with node ids that the definitions don't mark with the entity type brokerId.
_NODES = frozenset("controllerId nodeId preferredSuccessors voterId".split())
_DIRECTORIES = frozenset(
    "candidateDirectoryId cordonedLogDirs id logDirs offlineLogDirs replicaDirectoryId voterDirectoryId".split()
)
# Directories below this number have a special meaning, such as none or lost (KIP-858).
_RESERVED_DIRECTORIES = 100
_PATHS, _FEATURES = "path", "feature"


def names_node(field: LayoutField) -> bool:
    return field.type == "int32" and (field.source.entity == "brokerId" or field.name in _NODES)


def names_directory(field: LayoutField) -> bool:
    return field.type == "uuid" and field.name in _DIRECTORIES


def with_missing_ids(
    fields: tuple[LayoutField, ...], value: Mapping[str, Any], nodes: Collection[int]
) -> dict[str, Any]:
    """`nodes` are the cluster's. Different ids stay different; negative ids already mean no node."""
    changed = dict(value)
    for field in fields:
        content = value.get(field.name)
        if content is None:
            continue
        if field.type == "struct":
            inner = [with_missing_ids(field.fields, item, nodes) for item in (content if field.array else [content])]
            changed[field.name] = inner if field.array else inner[0]
        elif names_node(field) or names_directory(field) or field.name in (_PATHS, _FEATURES):
            inner = [_missing_id(item, field.name, nodes) for item in (content if field.array else [content])]
            changed[field.name] = inner if field.array else inner[0]
    return changed


def _missing_id(value: Any, name: str, nodes: Collection[int]) -> Any:
    if isinstance(value, UUID):
        return value if value.int < _RESERVED_DIRECTORIES else uuid5(MISSING_ID, str(value))
    if isinstance(value, str):
        return f"/{MISSING_NAME}" if name == _PATHS else MISSING_NAME
    if value < 0:
        return value
    node = FIRST_NODE + value % STRIDE
    while node in nodes:
        node += STRIDE
    return node
