"""Renders sentences: names in backticks as code, commands in a block of their own with a button that copies them."""

import re

from kafkascope.markup import Child, Html, el

_IN_BACKTICKS = re.compile(r"`([^`]*)`")
# What begins a command that a shell runs. Prompts such as BROKER in it are for the reader to fill in.
_COMMAND = re.compile(r"(?:kafkascope|kafka-[a-z-]+\.sh|dmesg|jcmd) .")


def prose(text: str) -> list[Child]:
    """What is in backticks is code."""
    return [el("code", part) if at % 2 else part for at, part in enumerate(_IN_BACKTICKS.split(text))]


def advice(text: str) -> Html:
    """As prose; the commands in it follow as blocks."""
    parts = _IN_BACKTICKS.split(text)
    commands = [part for part in parts[1::2] if _COMMAND.match(part)]
    return el(
        "div",
        el("p", el("b", "What to do: "), prose(text)),
        [command_block(command) for command in commands],
        class_="advice",
    )


def command_block(command: str) -> Html:
    """The button shows itself where there is script."""
    return el(
        "div",
        el("pre", el("code", command), tabindex="0"),
        el("button", "Copy", type="button", class_="copy", hidden=True, aria_label=f"Copy: {command}"),
        class_="command",
    )
