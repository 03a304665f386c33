"""Runs `read`: lines, JSON, statistics or one exchange of the selected files."""

import os
import signal
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from kafkascope.capture.exchanges.exchange import TOGETHER, Exchange, pick_exchanges, portions, values_of
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.name_cache import NO_NAMES, NameCache, Names
from kafkascope.capture.query.select import ExchangeFilter, select
from kafkascope.capture.query.stats import Stats
from kafkascope.capture.reader import Reading
from kafkascope.cli.output import json_text, print_json
from kafkascope.cli.read.account import Progress, nothing_found, print_account
from kafkascope.cli.read.lines import Lines
from kafkascope.cli.read.stats import print_stats, stats_json
from kafkascope.cli.terminal import note
from kafkascope.errors import InputError, NotFoundError, UsageError
from kafkascope.formatting import printable
from kafkascope.limits import MAX_CAREFUL_FRAME_BYTES
from kafkascope.times import iso

if TYPE_CHECKING:
    from kafkascope.capture.exchanges.exchanges import ExchangeBatch

HEX_DIGITS = frozenset("0123456789abcdef")
FULL_ID = 24
_BAD_INPUT = InputError.exit_code


class Command:
    """Returns 3 if a file could not be read, even if others were."""

    def __init__(
        self, files: tuple[str, ...], selection: ExchangeFilter, ports: tuple[int, ...], *, follow: bool
    ) -> None:
        self._files = files
        self._selection = selection
        self._follow = follow
        self._knowledge = NameCache()
        self._shown = 0
        self._failed = False
        self._progress: Progress | None = None
        self._reading = Reading(
            files, kafka_ports=ports, follow=follow, on_change=self._note, on_bad=self._bad, on_step=self._step
        )

    def lines(self) -> int:
        lines = Lines()
        with self._report_on_interrupt():
            for batch, columns, chosen, names in self._chosen(names=True, quiet=_is_pipe()):
                if chosen:
                    self._clear()
                    exchanges = pick_exchanges(batch, names, columns, chosen, longest=MAX_CAREFUL_FRAME_BYTES)
                    while some := list(islice(exchanges, TOGETHER)):
                        lines.show(some)
                    del exchanges
                    sys.stdout.flush()
                del batch, columns, names
        return self._end()

    def json_lines(self) -> int:
        """Prints one line per exchange, with the columns of `exchanges`."""
        write = sys.stdout.write
        with self._report_on_interrupt():
            for batch, columns, chosen, _ in self._chosen(names=False, quiet=_is_pipe()):
                if chosen:
                    self._clear()
                for row in rows_of(columns, chosen):
                    write(json_text(row))
                    write("\n")
                sys.stdout.flush()
                del batch, columns
        return self._end()

    def stats(self, *, as_json: bool) -> int:
        stats = Stats()
        with self._report_on_interrupt(lambda: self._print_stats(stats, as_json)):
            for batch, columns, chosen, _ in self._chosen(names=False, quiet=False):
                if chosen:
                    stats.add(columns if len(chosen) == len(batch) else columns.take(chosen))
                del batch, columns
        self._clear()
        if self._reading.account.exchanges:
            self._print_stats(stats, as_json)
        return self._end()

    def _print_stats(self, stats: Stats, as_json: bool) -> None:
        if as_json:
            print_json(stats_json(stats))
        elif self._shown:
            print_stats(stats)
            print()

    def one_exchange(self, wanted_id: str, *, records: bool, full: bool, as_json: bool) -> int:
        start = wanted_id.lower()
        if not start or not set(start) <= HEX_DIGITS or len(start) > FULL_ID:
            raise UsageError(f"an exchange id has up to {FULL_ID} hex digits, as in the first column of read")
        matches: list[tuple[Exchange, dict[str, Any]]] = []
        # By id, since a log may have a line twice, and no digit would distinguish those.
        fitting: set[str] = set()
        with self._report_on_interrupt():
            for batch, columns, _, names in self._chosen(names=True, quiet=False):
                ids = columns.column("exchange_id").to_pylist()
                matching = [index for index, name in enumerate(ids) if name.startswith(start)]
                fitting.update(ids[index] for index in matching)
                if matching and not matches:
                    (exchange,) = pick_exchanges(batch, names, columns, matching[:1])
                    matches.append((exchange, next(rows_of(columns, matching[:1]))))
                if matches and len(start) == FULL_ID:
                    break
        self._clear()
        if not matches:
            return self._not_found(f"no exchange id starts with {wanted_id}; the first column of read shows the ids")
        if len(fitting) > 1:
            raise UsageError(f"{len(fitting)} exchange ids start with {wanted_id}; give more digits (--json has all)")
        from kafkascope.cli.read.exchange import print_exchange, print_exchange_json

        exchange, row = matches[0]
        if as_json:
            print_exchange_json(exchange, row, records=records)
        else:
            print_exchange(exchange, records=records, full=full)
        return _BAD_INPUT if self._failed else 0

    def _chosen(self, *, names: bool, quiet: bool) -> "Iterator[tuple[ExchangeBatch, Any, list[int], list[Names]]]":
        """(batch, its columns, matching rows, names of all rows)"""
        names = names or self._selection.needs_names
        self._reading.names = names
        self._progress = Progress(self._reading.account, None if self._follow else _total(self._files), quiet=quiet)
        for batch in self._reading.batches():
            columns = to_arrow(batch)
            named = [NO_NAMES] * len(batch)
            if names:
                self._knowledge.learn(batch)
                named = self._knowledge.names(batch)
            chosen = list(range(len(batch)))
            if not self._selection.everything:
                chosen = select(self._selection, batch, columns, named).nonzero()[0].tolist()
            self._shown += len(chosen)
            yield batch, columns, chosen, named
            del batch, columns, named
            self._step()

    def _step(self) -> None:
        if self._progress is not None and not self._reading.live:
            self._progress.step(self._reading.file_bytes)

    def _clear(self) -> None:
        if self._progress is not None:
            self._progress.clear()

    def _note(self, text: str) -> None:
        self._clear()
        note(printable(f"kafkascope: {text}"))

    def _bad(self, error: InputError) -> None:
        """The error of the only file is the result; among others it's a remark."""
        account = self._reading.account
        if len(self._files) == 1 and not account.packets and not account.log_lines:
            raise error
        self._note(str(error))
        self._failed = True

    @contextmanager
    def _report_on_interrupt(self, first: Callable[[], None] = lambda: None) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            # A second Ctrl-C would only interrupt this summary.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._clear()
            first()
            sys.stdout.flush()
            self._account()
            raise

    def _end(self) -> int:
        self._clear()
        sys.stdout.flush()
        account = self._reading.account
        if account.exchanges:
            self._account()
        elif account.files:
            return self._not_found(nothing_found(account, ", ".join(self._files), self._growing()))
        return _BAD_INPUT if self._failed else 0 if self._shown else 1

    def _not_found(self, problem: str) -> int:
        """The exchange may be in a file that could not be read."""
        if not self._failed:
            raise NotFoundError(problem)
        self._note(problem)
        return _BAD_INPUT

    def _account(self) -> None:
        shown = None if self._selection.everything else self._shown
        print_account(self._reading.account, shown, self._growing(), self._reading.by_file())

    def _growing(self) -> Collection[str]:
        """Files for which the summary mentions --follow."""
        return () if self._follow else self._reading.plain_files


def _is_pipe() -> bool:
    """The reader of the pipe may be printing to this terminal."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return True


def rows_of(columns: Any, chosen: list[int]) -> Iterator[dict[str, Any]]:
    """Values for JSON: times in ISO 8601."""
    names = columns.schema.names
    for _, taken in portions(columns, chosen):
        for values in zip(*map(values_of, taken.columns), strict=True):
            yield {name: _plain(value) for name, value in zip(names, values, strict=True)}


def _plain(value: Any) -> Any:
    return iso(value) if isinstance(value, datetime) else value


def _total(files: tuple[str, ...]) -> int | None:
    """The number of bytes to read, if all are regular files."""
    try:
        stats = [os.stat(name) for name in files if name != "-"]
    except (OSError, ValueError):
        return None
    regular = len(stats) == len(files) and all(stat.S_ISREG(status.st_mode) for status in stats)
    return sum(status.st_size for status in stats) if regular else None
