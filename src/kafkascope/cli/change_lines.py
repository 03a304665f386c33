"""Changes between two layouts as lines: + for what came, - for what went, ~ for what is otherwise."""

import textwrap
from typing import Any

from kafkascope.cli.terminal import paint, width
from kafkascope.schema.compare import Change

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red")}


def print_changes(changes: list[Change], indent: str = "  ") -> None:
    if not changes:
        print(f"{indent}no difference")
    for change in changes:
        sign, colour = _SIGNS.get(change.what, ("~", "yellow"))
        # Measured without its colour, which takes no room on the screen.
        first, *rest = textwrap.wrap(change_text(change), width() - len(indent) - 2, break_long_words=False)
        print(f"{indent}{paint(sign, colour)} {first}")
        for line in rest:
            print(f"{indent}    {line}")


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
    sign, _ = _SIGNS.get(change.what, ("~", ""))
    return f"{sign} {change_text(change)}"


def change_json(change: Change) -> dict[str, Any]:
    return {"what": change.what, "path": change.path or None, "before": change.before, "after": change.after}
