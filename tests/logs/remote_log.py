"""Records of `__remote_log_metadata` as Kafka's own objects print themselves: all that its tool shows of them."""

import re
from typing import Any

# Custom metadata is hidden: what plug-ins write.
_CUSTOM = re.compile(r"customMetadata=(?:Optional\.empty|Optional\[.*?\}\])")
_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED",
)  # fmt: skip
_DELETE_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def without_custom_metadata(text: str) -> str:
    return _CUSTOM.sub("customMetadata=?", text)


def java_text(type_: str, value: dict[str, Any]) -> str:
    """The classes leave out what the class above them has."""
    assert value.get("customMetadata") is None
    name = type_.removesuffix("Record")
    if name == "RemotePartitionDeleteMetadata":
        topic, state = _partition(value["topicIdPartition"]), _DELETE_STATES[value["remotePartitionDeleteState"]]
        fields = {"topicPartition": topic, "state": state, **_event(value)}
    else:
        state = _SEGMENT_STATES[value["remoteLogSegmentState"]]
        if name == "RemoteLogSegmentMetadataUpdate":
            fields = {"remoteLogSegmentId": _id(value), "customMetadata": "?", "state": state, **_event(value)}
        else:
            epochs = ", ".join(f"{row['leaderEpoch']}={row['offset']}" for row in value["segmentLeaderEpochs"])
            is_whole = name == "RemoteLogSegmentMetadata"
            times = ("brokerId", "maxTimestampMs", "eventTimestampMs") if is_whole else ("maxTimestampMs",)
            fields = {
                **({"remoteLogSegmentId": _id(value)} if is_whole else {"segmentId": value["segmentId"]}),
                **{field: value[field] for field in ("startOffset", "endOffset", *times)},
                "segmentLeaderEpochs": f"{{{epochs}}}",
                "segmentSizeInBytes": value["segmentSizeInBytes"],
                "customMetadata": "?",
                "state": state,
                "txnIdxEmpty": str(value.get("txnIndexEmpty", False)).lower(),
            }
    return f"{name}{{{', '.join(f'{field}={text}' for field, text in fields.items())}}}"


def _event(value: dict[str, Any]) -> dict[str, Any]:
    return {field: value[field] for field in ("eventTimestampMs", "brokerId")}


def _partition(topic: dict[str, Any]) -> str:
    return f"{topic['id']}:{topic['name']}-{topic['partition']}"


def _id(value: dict[str, Any]) -> str:
    held = value["remoteLogSegmentId"]
    return f"RemoteLogSegmentId{{topicIdPartition={_partition(held['topicIdPartition'])}, id={held['id']}}}"
