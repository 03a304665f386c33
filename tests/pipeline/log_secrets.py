"""A metadata log with credentials in it, as a controller of a cluster of its own writes it; and a partition whose first
segment is removed later, with an open transaction in it."""

from pathlib import Path
from typing import Any
from uuid import UUID

from crc32c import crc32c

from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch

CLUSTER = "planted-cluster"
TOPIC = "planted-topic"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAZA"
ENDED, OPEN = 41, 42
SECRETS = (
    "planted-salt", "planted-stored-key", "planted-server-key", "planted-password", "planted-custom-value",
    "planted-token-key",
)  # fmt: skip
SHOWN = "77000"
_AT = 1_795_102_500_000
_BROKER, _TOPIC = 4, 2
_TYPES = {"TopicRecord": 2, "ConfigRecord": 4, "DelegationTokenRecord": 10, "UserScramCredentialRecord": 11}


def plant(folder: Path) -> Path:
    """A data directory of node 9."""
    salt, stored, server, password, custom, token_key = SECRETS
    scram = {"name": "carol", "mechanism": 1, "iterations": 4096}
    scram |= {"salt": salt.encode(), "storedKey": stored.encode(), "serverKey": server.encode()}
    # A token's HMAC isn't in its record: brokers make it of the id and their secret key.
    token = {"owner": "User:carol", "requester": "User:carol", "renewers": [], "issueTimestamp": _AT,
             "maxTimestamp": _AT, "expirationTimestamp": _AT, "tokenId": "planted-token-id"}  # fmt: skip
    bodies = [
        _framed("TopicRecord", {"name": TOPIC, "topicId": UUID(int=100)}),
        _framed("UserScramCredentialRecord", scram),
        _framed("ConfigRecord", _setting(_BROKER, "9", "ssl.keystore.password", password)),
        _framed("ConfigRecord", _setting(_BROKER, "9", "delegation.token.secret.key", token_key)),
        _framed("DelegationTokenRecord", token),
        _framed("ConfigRecord", _setting(_TOPIC, TOPIC, "plugin.of.ours", custom)),
        _framed("ConfigRecord", _setting(_TOPIC, TOPIC, "retention.ms", SHOWN)),
    ]
    log = folder / "planted" / "__cluster_metadata-0"
    log.mkdir(parents=True)
    records = [Record(at, _AT, None, body) for at, body in enumerate(bodies)]
    (log / f"{0:020}.log").write_bytes(encode_records([new_batch(records, partition_leader_epoch=1)]))
    (log.parent / "meta.properties").write_text(f"cluster.id={CLUSTER}\nnode.id=9\nversion=1\n")
    _plant_partition(log.parent / f"{TOPIC}-0")
    return log.parent


def first_segment(planted: Path) -> Path:
    return planted / f"{TOPIC}-0" / f"{0:020}.log"


def _plant_partition(folder: Path) -> None:
    """Three segments of ten batches. The broker's snapshot at 20 has a producer that ended its transaction, and another
    that didn't."""
    folder.mkdir()
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    for base in (0, 10, 20):
        records = [[Record(at, _AT + at, b"k", b"v")] for at in range(base, base + 10)]
        segment = encode_records([new_batch(part, partition_leader_epoch=0) for part in records])
        (folder / f"{base:020}.log").write_bytes(segment)
    commit = Record(30, _AT, b"\0\0\0\1", b"\0\0\0\0\0\0")
    ends = new_batch([commit], producer_id=ENDED, is_control=True, is_transactional=True, partition_leader_epoch=0)
    with (folder / f"{20:020}.log").open("ab") as file:
        file.write(encode_records([ends]))
    entries = [
        {"producerId": producer, "epoch": 1, "lastSequence": 4, "lastOffset": 8, "offsetDelta": 4, "timestamp": _AT,
         "coordinatorEpoch": 3, "currentTxnFirstOffset": 5}
        for producer in (ENDED, OPEN)
    ]  # fmt: skip
    (folder / f"{20:020}.snapshot").write_bytes(producer_snapshot(entries))


def producer_snapshot(entries: list[dict[str, int]]) -> bytes:
    """As a broker writes it: version, checksum, producers."""
    body = encode("ProducerSnapshot", 1, {"crc": 0, "producerEntries": entries})[4:]
    return b"\0\1" + crc32c(body).to_bytes(4, "big") + body


def _setting(resource: int, name: str, key: str, value: str) -> dict[str, Any]:
    return {"resourceType": resource, "resourceName": name, "name": key, "value": value}


def _framed(type_: str, body: dict[str, Any]) -> bytes:
    return bytes([1, _TYPES[type_], 0]) + encode(type_, 0, body)
