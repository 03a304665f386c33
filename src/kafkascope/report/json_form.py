"""A report in, the JSON document that `report.schema.json` describes out: names as in the marts, times in ISO 8601."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.resources import files
from typing import Any

from kafkascope.report.build import Report
from kafkascope.report.words import iso

# Raised when a program that reads it would have to change.
FORMAT = 1


def report_json(report: Report) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kafkascope": report.version,
        "made_at": report.made_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "lake": report.lake,
        "scope": {
            "groups": list(report.scope.groups),
            "since": iso(report.scope.since),
            "until": iso(report.scope.until),
        },
        "first_at": iso(report.first_at),
        "last_at": iso(report.last_at),
        "exchanges": report.exchanges,
        "verdict": plain(report.findings.verdict),
        "findings": {"shown": plain(report.findings.shown), "left_out": report.findings.left_out},
        "share_groups": plain(report.share),
        "streams_groups": plain(report.streams),
        "quorums": plain(report.quorums),
        "apis": plain(report.apis),
        "clients": plain(report.clients),
        "unread": plain(report.unread),
    }


def plain(value: Any) -> Any:
    """Objects by field. Whole numbers named `…_at` are times."""
    if is_dataclass(value):
        return {one.name: _field(one.name, getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    return value


def _field(name: str, value: Any) -> Any:
    if name == "at" or name.endswith("_at"):
        return iso(value)
    if name == "counts":
        return [{"delivery_count": count, "records": records} for count, records in value]
    return plain(value)


def text_of(value: Any, indent: str = "") -> str:
    """Indented, but a list of numbers on one line: there are many, and nobody reads one a line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        items = (f"{inner}{json.dumps(name, ensure_ascii=False)}: {text_of(one, inner)}" for name, one in value.items())
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        return "[\n" + ",\n".join(inner + text_of(one, inner) for one in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def schema() -> dict[str, Any]:
    text = files("kafkascope.report").joinpath("report.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
