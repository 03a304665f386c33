"""Describes the configuration of topics, brokers and other resources, with the source of each value. Sensitive values
stay hidden."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.calls import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    NO_TIME,
    TOPIC_RESOURCE,
    map_fairly,
    missing_api_gap,
)
from kafkascope.client.describe.gaps import FAILURES, UNASKED, Gap, error_gap, failure_gap, only_row
from kafkascope.client.describe.values import Setting
from kafkascope.client.targets import AnyBroker, Node, Target
from kafkascope.errors import UsageError

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

_KINDS = {
    "topic": TOPIC_RESOURCE,
    "broker": BROKER_RESOURCE,
    "broker-logger": BROKER_LOGGER_RESOURCE,
    "client-metrics": CLIENT_METRICS_RESOURCE,
    "group": GROUP_RESOURCE,
}
# ConfigSource of DescribeConfigsResponse; 5 is Kafka's own default
_SOURCES = {
    0: "unknown",
    1: "topic",
    2: "broker, dynamic",
    3: "all brokers, dynamic",
    4: "server.properties",
    5: "default",
    6: "broker-logger",
    7: "client-metrics",
    8: "group",
}
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Resource:
    """`name` is empty for the cluster-wide defaults of brokers."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ResourceConfigs:
    """The settings of one resource by name, or why they are missing."""

    kind: str
    name: str
    settings: tuple[Setting, ...]
    gaps: tuple[Gap, ...]


def parse_resource(text: str) -> Resource:
    """`topic:orders`, `broker:1`, `broker:` for all brokers, `group:payments`."""
    kind, colon, name = text.partition(":")
    if not colon or kind not in _KINDS or (not name and kind != "broker"):
        examples = ", ".join(f"{name}:NAME" for name in _KINDS)
        raise UsageError(f"'{text}' isn't a resource; write one of {examples}, or broker: for all brokers")
    if kind.startswith("broker") and name and not name.isascii():
        raise UsageError(f"'{name}' isn't a node id")
    if kind.startswith("broker") and name and not name.isdigit():
        raise UsageError(f"'{name}' isn't a node id; write {kind}:1")
    return Resource(kind, name)


def settings_of(configs: Iterable[Mapping[str, Any]]) -> tuple[Setting, ...]:
    """Rows of a DescribeConfigs response, by name."""
    settings = (
        Setting(
            config["name"],
            None if config["isSensitive"] else config["value"],
            _source(config),
            config["isSensitive"],
            config["readOnly"],
        )
        for config in configs
    )
    return tuple(sorted(settings, key=lambda setting: setting.name))


def _source(config: Mapping[str, Any]) -> str:
    if "configSource" not in config:  # version 0
        return DEFAULT if config.get("isDefault") else "unknown"
    number = config["configSource"]
    return _SOURCES.get(number, f"source {number}")


def configs_of(value: Mapping[str, Any], resource: Resource) -> ResourceConfigs:
    result = only_row(value["results"], "DescribeConfigs")
    if result["errorCode"]:
        gap = error_gap(_label(resource), "DescribeConfigs", result["errorCode"], resource.name, result["errorMessage"])
        return ResourceConfigs(resource.kind, resource.name, (), (gap,))
    return ResourceConfigs(resource.kind, resource.name, settings_of(result["configs"]), ())


def _label(resource: Resource) -> str:
    return f"configs of {resource.kind} {resource.name}"


def _target(resource: Resource) -> Target:
    """A broker only reports its own settings."""
    return Node(int(resource.name)) if resource.kind.startswith("broker") and resource.name else AnyBroker()


async def describe_configs(cluster: "Cluster", resources: Iterable[Resource]) -> tuple[ResourceConfigs, ...]:
    """Without resources: every broker. A broker that doesn't respond is a gap, as long as another one responds."""
    named = list(resources) or [Resource("broker", str(broker.node_id)) for broker in await cluster.brokers()]
    gap = await missing_api_gap(cluster, "DescribeConfigs", "configs")
    if gap is not None:
        return tuple(ResourceConfigs(resource.kind, resource.name, (), (gap,)) for resource in named)

    results = await map_fairly(cluster, named, lambda resource: _fetch_configs(cluster, resource))
    silent = [result for result in results if isinstance(result, FAILURES)]
    if silent and not any(isinstance(result, ResourceConfigs) for result in results):
        raise silent[0]
    return tuple(
        result
        if isinstance(result, ResourceConfigs)
        else ResourceConfigs(resource.kind, resource.name, (), (_failure(resource, result),))
        for resource, result in zip(named, results, strict=True)
    )


def _failure(resource: Resource, why: Exception | None) -> Gap:
    if why is None:
        return Gap(_label(resource), "DescribeConfigs", UNASKED, detail=NO_TIME)
    return failure_gap(_label(resource), "DescribeConfigs", why)


async def _fetch_configs(cluster: "Cluster", resource: Resource) -> ResourceConfigs:
    request = {"resourceType": _KINDS[resource.kind], "resourceName": resource.name, "configurationKeys": None}
    response = await cluster.call("DescribeConfigs", {"resources": [request]}, to=_target(resource))
    return configs_of(response.value, resource)


async def group_settings(cluster: "Cluster", group: str, prefix: str) -> tuple[tuple[Setting, ...], list[Gap]]:
    """Settings of a group whose names begin with `share.` or `streams.`; brokers have them since 4.0."""
    try:
        with cluster.part():
            (configs,) = await describe_configs(cluster, [Resource("group", group)])
    except FAILURES as error:
        return (), [failure_gap(f"settings of group {group}", "DescribeConfigs", error)]
    if configs.gaps:
        return (), [
            Gap(f"settings of group {group}", gap.api, gap.error, gap.code, gap.needs, gap.detail)
            for gap in configs.gaps
        ]
    return tuple(setting for setting in configs.settings if setting.name.startswith(prefix)), []
