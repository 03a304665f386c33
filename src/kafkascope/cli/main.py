"""Runs the command that the arguments name and returns its exit code; every error is one line on stderr."""

import gc
import io
import os
import sys
from importlib import import_module

import click

from kafkascope import __version__
from kafkascope.cli.usage import usage_line
from kafkascope.errors import KafkascopeError

# Each is a module of `cli/commands`, or of its packages `reference` and `live`. Only the one that runs is loaded.
REFERENCE = "apis show diff changelog errors error example vectors catalog".split()
LIVE = "call groups describe check consume observe probe".split()
GROUPS = {
    "Look it up": "apis show diff changelog errors error".split(),
    "Work with bytes": "decode encode example".split(),
    "Recordings": "read ingest marts report lake".split(),
    "Log directories": ["log"],
    "Live clusters": LIVE,
    "In a browser": "serve site".split(),
    "For other programs": "catalog vectors".split(),
    "This machine": "doctor warm-up completion".split(),
}
COMMANDS = [command for group in GROUPS.values() for command in group]
FIRST_COMMANDS = {
    "kafkascope show ShareFetchRequest:2": "every field and byte of a request",
    "kafkascope read night.pcap --stats": "which calls, how fast, what errors",
    "kafkascope check localhost:9092": "is the cluster healthy, in one line",
}
INTERRUPTED = 130
# The variable that click's completion scripts set when Tab is pressed.
COMPLETING = "_KAFKASCOPE_COMPLETE"
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """Click's way to load commands late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        package = "reference." if cmd_name in REFERENCE else "live." if cmd_name in LIVE else ""
        command = import_module(f"kafkascope.cli.commands.{package}{cmd_name.replace('-', '_')}").run
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command once, grouped by purpose."""
        column = max(map(len, COMMANDS))
        for group, names in GROUPS.items():
            with formatter.section(group):
                commands = [(name.ljust(column), self.get_command(ctx, name)) for name in names]
                formatter.write_dl([(name, command.get_short_help_str(99)) for name, command in commands if command])
        with formatter.section("Examples"):
            formatter.write_dl(list(FIRST_COMMANDS.items()), col_max=40)


@click.group(cls=Commands, context_settings=SETTINGS)
@click.version_option(__version__, "--version", message="kafkascope %(version)s")
def commands() -> None:
    """Read, decode and explain the Kafka protocol: a reference, a codec, traffic analysis.

    `kafkascope COMMAND --help` describes a command.
    """


class Refuse:
    """Hides packages that libraries import if they find them."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def run() -> None:
    """Entry point of a process: its settings apply to the whole process."""
    # If Ctrl-C can't be an exception, it ends the process: see `columnar.interrupt`.
    sys._kafkascope_own_process = True  # type: ignore[attr-defined]
    if sys.argv[1:2] == ["read"]:
        # pyarrow looks for pandas, numba for cffi. Neither is used here, and importing them takes a third of a second.
        sys.meta_path.insert(0, Refuse("pandas", "cffi"))
        # Objects loaded at the start are never freed: garbage collection of them takes a tenth of the time.
        gc.set_threshold(50_000)
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    if sys.stderr is None:
        # Closed by the caller (2>&-): print would write to standard output instead.
        sys.stderr = open(os.devnull, "w", encoding="utf-8", errors="replace")  # noqa: SIM115
    if sys.stdout is None:
        return _fail("kafkascope: standard output is closed", 3)
    if "utf" not in (sys.stdout.encoding or "").lower() and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without `·` shows `?`
    try:
        code = _answer(arguments)
        sys.stdout.flush()
        return code
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else _command_path(arguments)
        return _fail(f"{where}: {usage_line(error)} (see {where} --help)", 2)
    except KafkascopeError as error:
        return _fail(f"kafkascope: {error}", error.exit_code)
    except BrokenPipeError:
        # The reader has gone (`| head`).
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        return _fail(f"kafkascope: cannot write the output: {(error.strerror or str(error)).lower()}", 3)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except SystemError as error:
        # Ctrl-C on the way out of a kernel: Python finds a result and an exception.
        if isinstance(error.__cause__, KeyboardInterrupt):
            return INTERRUPTED
        raise


def _answer(arguments: list[str]) -> int:
    """Help is output too, and its reader may be gone."""
    try:
        if COMPLETING in os.environ:
            commands.main(arguments, prog_name="kafkascope")
        # Not through click's main, which turns a closed pipe into exit code 1.
        with commands.make_context("kafkascope", arguments) as context:
            result = commands.invoke(context)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0


def _command_path(arguments: list[str]) -> str:
    """The command of an option without its value, since click's error lacks it."""
    return f"kafkascope {arguments[0]}" if arguments[:1] and arguments[0] in COMMANDS else "kafkascope"


def _drop_output() -> None:
    from kafkascope.cli.terminal import drop

    drop(sys.stdout)


def _fail(message: str, code: int) -> int:
    from kafkascope.cli.terminal import note
    from kafkascope.formatting import printable

    note(printable(" ".join(message.split())))
    return code
