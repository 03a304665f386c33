"""Decodes the records of Kafka's own topics and of control batches into types and JSON values, without credentials.
Never raises: what can't be decoded has a reason instead of a value."""

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import decode
from kafkascope.codec.records.control import TYPES, control_record
from kafkascope.codec.records.record_types import Record
from kafkascope.columnar.secrets import METADATA_TOPIC
from kafkascope.errors import DecodeError, KafkascopeError
from kafkascope.limits import MAX_VARINT_BYTES
from kafkascope.logs.hidden import without_credentials
from kafkascope.schema.catalog import index, message
from kafkascope.schema.record_places import group_of

_COORDINATORS = {
    "__consumer_offsets": "groups",
    "__share_group_state": "share state",
    "__transaction_state": "transactions",
}
_FRAMED = {METADATA_TOPIC: "metadata", "__remote_log_metadata": "tiered storage"}
INTERNAL_TOPICS = (*_COORDINATORS, *_FRAMED)
# Keys have the number of their type, or values are in a frame that has it.
COORDINATOR, FRAMED_VALUES = "coordinator", "framed"
_FRAME_VERSION = 1
_CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class TypedRecord:
    """`type` is Kafka's name without Key and Value; None if the catalog doesn't know `type_number`. `key` is null for
    metadata records, `value` for tombstones and where `problem` says why it can't be decoded."""

    type: str | None
    type_number: int | None
    version: int | None
    key: dict[str, Any] | None
    value: dict[str, Any] | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Framed:
    """A record's type, and the bytes of its messages: of a key without its type, of a value without its version."""

    type: str | None
    type_number: int | None
    version: int | None = None
    key_message: str | None = None
    key_version: int = 0
    key: bytes = b""
    value_message: str | None = None
    value: bytes | None = None
    problem: str | None = None


Decoder = Callable[[Record], TypedRecord]
# Type, message and version of the key, message of the value.
Messages = tuple[str, str | None, int, str]
Framer = Callable[[Record], Framed]


def framer_of(topic: str | None) -> Framer | None:
    """None for a topic of users, whose records are nobody else's business."""
    if topic in _COORDINATORS:
        types = _coordinator_types(_COORDINATORS[topic])
        return lambda record: _coordinator_record(record, types)
    if topic in _FRAMED:
        names = _framed_types(_FRAMED[topic])
        return lambda record: _framed_record(record, names)
    return None


def record_kind(topic: str | None) -> str | None:
    """`COORDINATOR` or `FRAMED_VALUES`, by how the topic's records name their types; None for a topic of users."""
    return COORDINATOR if topic in _COORDINATORS else FRAMED_VALUES if topic in _FRAMED else None


def messages_of(topic: str | None, number: int) -> Messages | None:
    """Of the records with this number as their type; None for an unknown one."""
    if topic in _COORDINATORS:
        names = _coordinator_types(_COORDINATORS[topic]).get(number)
        return names and (names[0].removesuffix("Key"), names[0], _key_version(names[0], number), names[1])
    name = _framed_types(_FRAMED[topic or ""]).get(number)
    return None if name is None else (name, None, 0, name)


def decoder_of(topic: str | None) -> Decoder | None:
    """None where `framer_of` is."""
    framer = framer_of(topic)
    return None if framer is None else lambda record: _typed(framer(record))


def control_type(record: Record) -> TypedRecord:
    """Of a record of a control batch, in any topic."""
    control = control_record(record)
    message = TYPES.get(-1 if control.type is None else control.type, (None, None))[1]
    if control.value is None or message is None:
        problem = f"unknown type {control.type}" if message is None else "its value isn't the message of its type"
        return TypedRecord(control.name, control.type, None, None, None, problem)
    version = int.from_bytes((record.value or b"")[:2], "big", signed=True)
    return TypedRecord(control.name, control.type, version, None, _json(message, version, control.value))


def type_names() -> list[str]:
    """Every type that a record can have, for the flag that filters by it."""
    return sorted({*message_names(), *(name for name, _ in TYPES.values())})


def message_names() -> dict[str, tuple[str | None, str]]:
    """Type to the messages of key and value, for every type but those of control records."""
    coordinators = {
        key.removesuffix("Key"): (key, value)
        for group in _COORDINATORS.values()
        for key, value in _coordinator_types(group).values()
    }
    return coordinators | {name: (None, name) for group in _FRAMED.values() for name in _framed_types(group).values()}


def topic_of_type(type_: str | None) -> str | None:
    """None for a type that is in every topic, or unknown."""
    for topic, group in _COORDINATORS.items():
        if any(key == f"{type_}Key" for key, _ in _coordinator_types(group).values()):
            return topic
    return next((topic for topic, group in _FRAMED.items() if type_ in _framed_types(group).values()), None)


@cache
def _coordinator_types(group: str) -> dict[int, tuple[str, str]]:
    """The number that a key starts with to its messages."""
    return {
        entry.key: (name, name.removesuffix("Key") + "Value")
        for name, entry in index().items()
        if entry.kind == "key" and entry.key is not None and group_of(name) == group
    }


@cache
def _framed_types(group: str) -> dict[int, str]:
    known = [
        (entry.key, name)
        for name, entry in index().items()
        if entry.kind == "metadata" and entry.key is not None and group_of(name) == group
    ]
    # The preview of 2.8 gave some numbers to other records.
    return dict(sorted(known, key=lambda pair: any(span.last is None for span, _ in message(pair[1]).valid)))


def _typed(framed: Framed) -> TypedRecord:
    key = value = None
    problem = framed.problem
    try:
        if framed.key_message is not None:
            key = _decoded(framed.key_message, framed.key_version, framed.key)
        if framed.value_message is not None and framed.value is not None and framed.version is not None:
            value = _decoded(framed.value_message, framed.version, framed.value)
    except KafkascopeError as error:
        problem = str(error)
    if value is not None and framed.value_message == "GroupMetadataValue":
        _open_members(value)
    return TypedRecord(framed.type, framed.type_number, framed.version, key, value, problem)


def _coordinator_record(record: Record, types: dict[int, tuple[str, str]]) -> Framed:
    key, value = record.key, record.value
    if key is None or len(key) < 2:
        return Framed(None, None, problem="it has no key")
    number = int.from_bytes(key[:2], "big", signed=True)
    if number not in types:
        return Framed(None, number, problem=f"unknown type {number}")
    key_name, value_name = types[number]
    type_, key_version = key_name.removesuffix("Key"), _key_version(key_name, number)
    if value is None:
        return Framed(type_, number, None, key_name, key_version, key[2:])
    if len(value) < 2:
        problem = f"a value of {len(value)} bytes has no version"
        return Framed(type_, number, None, key_name, key_version, key[2:], problem=problem)
    version = int.from_bytes(value[:2], "big", signed=True)
    return Framed(type_, number, version, key_name, key_version, key[2:], value_name, value[2:])


def _key_version(name: str, number: int) -> int:
    """Up to 3.x a key's version was its type; the fields are the same."""
    versions = index()[name].versions
    return number if number in versions else 0


def _framed_record(record: Record, names: dict[int, str]) -> Framed:
    data = record.value or b""
    try:
        frame, position = _uvarint(data, 0, "frame version")
        if frame != _FRAME_VERSION:
            return Framed(None, None, problem=f"unknown frame version {frame}")
        number, position = _uvarint(data, position, "type")
        version, position = _uvarint(data, position, "version")
    except DecodeError as error:
        return Framed(None, None, problem=str(error))
    name = names.get(number)
    if name is None:
        return Framed(None, number, version, problem=f"unknown type {number}")
    return Framed(name, number, version, value_message=name, value=data[position:])


def _uvarint(data: bytes, position: int, label: str) -> tuple[int, int]:
    value = 0
    for group, byte in enumerate(data[position : position + MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * group
        if byte < 0x80:
            return value, position + group + 1
    raise DecodeError(f"{label}: cut off or too long (offset {position})")


def _decoded(name: str, version: int, data: bytes) -> dict[str, Any]:
    return _json(name, version, decode(name, version, data).value)


def _json(name: str, version: int, value: dict[str, Any]) -> dict[str, Any]:
    return without_credentials(name, version, to_json(name, version, value))


def _open_members(group: dict[str, Any]) -> None:
    """Replaces subscription and assignment of consumers by what they hold, as Kafka's own tool does."""
    if group.get("protocolType") != _CONSUMER:
        return
    for member in group["members"]:
        for field, held in (
            ("subscription", "ConsumerProtocolSubscription"),
            ("assignment", "ConsumerProtocolAssignment"),
        ):
            data = b64decode(member[field])
            if len(data) < 2:
                continue
            # Later versions only add fields at the end.
            version = min(int.from_bytes(data[:2], "big", signed=True), index()[held].versions.ranges[-1][1])
            try:
                member[field] = _decoded(held, version, data[2:])
            except KafkascopeError:
                continue
