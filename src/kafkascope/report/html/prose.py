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
    """As prose, with each command in a block of its own."""
    blocks: list[Html] = []
    line: list[Child] = [el("b", "What to do: ")]
    for at, part in enumerate(_IN_BACKTICKS.split(text)):
        if at % 2 and _COMMAND.match(part):
            blocks += [el("p", line), command_block(part)]
            line = []
        else:
            # What ended the sentence after a command is its block.
            words = part if line else part.lstrip(".,; ")
            line += [el("code", part) if at % 2 else words] if words else []
    return el("div", blocks, el("p", line) if line else None, class_="advice")


def command_block(command: str) -> Html:
    """The button shows itself where there is script."""
    return el(
        "div",
        el("pre", el("code", command), tabindex="0"),
        el("button", "Copy", type="button", class_="copy", hidden=True, aria_label=f"Copy: {command}"),
        class_="command",
    )
