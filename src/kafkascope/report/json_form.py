"""Converts a report to the JSON document that `report.schema.json` describes. Names are the marts', times are ISO
8601."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.resources import files
from typing import Any

from kafkascope.report.build import Report
from kafkascope.times import iso, iso_of

# Raised when programs that read the document have to change.
_FORMAT = 1


def report_json(report: Report) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "kafkascope": report.version,
        "made_at": iso(report.made_at, "seconds"),
        "lake": report.lake,
        "scope": {
            "groups": list(report.scope.groups),
            "since": iso_of(report.scope.since),
            "until": iso_of(report.scope.until),
        },
        "first_at": iso_of(report.first_at),
        "last_at": iso_of(report.last_at),
        "exchanges": report.exchanges,
        "verdict": _plain(report.findings.verdict),
        "incidents": _plain(report.findings.incidents),
        "findings": {"shown": _plain(report.findings.shown), "left_out": report.findings.left_out},
        "share_groups": _plain(report.share),
        "streams_groups": _plain(report.streams),
        "quorums": _plain(report.quorums),
        "apis": _plain(report.apis),
        "clients": _plain(report.clients),
        "disks": _plain(report.disks),
        "unread": _plain(report.unread),
    }


def _plain(value: Any) -> Any:
    """Objects become dicts by field. Integers named `…_at` are times."""
    if is_dataclass(value):
        return {field.name: _field(field.name, getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _field(name: str, value: Any) -> Any:
    if name == "at" or name.endswith("_at"):
        return iso_of(value)
    if name == "counts":
        return [{"delivery_count": count, "records": records} for count, records in value]
    return _plain(value)


def text_of(value: Any, indent: str = "") -> str:
    """Indented JSON, with lists of numbers on one line, since they are long."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        items = (
            f"{inner}{json.dumps(name, ensure_ascii=False)}: {text_of(item, inner)}" for name, item in value.items()
        )
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return "[\n" + ",\n".join(inner + text_of(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def schema() -> dict[str, Any]:
    text = files("kafkascope.report").joinpath("report.schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
