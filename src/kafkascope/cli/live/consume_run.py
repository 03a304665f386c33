"""Runs `consume`: prints records of a share group as they come, and acknowledges each as was asked."""

import asyncio
import os
import signal
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from kafkascope.cli.bytes.records_view import data_text
from kafkascope.cli.live.options import note_of_client
from kafkascope.cli.output import json_text
from kafkascope.cli.terminal import note, paint
from kafkascope.client.cluster import connect, time_limit
from kafkascope.client.consumer.options import check_options
from kafkascope.client.consumer.share_consumer import share_consumer
from kafkascope.errors import KafkascopeError, NotFoundError, RefusedError, UsageError
from kafkascope.formatting import count, printable
from kafkascope.schema.errors.error_codes import error_name
from kafkascope.schema.names import clip
from kafkascope.times import iso, moment_of

if TYPE_CHECKING:
    from kafkascope.client.consumer.batch import ShareRecord
    from kafkascope.client.consumer.results import Refused
    from kafkascope.client.consumer.share_consumer import ShareConsumer
    from kafkascope.client.settings import Settings

_UNKNOWN_TOPICS = (3, 100)
_LETTERS = {"a": "accept", "l": "release", "j": "reject", "n": "renew", "q": "quit"}
_OUTCOMES = ("accept", "release", "reject")
# A terminal gives a line at a time, and no longer ones.
_LONGEST_LINE = 4_096
_QUESTION = "accept (a), release (l), reject (j), renew its lock (n) or quit (q)? "


@dataclass(frozen=True, slots=True)
class ConsumeOptions:
    """`outcome` is accept, release, reject or ask; `most` and `seconds` end it, None is never."""

    group: str
    topics: tuple[str, ...]
    outcome: str
    most: int | None
    seconds: float | None
    records: bool
    full: bool
    as_json: bool


def consume(settings: "Settings", options: ConsumeOptions) -> int:
    if options.outcome == "ask" and not (sys.stdin is not None and sys.stdin.isatty()):
        raise UsageError("--ask needs a terminal; without one use --accept, --release or --reject")
    check_options(options.group, options.topics, {})
    return asyncio.run(_Run(settings, options).run())


class _Run:
    def __init__(self, settings: "Settings", options: ConsumeOptions) -> None:
        self.settings, self.options = settings, options
        self.outcomes: Counter[str] = Counter()
        self.refused = 0
        # Records that are held until the end.
        self.kept: list[ShareRecord] = []

    async def run(self) -> int:
        await self._check_topics()
        options = self.options
        # Fewer records than a batch has are acquired where brokers can do that: each delivery counts.
        limit: dict[str, Any] = {}
        if options.outcome == "ask":
            limit = {"max_records": 1, "acquire_mode": None}
        elif options.most is not None:
            limit = {"max_records": min(options.most, 500), "acquire_mode": None}
        joined = failed = False
        try:
            async with share_consumer(
                self.settings,
                group=options.group,
                topics=options.topics,
                # Records that wait for a person, or for the end, stay locked where brokers can do that.
                renew=None if options.outcome in ("ask", "release") else False,
                # Nor is a record locked that nobody looks at.
                read_ahead=0,
                on_refused=self._note_refused,
                on_note=note_of_client,
                **limit,
            ) as consumer:
                joined = True
                async with _until_terminated():
                    await self._take_all(consumer)
                for record in self.kept:
                    if record.acknowledged is None:
                        record.release()
                self.kept.clear()
        except KafkascopeError:
            failed = True
            raise
        finally:
            # An error before the first record is all there is to say.
            if joined and (self.outcomes or self.refused or not failed):
                self._account()
        return 1 if self.refused else 0

    async def _check_topics(self) -> None:
        """A topic may be created later, but a name that was typed wrong never is."""
        with time_limit(self.settings.timeout):
            async with connect(self.settings, on_note=note_of_client) as cluster:
                if cluster.controllers:
                    return
                topics = [{"name": topic} for topic in dict.fromkeys(self.options.topics)]
                answer = await cluster.call("Metadata", {"topics": topics, "allowAutoTopicCreation": False})
        for row in answer.value["topics"]:
            code = row["errorCode"]
            name = clip(row["name"] or "")
            if code in _UNKNOWN_TOPICS:
                raise NotFoundError(f"{answer.address}: there is no topic {name}")
            if code == 29:
                raise RefusedError(f"{answer.address}: topic {name}: {error_name(code)} ({code}); it needs READ", code)
            if code not in (0, 5):
                raise RefusedError(f"{answer.address}: topic {name}: {error_name(code)} ({code})", code)

    async def _take_all(self, consumer: "ShareConsumer") -> None:
        options = self.options
        until = None if options.seconds is None else time.monotonic() + options.seconds
        printed = 0
        while options.most is None or printed < options.most:
            left = None if until is None else until - time.monotonic()
            batch = None if left is not None and left <= 0 else await consumer.take(left)
            if batch is None:
                return
            room = len(batch) if options.most is None else options.most - printed
            records = list(islice(batch, room))
            # More came than was asked for: other members get them at once.
            for record in islice(batch, room, None):
                record.release()
            printed += len(records)
            if options.outcome == "ask":
                if not await self._ask(records):
                    batch.release()
                    return
                continue
            for record in records:
                self._print(record)
            # Where it can be read, before any of it is acknowledged: a reader that has gone gets none of them accepted.
            sys.stdout.flush()
            for record in records:
                self._settle(record, options.outcome)

    async def _ask(self, records: list["ShareRecord"]) -> bool:
        """Whether to go on."""
        for record in records:
            self._print(record)
            sys.stdout.flush()
            while (choice := _LETTERS.get((await _typed()).strip().lower()[:1], "")) not in _OUTCOMES:
                if choice == "renew":
                    try:
                        record.renew()
                    except UsageError as error:  # by brokers that can't
                        note(f"kafkascope: {error}")
                elif choice == "quit":
                    return False
            self._settle(record, choice)
        return True

    def _settle(self, record: "ShareRecord", outcome: str) -> None:
        self.outcomes[outcome] += 1
        if outcome == "accept":
            record.accept()
        elif outcome == "reject":
            record.reject()
        elif self.options.outcome == "ask":
            record.release()
        else:
            self.kept.append(record)

    def _print(self, record: "ShareRecord") -> None:
        print(json_text(_json(record, self.options)) if self.options.as_json else _line(record, self.options))

    def _note_refused(self, part: "Refused") -> None:
        self.refused += part.records
        note(f"kafkascope: {printable(str(part))}")

    def _account(self) -> None:
        past = {"accept": "accepted", "release": "released", "reject": "rejected"}
        parts = [f"{number:,} {past[outcome]}" for outcome, number in sorted(self.outcomes.items())]
        refused = f"; {count(self.refused, 'acknowledgement')} did not count" if self.refused else ""
        total = count(sum(self.outcomes.values()), "record")
        note(f"kafkascope: {total} of share group {printable(self.options.group)}{': ' if parts else ''}"
             f"{', '.join(parts)}{refused}")  # fmt: skip


@asynccontextmanager
async def _until_terminated() -> AsyncIterator[None]:
    """SIGTERM ends the block, and the run goes on after it."""
    task, loop, terminated = asyncio.current_task(), asyncio.get_running_loop(), False
    assert task is not None

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        yield
    except asyncio.CancelledError:
        if not terminated or task.uncancel():
            raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _typed() -> str:
    """A line of the terminal; its end is the end of the run. Not by a thread: it would wait on after Ctrl-C."""
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    line: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not line.done():
            line.set_result(os.read(terminal, _LONGEST_LINE))

    sys.stderr.write(_QUESTION)
    sys.stderr.flush()
    loop.add_reader(terminal, read)
    try:
        return (await line).decode(errors="replace") or "q"
    finally:
        loop.remove_reader(terminal)


def _line(record: "ShareRecord", options: ConsumeOptions) -> str:
    place = f"{printable(record.topic)}-{record.partition}"
    moment = moment_of(record.timestamp * 1000)
    at = iso(moment, "milliseconds") if moment is not None and record.timestamp >= 0 else "no time"
    delivery = "" if record.delivery_count == 1 else f"  delivery {record.delivery_count}"
    head = f"{paint(place, 'bold')} {record.offset}  {at}{delivery}"
    if not options.records:
        headers = f"  {count(len(record.headers), 'header')}" if record.headers else ""
        return f"{head}  key {_size(record.key)}  value {_size(record.value)}{headers}"
    parts = [head, f"key {data_text(record.key, options.full)}", f"value {data_text(record.value, options.full)}"]
    parts += [f"header {printable(name)}={data_text(value, options.full)}" for name, value in record.headers]
    return "  ".join(parts)


def _size(data: bytes | None) -> str:
    return "null" if data is None else count(len(data), "byte")


def _json(record: "ShareRecord", options: ConsumeOptions) -> dict[str, Any]:
    lock = record.lock_until
    value: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "deliveryCount": record.delivery_count,
        "lockUntil": None if lock is None else iso(lock, "milliseconds"),
        "keyBytes": None if record.key is None else len(record.key),
        "valueBytes": None if record.value is None else len(record.value),
        "headerCount": len(record.headers),
    }
    if options.records:
        value["key"], value["value"] = _base64(record.key), _base64(record.value)
        value["headers"] = [{"key": name, "value": _base64(data)} for name, data in record.headers]
    return value


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()
