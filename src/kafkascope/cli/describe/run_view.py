"""Runs a command that prints a view of a cluster, once, or every few seconds with `--watch`.

On a terminal the next view replaces the last. Elsewhere each is a block of its own, or a line of JSON.
"""

import asyncio
import contextlib
import io
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from kafkascope import formatting
from kafkascope.cli import terminal
from kafkascope.cli.arguments import json_option
from kafkascope.cli.live.options import live_options, note_of_client, settings_from
from kafkascope.errors import ReachError, RefusedError, UsageError
from kafkascope.times import iso, readable

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")
T = TypeVar("T")

SECONDS = "2"
LEAST_SECONDS = 0.1
HOME, CLEAR_LINE, CLEAR_BELOW = "\033[H", "\033[K", "\033[J"
CLEAR_ALL, HIDE_CURSOR, SHOW_CURSOR = "\033[2J", "\033[?25l", "\033[?25h"


def view_options(command: F) -> F:
    """Adds `--watch`, `--json`, and the options of a connection."""
    watch = click.option(
        "--watch",
        metavar="[SECONDS]",
        is_flag=False,
        flag_value=SECONDS,
        default=None,
        callback=as_seconds,
        help="Repeat every SECONDS, by default 2, until Ctrl-C.",
    )
    return watch(json_option(live_options(command)))


def as_seconds(_: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """The value of `--watch` is optional, so the argument after it may be HOST."""
    if text is None:
        return None
    flag = f"--{parameter.name}"
    try:
        seconds = float(text)
    except ValueError:
        raise UsageError(f"{flag}: '{text}' isn't a number of seconds; put HOST before it") from None
    if not LEAST_SECONDS <= seconds <= 86_400:
        raise UsageError(f"{flag}: {seconds:g} isn't between {LEAST_SECONDS:g} and 86400 seconds")
    return seconds


def run_view(
    host: str, options: Mapping[str, Any], ask: "Callable[[Cluster], Awaitable[V]]", show: Callable[[V], int | None]
) -> int:
    """`options` are the command's own. `show` prints, and returns an exit code other than 0 if there is one."""
    every: float | None = options["watch"]
    settings = settings_from(host, options)
    return asyncio.run(_run_view(settings, ask, show, bool(options["as_json"]), every))


async def _run_view(
    settings: Any,
    ask: "Callable[[Cluster], Awaitable[V]]",
    show: Callable[[V], int | None],
    as_json: bool,
    every: float | None,
) -> int:
    from kafkascope.client.cluster import connect, time_limit

    async with contextlib.AsyncExitStack() as stack:
        with time_limit(settings.timeout):
            cluster = await stack.enter_async_context(connect(settings, on_note=note_of_client))
            view: V | None = await ask(cluster)
        if every is None:
            return _once(view, show, as_json)
        screen = terminal.takes_commands(sys.stdout) and not as_json
        terminal.colours()  # decided by the terminal itself, before its text is buffered
        try:
            if screen:
                sys.stdout.write(HIDE_CURSOR + CLEAR_ALL)
            while True:
                if view is not None:
                    _refresh(view, show, as_json, every, screen)
                await asyncio.sleep(every)
                view = await _view_or_none(cluster, ask, screen)
        finally:
            if screen:
                sys.stdout.write(SHOW_CURSOR)
                sys.stdout.flush()


async def _view_or_none(cluster: "Cluster", ask: "Callable[[Cluster], Awaitable[V]]", screen: bool) -> V | None:
    """None if nobody responded, so that a watch survives a restart."""
    try:
        with cluster.look():
            return await ask(cluster)
    except ReachError as error:
        notice = f"{datetime.now(UTC):%H:%M:%S} {formatting.printable(str(error))}; retrying"
        if screen:
            sys.stdout.write(HOME + terminal.paint(notice, "red") + CLEAR_LINE)
            sys.stdout.flush()
        else:
            terminal.note(f"kafkascope: {notice}")
        return None


def _once(view: Any, show: Callable[[Any], int | None], as_json: bool) -> int:
    if as_json:
        from kafkascope.cli.output import print_json

        print_json(_stamped(view))
        return refusals_of(view)
    return show(printable(view)) or 0


def _refresh(view: Any, show: Callable[[Any], int | None], as_json: bool, every: float, screen: bool) -> None:
    if as_json:
        from kafkascope.cli.output import json_text

        print(json_text(_stamped(view)), flush=True)
        return
    terminal.width.cache_clear()  # the window may have been resized
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        terminal.remark(f"{readable(datetime.now(UTC))} UTC, every {every:g} s")
        show(printable(view))
    lines = text.getvalue().splitlines()
    if not screen:
        print("\n".join(lines), end="\n\n", flush=True)
        return
    room = shutil.get_terminal_size((100, 24)).lines
    if len(lines) > room:
        rest = len(lines) - room + 1
        lines = [*lines[: room - 1], terminal.paint(f"… {rest} more lines; a taller window shows them", "dim")]
    sys.stdout.write(HOME + (CLEAR_LINE + "\r\n").join(lines) + CLEAR_LINE + CLEAR_BELOW)
    sys.stdout.flush()


async def describe_several(
    names: Sequence[str], ask: Callable[[str], Awaitable[T]]
) -> tuple[tuple[T, ...], tuple[str, ...]]:
    """Each name once. A name that is refused or gets no response doesn't hide the others; if all are, raises the first
    such error."""
    from kafkascope.client.describe.calls import map_limited
    from kafkascope.client.describe.gaps import FAILURES, Failure

    async def ask_or_error(name: str) -> T | RefusedError | Failure:
        try:
            return await ask(name)
        except RefusedError as error:
            return error
        except FAILURES as error:
            # it names a node, but not the subject
            return type(error)(f"{name}: {error}") if len(names) > 1 else error

    answers = await map_limited(dict.fromkeys(names), ask_or_error)
    views = [answer for answer in answers if not isinstance(answer, (RefusedError, *FAILURES))]
    refusals = [answer for answer in answers if isinstance(answer, (RefusedError, *FAILURES))]
    if refusals and not views:
        raise refusals[0]
    return tuple(views), tuple(map(str, refusals))


def printable(value: T) -> T:
    """The same view without control characters in its texts, since clients choose their ids."""
    return cast("T", _printable(value))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return formatting.printable(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _printable(getattr(value, field.name)) for field in fields(value)})
    return tuple(map(_printable, value)) if isinstance(value, tuple) else value


def _stamped(view: Any) -> dict[str, Any]:
    from kafkascope.cli.output import plain

    return {"observed_at": iso(datetime.now(UTC), "milliseconds"), **plain(view)}


def refusals_of(view: Any) -> int:
    """1 if something requested by name was refused."""
    return 1 if getattr(view, "refused", ()) else 0
