"""A metadata log with credentials in it, as a controller of a cluster of its own writes it."""

from pathlib import Path
from typing import Any
from uuid import UUID

from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch

CLUSTER = "planted-cluster"
TOPIC = "planted-topic"
SECRETS = ("planted-salt", "planted-stored-key", "planted-server-key", "planted-password", "planted-custom-value")
SHOWN = "77000"
_AT = 1_795_102_500_000
_BROKER, _TOPIC = 4, 2
_TYPES = {"TopicRecord": 2, "ConfigRecord": 4, "UserScramCredentialRecord": 11}


def plant(folder: Path) -> Path:
    """A data directory of node 9."""
    salt, stored, server, password, custom = SECRETS
    scram = {"name": "carol", "mechanism": 1, "iterations": 4096}
    scram |= {"salt": salt.encode(), "storedKey": stored.encode(), "serverKey": server.encode()}
    bodies = [
        _framed("TopicRecord", {"name": TOPIC, "topicId": UUID(int=100)}),
        _framed("UserScramCredentialRecord", scram),
        _framed("ConfigRecord", _setting(_BROKER, "9", "ssl.keystore.password", password)),
        _framed("ConfigRecord", _setting(_TOPIC, TOPIC, "plugin.of.ours", custom)),
        _framed("ConfigRecord", _setting(_TOPIC, TOPIC, "retention.ms", SHOWN)),
    ]
    log = folder / "planted" / "__cluster_metadata-0"
    log.mkdir(parents=True)
    records = [Record(at, _AT, None, body) for at, body in enumerate(bodies)]
    (log / f"{0:020}.log").write_bytes(encode_records([new_batch(records, partition_leader_epoch=1)]))
    (log.parent / "meta.properties").write_text(f"cluster.id={CLUSTER}\nnode.id=9\nversion=1\n")
    return log.parent


def _setting(resource: int, name: str, key: str, value: str) -> dict[str, Any]:
    return {"resourceType": resource, "resourceName": name, "name": key, "value": value}


def _framed(type_: str, body: dict[str, Any]) -> bytes:
    return bytes([1, _TYPES[type_], 0]) + encode(type_, 0, body)
