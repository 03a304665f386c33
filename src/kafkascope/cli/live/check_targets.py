"""Parses what `kafkascope check` looks at: its first argument, or `all` without one."""

import click

ALL = "all"
WHAT = ("quorum", "share-group", "streams-group", "group", ALL)


def split_target(words: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    """Returns what to check, the host and the groups."""
    what, rest = (words[0], words[1:]) if words and words[0] in WHAT else (ALL, words)
    if not rest:
        raise click.UsageError("HOST is missing: kafkascope check localhost:9092", click.get_current_context())
    if what == ALL and rest[1:] and words[0] != ALL:
        choices = ", ".join(WHAT)
        raise click.UsageError(f"unknown check {words[0]}; choose from {choices}", click.get_current_context())
    return what, rest[0], rest[1:]


def complete_target(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return [] if context.params.get("words") else [what for what in WHAT if what.startswith(incomplete)]
