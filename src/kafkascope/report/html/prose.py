"""Renders sentences: names in backticks as code, commands in a block of their own with a button that copies them."""

import re

from kafkascope.markup import Child, Html, el

_IN_BACKTICKS = re.compile(r"`([^`]*)`")
# How a shell command starts. The reader fills in placeholders such as BROKER.
_COMMAND = re.compile(r"(?:kafkascope|kafka-[a-z-]+\.sh|dmesg|jcmd|tcpdump) .")


def prose(text: str) -> list[Child]:
    """Text in backticks becomes code."""
    return [el("code", part) if at % 2 else part for at, part in enumerate(_IN_BACKTICKS.split(text))]


def advice(text: str) -> Html:
    """As prose, with each command in its own block."""
    blocks: list[Html] = []
    line: list[Child] = [el("b", "What to do: ")]
    parts = _IN_BACKTICKS.split(text)
    for at, part in enumerate(parts):
        following = parts[at + 1] if at + 1 < len(parts) else ""
        if at % 2 and _COMMAND.match(part):
            blocks += [el("p", line), command_block(part)]
            line = []
        else:
            # A block needs no parentheses, and it ends the sentence.
            words = part if line else part.lstrip(").,; ")
            if words.endswith(" (") and not at % 2 and _COMMAND.match(following):
                words = f"{words[:-2]}:"
            line += [el("code", part) if at % 2 else words] if words else []
    return el("div", blocks, el("p", line) if line else None, class_="advice")


def command_block(command: str) -> Html:
    """The script reveals the button."""
    return el(
        "div",
        # Lines break only between arguments.
        el("pre", el("code", [[" " * bool(at), el("span", word)] for at, word in enumerate(command.split(" "))])),
        el("button", "Copy", type="button", class_="copy", hidden=True, aria_label=f"Copy: {command}"),
        class_="command",
    )
