"""Turns the JSON of a request into the value that `encode` takes, with defaults, and makes templates to fill in.

Missing fields get Kafka's defaults, except for a few where the default makes a useless request.
"""

from typing import Any

from kafkascope import __version__
from kafkascope.codec.json_form import from_json
from kafkascope.codec.message import encode
from kafkascope.schema.layouts.layout import LayoutField, layout

_PATIENCE_MS = 10_000

# By API and place. None is sent if the version has null for "all"; otherwise Kafka's default stays.
DEFAULTS: dict[str, Any] = {
    # a name and a version that pass a broker's check (KIP-511)
    "ApiVersions.clientSoftwareName": "kafkascope",
    "ApiVersions.clientSoftwareVersion": __version__,
    # Kafka's default creates the requested topics
    "Metadata.allowAutoTopicCreation": False,
    "Metadata.topics": None,
    "DescribeLogDirs.topics": None,
    "DescribeDelegationToken.owners": None,
    "DescribeConfigs.resources.configurationKeys": None,
    "OffsetFetch.topics": None,
    "OffsetFetch.groups.topics": None,
    "DescribeShareGroupOffsets.groups.topics": None,
    "CreatePartitions.topics.assignments": None,
    "DescribeQuorum.topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}],
    # 0 means UNKNOWN, which a broker refuses; 1 means ANY
    "DescribeAcls.resourceTypeFilter": 1,
    "DescribeAcls.resourceNameFilter": None,
    "DescribeAcls.patternTypeFilter": 1,
    "DescribeAcls.principalFilter": None,
    "DescribeAcls.hostFilter": None,
    "DescribeAcls.operation": 1,
    "DescribeAcls.permissionType": 1,
    # 0 means a broker; -1 a consumer
    "ListOffsets.replicaId": -1,
    # -1 means the end of the log
    "ListOffsets.topics.partitions.timestamp": -1,
    "Fetch.topics.partitions.partitionMaxBytes": 1_048_576,
    "AddRaftVoter.timeoutMs": _PATIENCE_MS,
    "CreatePartitions.timeoutMs": _PATIENCE_MS,
    "DeleteRecords.timeoutMs": _PATIENCE_MS,
    "DeleteTopics.timeoutMs": _PATIENCE_MS,
    "ListOffsets.timeoutMs": _PATIENCE_MS,
    "Produce.timeoutMs": _PATIENCE_MS,
    "Produce.acks": -1,
}


def request_value(api: str, version: int, content: Any) -> dict[str, Any]:
    """`EncodeError` names the path of a mistake, with a suggestion for a misspelt field."""
    value = with_defaults(api, version, from_json(f"{api}Request", version, content))
    encode(f"{api}Request", version, value)
    return value


def with_defaults(api: str, version: int, value: dict[str, Any]) -> dict[str, Any]:
    """The value with missing fields from `DEFAULTS`, at every depth."""
    return _fill(layout(f"{api}Request", version).fields, value, api)


def _fill(fields: tuple[LayoutField, ...], value: dict[str, Any], place: str) -> dict[str, Any]:
    filled = dict(value)
    for field in fields:
        path = f"{place}.{field.name}"
        if field.name not in value:
            if path in DEFAULTS and (DEFAULTS[path] is not None or field.nullable):
                filled[field.name] = DEFAULTS[path]
        elif field.type == "struct":
            content = value[field.name]
            if isinstance(content, list):
                filled[field.name] = [
                    _fill(field.fields, item, path) if isinstance(item, dict) else item for item in content
                ]
            elif isinstance(content, dict):
                filled[field.name] = _fill(field.fields, content, path)
    return filled


def template(api: str, version: int) -> dict[str, Any]:
    """Every field of the version in Kafka's JSON form, including tagged ones; a list of structs has one element."""
    return _template(layout(f"{api}Request", version).fields, api)


def _template(fields: tuple[LayoutField, ...], place: str) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for field in fields:
        path = f"{place}.{field.name}"
        if field.type == "struct":
            default = DEFAULTS.get(path)
            inner = _template(field.fields, path)
            written[field.name] = default or ([inner] if field.array else inner)
        elif path in DEFAULTS and (DEFAULTS[path] is not None or field.nullable):
            written[field.name] = DEFAULTS[path]
        else:
            written[field.name] = _json_default(field)
    return written


def _json_default(field: LayoutField) -> Any:
    value = field.default_value()
    if value is None or field.array:
        return value
    match field.type:
        case "bytes" | "records":
            return ""
        case "uuid":
            return "A" * 22
    return value
