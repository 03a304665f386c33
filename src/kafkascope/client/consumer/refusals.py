"""Says in one line why a cluster refuses a share consumer, and what to change: a permission, a feature, the group."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkascope.client.consumer.options import ConsumerOptions
from kafkascope.client.share.values import Problem, SharePartition
from kafkascope.errors import NotFoundError, RefusedError
from kafkascope.schema.errors.error_codes import error_name
from kafkascope.schema.names import clip

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

_HEARTBEAT_KEY, _FETCH_KEY = 76, 78
_SWITCH_ON = "kafka-features.sh --bootstrap-server HOST:PORT upgrade --feature share.version=1"
_TOPIC_AUTHORIZATION_FAILED, _GROUP_AUTHORIZATION_FAILED = 29, 30
_UNSUPPORTED_VERSION, _GROUP_ID_NOT_FOUND, _GROUP_MAX_SIZE_REACHED = 35, 69, 81


def share_groups_missing(versions: Mapping[int, tuple[int, int]], cluster: "Cluster") -> NotFoundError | None:
    """If these brokers don't serve share groups. Version 0 was an early access of 4.0, without compatibility."""
    if all(versions.get(key, (0, 0))[1] >= 1 for key in (_HEARTBEAT_KEY, _FETCH_KEY)):
        return None
    place = cluster.settings.bootstrap[0]
    if cluster.controllers:
        return NotFoundError(f"{place} is a controller; share groups are on brokers: give the address of one")
    return NotFoundError(
        f"{place} has no share groups: they need Kafka 4.1 or newer, and the feature share.version ({_SWITCH_ON})"
    )


def problem_error(
    problem: Problem, options: ConsumerOptions, cluster: "Cluster", topic_of: Callable[[SharePartition], str]
) -> RefusedError:
    name = f"{error_name(problem.code)} ({problem.code})"
    group = clip(options.group)
    if problem.code == _UNSUPPORTED_VERSION:
        text = f"share groups are switched off in this cluster: {name}; switch them on with {_SWITCH_ON}"
    elif problem.code == _GROUP_AUTHORIZATION_FAILED:
        text = f"share group {group}: {name}; it needs READ on the group"
    elif problem.code == _TOPIC_AUTHORIZATION_FAILED and problem.partition is None:
        text = f"share group {group}: {name}; it needs DESCRIBE and READ on {_topics(options)}"
    elif problem.code == _TOPIC_AUTHORIZATION_FAILED and problem.partition is not None:
        text = f"{problem.api}: topic {clip(topic_of(problem.partition))}: {name}; it needs READ on the topic"
    elif problem.code == _GROUP_ID_NOT_FOUND:
        text = f"group {group} isn't a share group: {name}; choose another name"
    elif problem.code == _GROUP_MAX_SIZE_REACHED:
        text = f"share group {group} is full: {name}; group.share.max.size limits its members"
    else:
        place = "" if problem.partition is None else f" {topic_of(problem.partition)}-{problem.partition.partition}:"
        text = f"{problem.api}:{place} {name}{f', {clip(problem.message)}' if problem.message else ''}"
    return RefusedError(f"{cluster.settings.bootstrap[0]}: {text}", problem.code)


def _topics(options: ConsumerOptions) -> str:
    names = ", ".join(map(clip, options.topics[:3]))
    return f"topic {names}" if len(options.topics) == 1 else f"each of the topics {names}" + (
        " …" if len(options.topics) > 3 else ""
    )  # fmt: skip
