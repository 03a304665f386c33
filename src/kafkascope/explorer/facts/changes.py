"""Describes the changes between two layouts: kind, place, before, after, and a line of text."""

from collections.abc import Iterable
from typing import Any

from kafkascope.schema.catalog import index
from kafkascope.schema.history.change_text import SIGNS, change_json, change_text
from kafkascope.schema.history.compare import Change, MessageChange


def change_facts(change: Change) -> dict[str, Any]:
    return {**change_json(change), "sign": SIGNS.get(change.what, "~"), "text": change_text(change)}


def all_changes(changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [change_facts(change) for change in changes]


def message_change_facts(change: MessageChange) -> dict[str, Any]:
    """`message` is None if the row is about both halves: request and response, or key and value."""
    return {
        "name": change.name,
        "message": change.name if change.name in index() else None,
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "changes": [{"version": version, **change_facts(item)} for version, item in change.changes],
    }
