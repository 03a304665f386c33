"""Runs `observe`: polls on time, commits in parallel, shows progress, and loses nothing at the end."""

import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.cli.live.options import note_of_client
from kafkascope.cli.terminal import note, notes_width, takes_commands
from kafkascope.client.cluster import connect, time_limit
from kafkascope.client.observe.buffer import PollBatch, PollBuffer
from kafkascope.client.observe.observer import Observer, Poll
from kafkascope.formatting import count, number

if TYPE_CHECKING:
    from kafkascope.capture.exchanges.client_calls import ClientCall, ConnectionKey
    from kafkascope.client.answer import Answer
    from kafkascope.client.settings import Settings
    from kafkascope.pipeline.observed import ObservationWriter

MICROSECONDS = 1_000_000
INTERRUPTED = 130
# Long enough for a slow network, and short enough that a frozen node doesn't delay the polls of others.
LEAST_TIMEOUT = 1.0
# Of the time of --once: what connecting, which also loads the lake's libraries, leaves for the poll, and the least that
# the poll gets on a slow machine.
_POLL_SECONDS = 2.0
LEAST_POLL_SECONDS = 0.5
# For the last commit after Ctrl-C or SIGTERM: it takes a second, or a minute if kernels have to be compiled first. A
# stopped service is killed after thirty seconds (Kubernetes) or ninety (systemd).
LANDING_SECONDS = 10.0
# A problem is reported again if it returns after this many polls without it, since a frozen node is only asked in some
# polls.
POLLS_UNTIL_WELL = 10


@dataclass(frozen=True, slots=True)
class ObserveOptions:
    """Times are microseconds; `lasting` None means until it's stopped."""

    where: str
    every: int
    lasting: int | None
    once: bool
    groups: tuple[str, ...]
    commit_every: int


def observe(settings: "Settings", options: ObserveOptions, *, as_json: bool = False) -> int:
    totals, interrupted = asyncio.run(_observe(settings, options))
    if as_json:
        from kafkascope.cli.output import print_json

        print_json(totals)
    else:
        print(_account(totals, options.where))
    return INTERRUPTED if interrupted else 0


async def _observe(settings: "Settings", options: ObserveOptions) -> tuple[dict[str, Any], bool]:
    began = time.monotonic()
    early: list[Answer] = []
    async with AsyncExitStack() as stack:
        # Before it's connected, a signal ends it at once: nothing can be lost.
        with _once(options, max(settings.timeout - _POLL_SECONDS, settings.timeout / 2)):
            cluster = await stack.enter_async_context(
                connect(settings, every_answer=early.append, on_note=note_of_client)
            )
        stop = await stack.enter_async_context(_stopping())
        # Only now: it takes a second, and an unreachable cluster needs no lake.
        from kafkascope.lake.upkeep.upgrade import lake_to_write
        from kafkascope.pipeline.observed import ObservationWriter

        lake = lake_to_write(options.where)
        run_options: dict[str, object] = {"every_ms": options.every // 1000, "groups": list(options.groups)}
        writer = ObservationWriter(lake, str(settings.bootstrap[0]), secrets.token_hex(6), run_options)
        timeout = min(settings.timeout, max(LEAST_TIMEOUT, options.every / MICROSECONDS))
        run = _Run(options, Observer(cluster, options.groups, timeout, early), writer, stop)
        left = settings.timeout - (time.monotonic() - began)
        with _once(options, max(left, LEAST_POLL_SECONDS)):
            try:
                await run.polls()
            finally:
                await run.finish()
    written = writer.totals
    totals = {
        "lake": lake.uri,
        "polls": run.polled,
        "unanswered": run.unanswered,
        "commits": written.commits,
        "exchanges": written.exchanges,
        "quarantined": written.quarantined,
        "rows": written.rows,
    }
    return totals, stop.interrupted


def _once(options: ObserveOptions, seconds: float) -> AbstractContextManager[None]:
    """A single poll is one look."""
    return time_limit(seconds) if options.once else nullcontext()


class _Stop:
    """Set once by Ctrl-C, SIGTERM or the end of the time. After a signal, collected responses have some seconds to be
    committed; a second signal ends it at once."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.interrupted = False

    def hear(self, *, interrupted: bool) -> None:
        if self.event.is_set():
            self._leave()
        self.interrupted = self.interrupted or interrupted
        self.event.set()
        asyncio.get_running_loop().call_later(LANDING_SECONDS, self._leave)

    def _leave(self) -> None:
        """Exits at once, without waiting for a thread that compiles or writes. The lake shows what was committed."""
        note("kafkascope: stopped before the last polls were committed to the lake")
        sys.stderr.flush()
        os._exit(INTERRUPTED)

    async def within(self, seconds: float) -> bool:
        """Waits; returns whether it was set before the time had passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.event.wait()
        return self.event.is_set()


@asynccontextmanager
async def _stopping() -> AsyncIterator[_Stop]:
    stop, loop = _Stop(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: stop.hear(interrupted=True))
    loop.add_signal_handler(signal.SIGTERM, lambda: stop.hear(interrupted=False))
    try:
        yield stop
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)


class _Run:
    """One observer. Commits run in a thread, one after another, while polls keep their schedule."""

    def __init__(self, options: ObserveOptions, observer: Observer, writer: "ObservationWriter", stop: _Stop) -> None:
        self._options, self._observer, self._writer, self._stop = options, observer, writer, stop
        self._portions = PollBuffer(options.commit_every / MICROSECONDS)
        self._loading: asyncio.Task[None] | None = None
        self._committing: asyncio.Task[None] | None = None
        # Reported problems, and the last poll with each.
        self._reported: dict[str, int] = {}
        self._watched = _Watched()
        self.polled = self.unanswered = 0

    async def polls(self) -> None:
        every, began = self._options.every / MICROSECONDS, time.monotonic()
        until = None if self._options.lasting is None else began + self._options.lasting / MICROSECONDS
        if not self._options.once:
            ends = " until Ctrl-C" if until is None else ""
            note(f"observing every {every:g} s into {self._options.where}{ends}")
        # During the first poll, so that it's loaded when that poll ends.
        self._loading = asyncio.create_task(asyncio.to_thread(self._writer.load))
        turn = 0
        while True:
            await self._poll()
            turn = max(turn + 1, int((time.monotonic() - began) / every))
            following = began + turn * every
            if self._options.once or (until is not None and following >= until):
                if until is not None:
                    await self._stop.within(until - time.monotonic())
                return
            if await self._stop.within(following - time.monotonic()):
                return

    async def _poll(self) -> None:
        """Responses count even if their poll was cut short."""
        poll = Poll(time.time_ns())
        asking = asyncio.create_task(self._observer.poll(poll))
        stopped = asyncio.create_task(self._stop.event.wait())
        try:
            await asyncio.wait((asking, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (asking, stopped):
                task.cancel()
            await asyncio.wait((asking, stopped))
        if not asking.cancelled():
            asking.result()
        self.polled += 1
        self._portions.add(poll)
        self._say(poll)
        # Bytes are kept until the commit, since the values are ten times as large.
        poll.answers.clear()
        if self._portions.due:
            await self._commit()

    def _say(self, poll: Poll) -> None:
        missed = [failure for failure in poll.failures if not failure.reached]
        self.unanswered += bool(missed)
        for failure in poll.failures:
            if failure.detail not in self._reported:
                self._watched.remark(f"kafkascope: {failure.detail}")
            self._reported[failure.detail] = self.polled
        self._reported = {
            problem: last for problem, last in self._reported.items() if self.polled - last < POLLS_UNTIL_WELL
        }
        written = self._writer.totals
        self._watched.line(
            f"poll {number(self.polled)}: {count(len(poll.answers), 'call')}, {count(poll.groups, 'group')}; in the "
            f"lake {count(written.exchanges, 'exchange')} from {count(written.commits, 'commit')}"
            + (f"; {number(self.unanswered)} incomplete" if self.unanswered else "")
        )

    async def _commit(self, *, last: bool = False) -> None:
        await self._commit_done()
        if self._loading is not None:
            loading, self._loading = self._loading, None
            await loading
        portion = self._portions.take()
        still_open = frozenset() if last else self._observer.open_connections()
        self._committing = asyncio.create_task(asyncio.to_thread(self._write, portion, still_open))

    def _write(self, gathered: PollBatch, still_open: "frozenset[ConnectionKey]") -> None:
        from kafkascope.pipeline.observed import FailedPolls, Portion

        calls = [_called(answer) for answer in gathered.answers]
        failed = [FailedPolls(at, polls, problem) for problem, (at, polls) in gathered.failures.items()]
        self._writer.commit_portion(Portion(calls, failed, gathered.polls, still_open))

    async def _commit_done(self) -> None:
        if self._committing is not None:
            commit, self._committing = self._committing, None
            await commit

    async def finish(self) -> None:
        self._watched.clear()
        await self._commit(last=True)
        await self._commit_done()


def _called(answer: "Answer") -> "ClientCall":
    from kafkascope.capture.exchanges.client_calls import ClientCall

    return ClientCall(
        answer.client_address, str(answer.address), answer.connected_at, answer.request_bytes, answer.response_bytes,
        answer.sent_at, answer.received_at,
    )  # fmt: skip


class _Watched:
    """A line that updates itself on a terminal; elsewhere only problems are printed."""

    def __init__(self) -> None:
        self._moves = takes_commands(sys.stderr)

    def line(self, text: str) -> None:
        if self._moves:
            sys.stderr.write(f"\r\033[K{text[: notes_width() - 1]}")
            sys.stderr.flush()

    def remark(self, text: str) -> None:
        self.clear()
        note(text)

    def clear(self) -> None:
        if self._moves:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def _account(totals: dict[str, Any], where: str) -> str:
    from shlex import quote

    missed = f", {number(totals['unanswered'])} of them incomplete" if totals["unanswered"] else ""
    return (
        f"{count(totals['polls'], 'poll')}{missed}; {count(totals['exchanges'], 'exchange')} in "
        f"{count(totals['commits'], 'commit')}\nnext: kafkascope marts {quote(where)}"
    )
