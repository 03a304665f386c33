"""Defines the textures of the charts. Whatever differs in colour also differs in texture."""

from kafkascope.markup import Html, el

_COLOURS = 8


def patterns() -> Html:
    """Defined once per page; the style sheet refers to them."""
    names = [*(f"m{at}" for at in range(_COLOURS)), "m-other"]
    textures = [_hatch(f"{name}-standby", name, "M0 4L4 0M-1 1L1 -1M3 5L5 3") for name in names]
    textures += [_hatch(f"{name}-warmup", name, "M1 1h1.5v1.5h-1.5z") for name in names]
    textures += [
        _texture("disconnected", "M0 6L6 0M-1 1L1 -1M5 7L7 5"),
        _texture("session-closed", "M0 3H6"),
        _texture("moved", "M3 0V6"),
        _texture("open", "M0 0L6 6M0 6L6 0"),
        _texture("unheld", "M0 0L6 6M-1 5L1 7M5 -1L7 1"),
        _hatch("role-standby", "role", "M0 4L4 0M-1 1L1 -1M3 5L5 3"),
        _hatch("role-warmup", "role", "M1 1h1.5v1.5h-1.5z"),
    ]
    return el("svg", el("defs", textures), width=0, height=0, class_="defs", aria_hidden="true", focusable="false")


def _hatch(name: str, colour: str, path: str) -> Html:
    """Lines in a member's colour on the background."""
    return el(
        "pattern",
        el("rect", width=4, height=4, class_="paper"),
        el("path", d=path, class_=f"ink-{colour}"),
        id=f"p-{name}",
        width=4,
        height=4,
        patternUnits="userSpaceOnUse",
    )


def _texture(name: str, path: str) -> Html:
    """Light lines on an outcome's colour."""
    return el(
        "pattern",
        el("rect", width=6, height=6, class_=f"base-{name}"),
        el("path", d=path, class_=f"thread thread-{name}"),
        id=f"p-{name}",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
    )
