"""Client for live clusters: `connect` returns a `Cluster` to call. Names are loaded on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkascope.client.answer import Answer, Broker
    from kafkascope.client.cluster import Cluster, connect
    from kafkascope.client.consumer.batch import ShareBatch, ShareRecord
    from kafkascope.client.consumer.plain import PlainShareConsumer, plain_share_consumer
    from kafkascope.client.consumer.share_consumer import ShareConsumer, ShareMetrics, share_consumer
    from kafkascope.client.settings import Address, Sasl, Secret, Settings, Tls
    from kafkascope.client.targets import AnyBroker, Controller, Coordinator, Leader, Node, parse_target

_HOMES = {
    "Address": "settings",
    "Answer": "answer",
    "AnyBroker": "targets",
    "Broker": "answer",
    "Cluster": "cluster",
    "Controller": "targets",
    "Coordinator": "targets",
    "Leader": "targets",
    "PlainShareConsumer": "consumer.plain",
    "plain_share_consumer": "consumer.plain",
    "ShareBatch": "consumer.batch",
    "ShareConsumer": "consumer.share_consumer",
    "ShareMetrics": "consumer.share_consumer",
    "ShareRecord": "consumer.batch",
    "share_consumer": "consumer.share_consumer",
    "Node": "targets",
    "Sasl": "settings",
    "Secret": "settings",
    "Settings": "settings",
    "Tls": "settings",
    "connect": "cluster",
    "parse_target": "targets",
}

__all__ = [
    "Address",
    "Answer",
    "AnyBroker",
    "Broker",
    "Cluster",
    "Controller",
    "Coordinator",
    "Leader",
    "Node",
    "PlainShareConsumer",
    "Sasl",
    "Secret",
    "Settings",
    "ShareBatch",
    "ShareConsumer",
    "ShareMetrics",
    "ShareRecord",
    "Tls",
    "connect",
    "parse_target",
    "plain_share_consumer",
    "share_consumer",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kafkascope.client' has no attribute {name!r}")
    return getattr(import_module(f"kafkascope.client.{home}"), name)
