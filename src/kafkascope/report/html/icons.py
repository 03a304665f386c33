"""Draws an icon for each state. Shapes and colours both differ, so that neither is needed to read the other."""

from kafkascope.markup import Html, el

_SHAPES = {
    "critical": "M8 1h8l6 6v8l-6 6H8l-6-6V7zM8 8l8 8M16 8l-8 8",
    "attention": "M12 2l11 19H1zM12 9v6M12 17.5v1",
    "info": "M12 1.5a10.5 10.5 0 1 0 .01 0zM12 10.5v7M12 6.5v1",
    "healthy": "M12 1.5a10.5 10.5 0 1 0 .01 0zM7 12.5l3.5 3.5L17.5 9",
    "unknown": "M12 1.5a10.5 10.5 0 1 0 .01 0zM9 9.5a3 3 0 1 1 4.2 2.75q-1.2 .6-1.2 2.25M12 17.5v1",
}
_SHAPES["warning"] = _SHAPES["attention"]

STATE_WORDS = {
    "critical": "Critical",
    "attention": "Needs attention",
    "healthy": "Healthy",
    "unknown": "Not judged",
    "warning": "Warning",
    "info": "Note",
}


def icon(state: str) -> Html:
    """An icon beside its word. Screen readers skip it."""
    return el("svg", el("path", d=_SHAPES[state]), viewBox="0 0 24 24", class_="icon", aria_hidden="true")


def badge(state: str, words: str | None = None) -> Html:
    return el("span", icon(state), words or STATE_WORDS[state], class_=f"badge {state}")
