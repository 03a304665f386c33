"""Collects what each KIP changed: APIs and messages, their versions, and the fields it added."""

from functools import cache
from typing import Any

from kafkascope.schema.api_facts import api_facts
from kafkascope.schema.catalog import apis, index, message


@cache
def kip_touches() -> dict[int, list[dict[str, Any]]]:
    """What each KIP touched, by number, sorted. `name` is an API or another message; `version` None means all of it."""
    touches: dict[int, dict[tuple[str, int], dict[str, Any]]] = {}

    def touch(number: int, name: str, version: int | None) -> dict[str, Any]:
        key = (name, -1 if version is None else version)
        rows = touches.setdefault(number, {})
        return rows.setdefault(key, {"name": name, "api": name in names, "version": version, "fields": []})

    names = set(apis().values())
    for api in apis().values():
        for kip in api_facts(api).kips:
            row = touch(kip.number, api, kip.version)
            if kip.place:
                row["fields"].append(kip.place)
    for name in index():
        definition = message(name)
        for version, numbers in definition.kips:
            for number in numbers:
                touch(number, definition.api or name, version)
    return {number: [rows[key] for key in sorted(rows)] for number, rows in sorted(touches.items())}


def kip_apis() -> dict[int, list[str]]:
    return {number: list(dict.fromkeys(row["name"] for row in rows)) for number, rows in kip_touches().items()}
