"""Words click's usage errors as the command line words its own. Each line names the flag, argument or command."""

import re

import click

from kafkascope.formatting import close_names, did_you_mean

_PLAIN = (
    (r"is not a valid (?:integer(?: range)?)$", "isn't a whole number"),
    (r"is not a valid (?:float(?: range)?)$", "isn't a number"),
    (r"is not in the range (\S+)<=x<=(\S+)$", r"isn't between \1 and \2"),
    (r"(-?\d+)\.0 is not in the range", r"\1 is not in the range"),
    (r"is not in the range 0<x<=(\S+)$", r"isn't more than 0 and at most \1"),
    (r"is not in the range x>=(\S+)$", r"is less than \1"),
    (r"is not in the range x>(\S+)$", r"isn't more than \1"),
    (r"^Directory '(.*)' is a file$", r"\1 is a file; give a folder"),
    (r"^Option '(\S+)' requires an argument$", r"\1 needs a value"),
    (r"^Option '(\S+)' does not take a value$", r"\1 takes no value"),
    (r"^Got unexpected extra arguments? \((.*)\)$", r"too many arguments: \1"),
)


def usage_line(error: click.UsageError) -> str:
    """unknown option --grup; did you mean --group?"""
    if isinstance(error, click.NoSuchOption):
        # click compares the dashes too, and so takes `--nope` for `--topic`.
        flags = {flag.strip("-"): flag for flag in error.possibilities or ()}
        near = close_names(error.option_name.strip("-"), flags, most=3)
        return f"unknown option {error.option_name}{did_you_mean(near)}"
    if isinstance(error, click.MissingParameter):
        choices = _choices(error.param)
        return f"{_name(error)} is missing" + (f"; choose from {choices}" if choices else "")
    message = error.message.rstrip(".")
    unknown = re.match(r"No such command '(.*?)'", message)
    if unknown and error.ctx and isinstance(error.ctx.command, click.Group):
        return _unknown_command(unknown[1], error.ctx.command.list_commands(error.ctx))
    for pattern, plain in _PLAIN:
        message = re.sub(pattern, plain, message, flags=re.DOTALL)
    if not isinstance(error, click.BadParameter):
        return message
    choices = _choices(error.param)
    if choices:
        message = f"{message.partition(' is not one of ')[0]} isn't one of {choices}"
    name = _name(error)
    return f"{name}: {message}" if name else message


def _choices(parameter: click.Parameter | None) -> str:
    """`bash, zsh, fish`; empty if any value is possible."""
    kind = parameter.type if parameter is not None else None
    return ", ".join(map(str, kind.choices)) if isinstance(kind, click.Choice) else ""


def _unknown_command(name: str, commands: list[str]) -> str:
    hint = did_you_mean(close_names(name, commands), f"the commands are {', '.join(commands)}")
    return f"unknown command {name}{hint}"


def _name(error: click.BadParameter) -> str:
    hint = error.param_hint
    if hint is None:
        hint = error.param.get_error_hint(error.ctx) if error.param and error.ctx else ""
    return hint.strip("'\"").removesuffix("...") if isinstance(hint, str) else " or ".join(hint)
