"""Resources in, their settings out, each with where its value comes from; sensitive ones stay hidden."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.asking import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    NO_TIME,
    TOPIC_RESOURCE,
    fairly,
    lacking,
)
from kafkascope.client.describe.gaps import FAILURES, UNASKED, Gap, first, gap, no_answer
from kafkascope.client.describe.values import Setting
from kafkascope.client.targets import AnyBroker, Node, Target
from kafkascope.errors import UsageError

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

KINDS = {
    "topic": TOPIC_RESOURCE,
    "broker": BROKER_RESOURCE,
    "broker-logger": BROKER_LOGGER_RESOURCE,
    "client-metrics": CLIENT_METRICS_RESOURCE,
    "group": GROUP_RESOURCE,
}
# ConfigSource of DescribeConfigsResponse; 5 is what Kafka has without anybody's doing
SOURCES = {
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
    """`name` is empty for what holds for all brokers."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Configs:
    """The settings of one resource by name, or why they are not there."""

    kind: str
    name: str
    settings: tuple[Setting, ...]
    gaps: tuple[Gap, ...]


def parse_resource(text: str) -> Resource:
    """`topic:orders`, `broker:1`, `broker:` for all brokers, `group:payments`."""
    kind, colon, name = text.partition(":")
    if not colon or kind not in KINDS or (not name and kind != "broker"):
        known = ", ".join(f"{one}:NAME" for one in KINDS)
        raise UsageError(f"'{text}' names no resource; say one of {known}, or broker: for all brokers")
    if kind.startswith("broker") and name and not name.isascii():
        raise UsageError(f"'{name}' is no node id")
    if kind.startswith("broker") and name and not name.isdigit():
        raise UsageError(f"'{name}' is no node id; say {kind}:1")
    return Resource(kind, name)


def settings_of(configs: Iterable[Mapping[str, Any]]) -> tuple[Setting, ...]:
    """Rows of a DescribeConfigs answer, by name."""
    found = (
        Setting(
            one["name"],
            None if one["isSensitive"] else one["value"],
            _source(one),
            one["isSensitive"],
            one["readOnly"],
        )
        for one in configs
    )
    return tuple(sorted(found, key=lambda one: one.name))


def _source(config: Mapping[str, Any]) -> str:
    if "configSource" not in config:  # version 0
        return DEFAULT if config.get("isDefault") else "unknown"
    number = config["configSource"]
    return SOURCES.get(number, f"source {number}")


def configs_of(value: Mapping[str, Any], resource: Resource) -> Configs:
    result = first(value["results"], "DescribeConfigs")
    if result["errorCode"]:
        lack = gap(_what(resource), "DescribeConfigs", result["errorCode"], resource.name, result["errorMessage"])
        return Configs(resource.kind, resource.name, (), (lack,))
    return Configs(resource.kind, resource.name, settings_of(result["configs"]), ())


def _what(resource: Resource) -> str:
    return f"configs of {resource.kind} {resource.name}"


def target_of_resource(resource: Resource) -> Target:
    """A broker tells its own settings only."""
    return Node(int(resource.name)) if resource.kind.startswith("broker") and resource.name else AnyBroker()


async def describe_configs(cluster: "Cluster", resources: Iterable[Resource]) -> tuple[Configs, ...]:
    """Without resources: every broker. One whose broker does not answer is a gap, as long as another does."""
    wanted = list(resources) or [Resource("broker", str(one.node_id)) for one in await cluster.brokers()]
    lack = await lacking(cluster, "DescribeConfigs", "configs")
    if lack is not None:
        return tuple(Configs(one.kind, one.name, (), (lack,)) for one in wanted)

    answers = await fairly(cluster, wanted, lambda resource: _ask(cluster, resource))
    silent = [one for one in answers if isinstance(one, FAILURES)]
    if silent and not any(isinstance(one, Configs) for one in answers):
        raise silent[0]
    return tuple(
        said if isinstance(said, Configs) else Configs(one.kind, one.name, (), (_untold(one, said),))
        for one, said in zip(wanted, answers, strict=True)
    )


def _untold(resource: Resource, why: Exception | None) -> Gap:
    if why is None:
        return Gap(_what(resource), "DescribeConfigs", UNASKED, detail=NO_TIME)
    return no_answer(_what(resource), "DescribeConfigs", why)


async def _ask(cluster: "Cluster", resource: Resource) -> Configs:
    asked = {"resourceType": KINDS[resource.kind], "resourceName": resource.name, "configurationKeys": None}
    answer = await cluster.call("DescribeConfigs", {"resources": [asked]}, to=target_of_resource(resource))
    return configs_of(answer.value, resource)


async def group_settings(cluster: "Cluster", group: str, prefix: str) -> tuple[tuple[Setting, ...], list[Gap]]:
    """The settings of a group whose names begin with `share.` or `streams.`; brokers have them since 4.0."""
    try:
        with cluster.part():
            (found,) = await describe_configs(cluster, [Resource("group", group)])
    except FAILURES as error:
        return (), [no_answer(f"settings of group {group}", "DescribeConfigs", error)]
    if found.gaps:
        return (), [
            Gap(f"settings of group {group}", one.api, one.error, one.code, one.needs, one.detail) for one in found.gaps
        ]
    return tuple(one for one in found.settings if one.name.startswith(prefix)), []
