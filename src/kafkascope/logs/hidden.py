"""Leaves credentials out of the JSON of records: SCRAM, tokens, and values of settings unless Kafka's own definition of
the setting isn't a password. A setting that nobody knows is hidden, as the broker does it in its own log."""

from functools import cache
from typing import Any

from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.columnar.secrets import LISTENER, Care, care_of, hide, open_settings
from kafkascope.schema.layouts.layout import LayoutField, layout

_CONFIG = "ConfigRecord"


def without_credentials(name: str, version: int, value: dict[str, Any]) -> dict[str, Any]:
    """`value` or a copy of it, null where the content is hidden."""
    if not _has_hidden(name, version) and UNKNOWN_TAGS not in value:
        return value
    hidden: dict[str, Any] = hide(name, version, value)
    if name == _CONFIG and is_open_setting(value.get("resourceType"), value.get("name")):
        hidden["value"] = value.get("value")
    return hidden


def is_open_setting(resource_type: object, name: object) -> bool:
    """Whether the setting's value may be shown."""
    if not isinstance(resource_type, int) or not isinstance(name, str):
        return False
    if name.startswith(LISTENER):
        # listener.name.LISTENER.SETTING; a SASL mechanism comes before the settings that it has for itself.
        name = name.removeprefix(LISTENER).partition(".")[2]
    return name in open_settings().get(resource_type, ())


@cache
def _has_hidden(name: str, version: int) -> bool:
    known = layout(name, version)
    return _hides(known.message.name, known.fields, ())


def _hides(message: str, fields: tuple[LayoutField, ...], above: tuple[str, ...]) -> bool:
    for field in fields:
        path = (*above, field.source.name)
        if field.type == "struct":
            if _hides(message, field.fields, path):
                return True
        elif care_of(message, path, field.type) is Care.HIDDEN:
            return True
    return False
