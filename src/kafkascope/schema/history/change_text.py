"""Formats a change between two layouts as text: + for added, - for removed, ~ for changed."""

from typing import Any

from kafkascope.schema.history.compare import Change

SIGNS = {"added": "+", "removed": "-"}


def change_text(change: Change) -> str:
    match change.what:
        case "added":
            return f"{change.path}: {change.after}"
        case "removed":
            return f"{change.path}: {change.before}"
        case "renamed":
            return f"{change.path}: was called {change.before}"
        case "nullable":
            return f"{change.path}: {change.before} → {change.after}"
        case "encoding":
            return f"encoding: {change.before} → {change.after}"
    return f"{change.path}: {change.what} {change.before or 'none'} → {change.after or 'none'}"


def signed(change: Change) -> str:
    return f"{SIGNS.get(change.what, '~')} {change_text(change)}"


def change_json(change: Change) -> dict[str, Any]:
    return {"what": change.what, "path": change.path or None, "before": change.before, "after": change.after}
