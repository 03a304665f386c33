"""Describes messages that are neither request nor response: where their bytes are stored, and what precedes them."""

from dataclasses import dataclass

from kafkascope.schema.catalog import index

# The start of a metadata record since Kafka 3.0; frame version 0 was the preview in 2.8.
_FRAME_VERSION = 1
_CONTROL = (
    "ControlRecordTypeSchema",
    "EndTxnMarker",
    "LeaderChangeMessage",
    "SnapshotHeaderRecord",
    "SnapshotFooterRecord",
    "KRaftVersionRecord",
    "VotersRecord",
)
_FILES = {
    "AbortedTxn": "a segment's .txnindex file",
    "ProducerSnapshot": "a partition's .snapshot file of producers",
    "QuorumStateData": "the file quorum-state of the metadata log",
}
_EMBEDDED = {
    "ConsumerProtocolAssignment": "SyncGroup, as the assignment of a member",
    "ConsumerProtocolSubscription": "JoinGroup, as the metadata of a protocol",
    "DefaultPrincipalData": "Envelope, as the principal of a forwarded request",
}
RECORD_GROUPS = {
    "groups": "Group coordinator: the topic __consumer_offsets",
    "transactions": "Transaction coordinator: the topic __transaction_state",
    "share state": "Share coordinator: the topic __share_group_state",
    "metadata": "Metadata records: the topic __cluster_metadata",
    "tiered storage": "Tiered storage: the topic __remote_log_metadata",
    "control": "Control records, in control batches",
    "embedded": "Data inside other messages",
    "files": "Files next to the log",
}


@dataclass(frozen=True, slots=True)
class Prefix:
    """What precedes a record's body: `type` is int16 or uvarint."""

    name: str
    type: str
    value: int
    meaning: str


def group_of(name: str) -> str:
    """A key of `RECORD_GROUPS`."""
    if name in _CONTROL:
        return "control"
    if name in _EMBEDDED:
        return "embedded"
    if name in _FILES:
        return "files"
    if index()[name].kind == "metadata":
        return "tiered storage" if name.startswith("Remote") else "metadata"
    if name.startswith("TransactionLog"):
        return "transactions"
    return "share state" if name.startswith(("ShareSnapshot", "ShareUpdate")) else "groups"


def place_of(name: str) -> str:
    """Where its bytes are stored, in words."""
    if name in _EMBEDDED:
        return _EMBEDDED[name]
    if name in _FILES:
        return _FILES[name]
    group = group_of(name)
    if group == "control":
        return f"the {'key' if name == 'ControlRecordTypeSchema' else 'value'} of a record of a control batch"
    half = "key" if name.endswith("Key") else "value"
    return f"the {half} of a record of {RECORD_GROUPS[group].rpartition(' ')[2]}"


def prefix_of(name: str, version: int) -> tuple[Prefix, ...]:
    """What a writer puts before the body; empty if the body contains its version itself."""
    entry = index()[name]
    group = group_of(name)
    if group in ("metadata", "tiered storage"):
        assert entry.key is not None
        return (
            Prefix("frame version", "uvarint", _FRAME_VERSION, "how the rest is framed"),
            Prefix("type", "uvarint", entry.key, f"{name}"),
            Prefix("version", "uvarint", version, "of the record"),
        )
    if name == "QuorumStateData" or (group == "control" and name not in ("EndTxnMarker", "ControlRecordTypeSchema")):
        return ()
    if entry.kind == "key" and entry.key is not None:
        return (Prefix("type", "int16", entry.key, "which key and value these are"),)
    return (Prefix("version", "int16", version, "of what follows"),)
