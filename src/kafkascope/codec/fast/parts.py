"""Shares struct codes, uuids and source text of defaults between the generated decoders and encoders."""

from typing import Any
from uuid import UUID, SafeUUID

from kafkascope.schema.layouts.layout import LayoutField

CODES = {
    "bool": "B",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
# Types whose every bit pattern is a value and whose arrays struct reads and writes in one go.
NUMBERS = frozenset(CODES) - {"bool", "uuid", "float64"}
# Arrays this short have their readers and writers made beforehand: replica lists nearly always are.
SHORT = 16


class Surprise(Exception):
    """Not the canonical form; the careful decoder or encoder takes over."""


_new = UUID.__new__
_from_bytes = int.from_bytes
_UNKNOWN = SafeUUID.unknown
_set_int = UUID.int.__set__  # type: ignore[attr-defined, misc]
_set_safe = UUID.is_safe.__set__  # type: ignore[attr-defined, misc]


class _Uuids(dict[bytes, UUID]):
    """16 bytes to their UUID. Making one costs as much as the rest of a topic, and a cluster's topic ids come again
    in message after message, so the last ones are kept: 2,048 take half a megabyte."""

    def __missing__(self, raw: bytes) -> UUID:
        if len(self) >= 2048:
            self.clear()
        # UUID(bytes=raw) without its argument checks, which take two thirds of its time.
        uuid = self[raw] = _new(UUID)
        _set_int(uuid, _from_bytes(raw))
        _set_safe(uuid, _UNKNOWN)
        return uuid


UUIDS = _Uuids()


def exactly(value: Any, default: Any) -> bool:
    """Whether a value that equals a default is of its types too: 0 == False and -1 == -1.0."""
    if type(value) is not type(default):
        return False
    if isinstance(default, dict):
        return all(exactly(value[name], item) for name, item in default.items())
    return True


def default_source(field: LayoutField) -> str:
    """Source text that makes the default anew each time it runs."""
    return _display(field.default_value())


def _display(value: Any) -> str:
    if isinstance(value, UUID):
        return f"UUIDS[{value.bytes!r}]"
    if isinstance(value, dict):
        return dict_source({name: _display(item) for name, item in value.items()})
    return repr(value)


def dict_source(items: dict[str, str]) -> str:
    """A dict display of names and expressions."""
    return "{" + ", ".join(f"{name!r}: {text}" for name, text in items.items()) + "}"
