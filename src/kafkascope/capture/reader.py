"""Recordings in, exchanges out: `read` one at a time, `read_batches` as Arrow columns, `decode_messages` their bodies.

Captures given together are one recording, in the order given: a connection goes on from one file to the next."""

import dataclasses
import io
import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafkascope.capture.account import Account
from kafkascope.capture.exchange import Exchange, to_exchanges
from kafkascope.capture.exchange_columns import to_arrow
from kafkascope.capture.exchanges import ExchangeBatch, Pairer, Recordings
from kafkascope.capture.flow import Flows, Frames, Packets
from kafkascope.capture.frames import Framer
from kafkascope.capture.headers import LAST_NS
from kafkascope.capture.learn import Knowledge
from kafkascope.capture.messages import Messages, MessageTable
from kafkascope.capture.packets import read_packets
from kafkascope.capture.request_log import RequestLog
from kafkascope.capture.segments import SegmentReader
from kafkascope.capture.sniff import LOG, sniff, uri_of
from kafkascope.capture.source import Input, Waiting
from kafkascope.capture.tcp import Reassembler

Paths = Input | Iterable[Input]


def read(paths: Paths) -> Iterator[Exchange]:
    """Every exchange of one or more recordings. `paths` are files, `-` for standard input, or open binary files."""
    knowledge = Knowledge()
    for batch in Reading(paths, names=True).batches():
        knowledge.learn(batch)
        yield from to_exchanges(batch, knowledge.names(batch))


def read_batches(paths: Paths) -> Iterator[pa.RecordBatch]:
    """The same as record batches with the columns of `exchanges`."""
    for batch in Reading(paths).batches():
        yield to_arrow(batch)


def decode_messages(paths: Paths) -> Iterator[MessageTable]:
    """The bodies: one table after the other, each of one message, with `exchange_id` in front of its columns."""
    messages = Messages()
    for batch in Reading(paths).batches():
        yield from messages.add(batch)
    yield from messages.finish()


class Reading:
    """One pass over recordings. `names` asks for groups, members and topics; `kafka_ports` are taken for Kafka's where
    what a connection says does not tell; `follow` goes on at the end of a growing file until `deadline`, if there is
    one. `account` is up to date while it goes on, and whole at the end."""

    def __init__(
        self,
        paths: Paths,
        *,
        names: bool = False,
        kafka_ports: Collection[int] = (),
        follow: bool = False,
        deadline: float | None = None,
    ) -> None:
        one = isinstance(paths, str | os.PathLike | io.IOBase) or not isinstance(paths, Iterable)
        self._paths: list[Any] = [paths] if one else list(paths)  # type: ignore[arg-type]
        self._names = names
        self._ports = kafka_ports
        self._waiting = Waiting(deadline) if follow else None
        self._deadline = deadline
        self._recordings = Recordings()
        self._capture: Capture | None = None
        self.account = Account()

    def batches(self) -> Iterator[ExchangeBatch]:
        """None of them is empty."""
        for batch in self._all():
            if len(batch):
                self.account.add_batch(batch)
                yield batch

    def _all(self) -> Iterator[ExchangeBatch]:
        for path in self._paths:
            source, kind, pipe = sniff(path)
            self._recordings.uris.append(uri_of(path))
            self._recordings.first_packets.append(self.account.packets + self.account.log_lines)
            self.account.files += 1
            yield from self._log(source) if kind == LOG else self._packets(source, pipe or self._waiting is not None)
        if self._capture is not None:
            yield from self._capture.finish()

    def _packets(self, source: Input, live: bool) -> Iterator[ExchangeBatch]:
        if self._capture is None:
            self._capture = Capture(self._recordings, self.account, names=self._names, kafka_ports=self._ports)
        first = self._recordings.first_packets[-1]
        bytes_before = self.account.bytes_read
        for packets in read_packets(source, follow=self._waiting is not None, deadline=self._deadline):
            self.account.packets += len(packets.start)
            self.account.bytes_read = bytes_before + packets.base + len(packets.data)
            self.account.add_times(packets.time_ns)
            yield from self._capture.feed(dataclasses.replace(packets, first=packets.first + first), live=live)

    def _log(self, source: Input) -> Iterator[ExchangeBatch]:
        log = RequestLog(self._recordings, names=self._names)
        before = dataclasses.replace(self.account)
        for batch in log.read(source, self._waiting):
            self._count(log, before)
            self.account.add_times(batch.rows[:, LAST_NS])
            yield batch
        self._count(log, before)

    def _count(self, log: RequestLog, before: Account) -> None:
        self.account.log_lines = before.log_lines + log.lines
        self.account.log_lines_unread = before.log_lines_unread + log.unread
        self.account.log_lines_without_time = before.log_lines_without_time + log.without_time


class Capture:
    """The steps from packets to exchanges, for all files of one recording."""

    def __init__(self, recordings: Recordings, account: Account, *, names: bool, kafka_ports: Collection[int]) -> None:
        flows = Flows()
        self._account = account
        self._segments = SegmentReader(flows)
        self._reassembler = Reassembler(flows)
        account.connections = self._reassembler.connections
        self._framer = Framer(self._reassembler.connections, kafka_ports=kafka_ports)
        self._pairer = Pairer(self._reassembler.connections, recordings, names=names)
        self._held: list[Frames] = []

    def feed(self, packets: Packets, *, live: bool) -> Iterator[ExchangeBatch]:
        """One step behind unless it is `live`: the last frames are paired together with the end, so that requests that
        nobody answered stand in their places."""
        segments = self._segments.feed(packets)
        pieces = self._reassembler.feed(segments)
        frames = self._framer.feed(pieces)
        self._note(packets, segments, pieces)
        for one in self._held:
            yield self._pairer.feed(one)
        self._held = []
        self._hold(frames)
        if live:
            yield self._pairer.feed(self._held.pop())

    def finish(self) -> Iterator[ExchangeBatch]:
        segments = self._segments.finish()
        pieces = self._reassembler.finish()
        self._hold(self._framer.feed(pieces))
        self._hold(self._framer.finish())
        self._note(segments, pieces)
        yield self._pairer.finish(join_frames(self._held))
        self._account.lost_answers = self._pairer.lost_answers
        self._held = []

    def _hold(self, frames: Frames) -> None:
        self._account.add_frames(frames)
        self._account.add_problems(frames.problems)
        self._held.append(frames)

    def _note(self, *steps: Any) -> None:
        for step in steps:
            self._account.add_problems(step.problems)


def join_frames(parts: list[Frames]) -> Frames:
    """Several batches as one."""
    bodies = [part.body[part.ends[0] : part.ends[-1]] for part in parts]
    starts = np.cumsum([0, *map(len, bodies)])
    ends = [part.ends[1:] - part.ends[0] + start for part, start in zip(parts, starts, strict=False)]
    columns = ("kind", "connection", "is_response", "offset", "lost", "first_ns", "time_ns", "packet")
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    zero = np.zeros(1, dtype=np.int64)
    return Frames(body=np.concatenate(bodies), ends=np.concatenate([zero, *ends]), **joined)
