"""One run of `read`: files and what is wanted of them in; lines, JSON, statistics or one exchange out."""

import json
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kafkascope.capture.exchange import Exchange, pick_exchanges, values_of
from kafkascope.capture.exchange_columns import to_arrow
from kafkascope.capture.learn import NO_NAMES, Knowledge, Names
from kafkascope.capture.reader import Reading
from kafkascope.capture.select import Wanted, select
from kafkascope.capture.stats import Stats
from kafkascope.cli.output import print_json
from kafkascope.cli.read_account import Progress, nothing_found, print_account
from kafkascope.cli.read_exchange import print_exchange, print_exchange_json
from kafkascope.cli.read_lines import Lines
from kafkascope.cli.read_stats import print_stats, stats_json
from kafkascope.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kafkascope.capture.exchanges import ExchangeBatch

HEX_DIGITS = frozenset("0123456789abcdef")
FULL_ID = 24


class Command:
    def __init__(self, files: tuple[str, ...], wanted: Wanted, ports: tuple[int, ...], *, follow: bool) -> None:
        self._files = files
        self._ports = ports
        self._wanted = wanted
        self._follow = follow
        self._knowledge = Knowledge()
        self._shown = 0

    def lines(self) -> int:
        lines = Lines()
        for batch, columns, chosen, names in self._chosen(names=True, quiet=sys.stdout.isatty()):
            lines.show(list(pick_exchanges(batch, names, columns, chosen)))
            if self._follow:
                sys.stdout.flush()
        return self._end()

    def json_lines(self) -> int:
        """A line an exchange, with the columns of `exchanges`."""
        write = sys.stdout.write
        for _, columns, chosen, _ in self._chosen(names=False, quiet=sys.stdout.isatty()):
            for row in rows_of(columns, chosen):
                write(json.dumps(row, ensure_ascii=False))
                write("\n")
            if self._follow:
                sys.stdout.flush()
        return self._end()

    def stats(self, *, as_json: bool) -> int:
        stats = Stats()
        for batch, columns, chosen, _ in self._chosen(names=False, quiet=False):
            if chosen:
                stats.add(columns if len(chosen) == len(batch) else columns.take(chosen))
        code = self._check()
        if as_json:
            print_json(stats_json(stats))
        else:
            print_stats(stats)
            print()
        self._account()
        return code

    def one(self, wanted_id: str, *, records: bool, full: bool, as_json: bool) -> int:
        start = wanted_id.lower()
        if not start or not set(start) <= HEX_DIGITS or len(start) > FULL_ID:
            raise UsageError(f"an exchange id has up to {FULL_ID} hex digits, as the first column shows them")
        found: list[tuple[Exchange, dict[str, Any]]] = []
        many = 0
        for batch, columns, _, names in self._chosen(names=True, quiet=False):
            ids = columns.column("exchange_id").to_pylist()
            matching = [index for index, name in enumerate(ids) if name.startswith(start)]
            many += len(matching)
            if matching and not found:
                (exchange,) = pick_exchanges(batch, names, columns, matching[:1])
                found.append((exchange, next(rows_of(columns, matching[:1]))))
            if many and len(start) == FULL_ID:
                break
        if not found:
            raise NotFoundError(
                f"no exchange has an id that starts with {wanted_id}; the first column of read shows them"
            )
        if many > 1:
            raise UsageError(
                f"{many} exchanges have an id that starts with {wanted_id}; give more digits (--json has all)"
            )
        exchange, row = found[0]
        if as_json:
            print_exchange_json(exchange, row, records=records)
        else:
            print_exchange(exchange, records=records, full=full)
        return 0

    def _chosen(self, *, names: bool, quiet: bool) -> "Iterator[tuple[ExchangeBatch, Any, list[int], list[Names]]]":
        """(batch, its columns, the rows that are wanted, names of all rows)"""
        names = names or self._wanted.needs_names
        self._reading = Reading(self._files, names=names, kafka_ports=self._ports, follow=self._follow)
        progress = Progress(self._reading.account, _total(self._files), quiet=quiet or self._follow)
        try:
            for batch in self._reading.batches():
                columns = to_arrow(batch)
                named = [NO_NAMES] * len(batch)
                if names:
                    self._knowledge.learn(batch)
                    named = self._knowledge.names(batch)
                chosen = list(range(len(batch)))
                if not self._wanted.everything:
                    chosen = select(self._wanted, batch, columns, named).nonzero()[0].tolist()
                self._shown += len(chosen)
                progress.clear()
                yield batch, columns, chosen, named
                progress.step()
        except KeyboardInterrupt:
            progress.clear()
            self._account()
            raise
        progress.clear()

    def _check(self) -> int:
        if not self._reading.account.exchanges:
            raise NotFoundError(nothing_found(self._reading.account, ", ".join(self._files)))
        return 0 if self._shown else 1

    def _end(self) -> int:
        code = self._check()
        sys.stdout.flush()
        self._account()
        return code

    def _account(self) -> None:
        print_account(self._reading.account, None if self._wanted.everything else self._shown)


def rows_of(columns: Any, chosen: list[int]) -> Iterator[dict[str, Any]]:
    """As JSON has them: times in ISO 8601."""
    if not chosen:
        return
    taken = columns if len(chosen) == columns.num_rows else columns.take(chosen)
    names = taken.schema.names
    for values in zip(*map(values_of, taken.columns), strict=True):
        yield {name: _plain(value) for name, value in zip(names, values, strict=True)}


def _plain(value: Any) -> Any:
    return value.isoformat(timespec="microseconds").replace("+00:00", "Z") if isinstance(value, datetime) else value


def _total(files: tuple[str, ...]) -> int | None:
    """Bytes to come, where all are plain files: of compressed ones nobody knows."""
    try:
        total = sum(os.stat(name).st_size for name in files if name != "-")
    except (OSError, ValueError):
        return None
    packed = any(name == "-" or name.endswith((".gz", ".xz", ".zst", ".lz4")) for name in files)
    return None if packed else total
