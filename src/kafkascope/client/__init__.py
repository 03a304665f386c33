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
    "answer": "Answer Broker",
    "cluster": "Cluster connect",
    "consumer.batch": "ShareBatch ShareRecord",
    "consumer.plain": "PlainShareConsumer plain_share_consumer",
    "consumer.share_consumer": "ShareConsumer ShareMetrics share_consumer",
    "settings": "Address Sasl Secret Settings Tls",
    "targets": "AnyBroker Controller Coordinator Leader Node parse_target",
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
    for home, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
