"""Prints changes between two layouts as lines: + for additions, - for removals, ~ for differences."""

import textwrap

from kafkascope.cli.terminal import paint, width
from kafkascope.schema.history.change_text import SIGNS, change_text
from kafkascope.schema.history.compare import Change

_COLOURS = {"added": "green", "removed": "red"}


def print_changes(changes: list[Change], indent: str = "  ") -> None:
    if not changes:
        print(f"{indent}no difference")
    for change in changes:
        sign, colour = SIGNS.get(change.what, "~"), _COLOURS.get(change.what, "yellow")
        # Measured without its colour codes, which take no room on the screen.
        first, *rest = textwrap.wrap(change_text(change), width() - len(indent) - 2, break_long_words=False)
        print(f"{indent}{paint(sign, colour)} {first}")
        for line in rest:
            print(f"{indent}    {line}")
