"""Recordings in, exchanges out: `read` one at a time, `read_batches` as Arrow columns, `decode_messages` their bodies.

Captures and request logs are told apart by what is in them. Captures given together are read as one recording, in the
order given, so that a connection goes on from one file to the next."""

import dataclasses
import io
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from kafkascope.capture.account import Account
from kafkascope.capture.decompress import Unpacked
from kafkascope.capture.exchange import Exchange, to_exchanges
from kafkascope.capture.exchange_columns import to_arrow
from kafkascope.capture.exchanges import ExchangeBatch, Pairer, Recordings
from kafkascope.capture.flow import Flows, Frames, Packets
from kafkascope.capture.frames import Framer
from kafkascope.capture.learn import Knowledge
from kafkascope.capture.log_lines import MARK
from kafkascope.capture.messages import MessageTable, Messages
from kafkascope.capture.packets import read_packets
from kafkascope.capture.pcap import MAGICS
from kafkascope.capture.pcapng import MAGIC
from kafkascope.capture.request_log import RequestLog
from kafkascope.capture.segments import SegmentReader
from kafkascope.capture.source import Input, Source, Waiting
from kafkascope.capture.tcp import Reassembler
from kafkascope.errors import InputError

# Where a request log must show itself: brokers log their start before the first request.
SNIFF_BYTES = 1 << 20

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
    """One pass over recordings. `account` is up to date while it goes on, and whole at the end."""

    def __init__(
        self, paths: Paths, *, names: bool = False, follow: bool = False, deadline: float | None = None
    ) -> None:
        many = isinstance(paths, Iterable) and not isinstance(paths, str | os.PathLike | io.IOBase)
        self._paths: list[Any] = list(paths) if many else [paths]  # type: ignore[arg-type]
        self._names = names
        self._waiting = Waiting(deadline) if follow else None
        self._deadline = deadline
        self._recordings = Recordings()
        self._capture: Capture | None = None
        self.account = Account()

    def batches(self) -> Iterator[ExchangeBatch]:
        """None of them is empty."""
        for path in self._paths:
            self._recordings.uris.append(_uri(path))
            self._recordings.first_packets.append(self.account.packets + self.account.log_lines)
            self.account.files += 1
            source, kind = sniff(path)
            for batch in self._log(source) if kind == "log" else self._packets(source):
                if len(batch):
                    self.account.add_batch(batch)
                    yield batch
        if self._capture is not None:
            for batch in self._capture.finish():
                if len(batch):
                    self.account.add_batch(batch)
                    yield batch
            self.account.lost_answers = self._capture.pairer.lost_answers

    def _packets(self, source: Input) -> Iterator[ExchangeBatch]:
        if self._capture is None:
            self._capture = Capture(self._recordings, self.account, names=self._names)
        first = self._recordings.first_packets[-1]
        bytes_before = self.account.bytes_read
        for packets in read_packets(source, follow=self._waiting is not None, deadline=self._deadline):
            self.account.packets += len(packets.start)
            self.account.bytes_read = bytes_before + packets.base + len(packets.data)
            self.account.add_times(packets.time_ns)
            numbered = dataclasses.replace(packets, first=packets.first + first)
            live = self._waiting is not None or not _is_file(source)
            yield from self._capture.feed(numbered, live=live)

    def _log(self, source: Input) -> Iterator[ExchangeBatch]:
        log = RequestLog(self._recordings, names=self._names)
        before = dataclasses.replace(self.account)
        for batch in log.read(source, self._waiting):
            self._count_log(log, before)
            self.account.add_times(batch.rows[:, _LAST_NS])
            yield batch
        self._count_log(log, before)

    def _count_log(self, log: RequestLog, before: Account) -> None:
        self.account.log_lines = before.log_lines + log.lines
        self.account.log_lines_unread = before.log_lines_unread + log.unread
        self.account.log_lines_without_time = before.log_lines_without_time + log.without_time


class Capture:
    """The steps from packets to exchanges, for all files of one recording."""

    def __init__(self, recordings: Recordings, account: Account, *, names: bool) -> None:
        flows = Flows()
        self._account = account
        self._segments = SegmentReader(flows)
        self._reassembler = Reassembler(flows)
        account.connections = self._reassembler.connections
        self._framer = Framer(self._reassembler.connections)
        self.pairer = Pairer(self._reassembler.connections, recordings, names=names)
        self._held: list[Frames] = []

    def feed(self, packets: Packets, *, live: bool) -> Iterator[ExchangeBatch]:
        """One step behind unless it is `live`: the last frames are paired together with the end, so that requests that
        nobody answered stand in their places."""
        segments = self._segments.feed(packets)
        pieces = self._reassembler.feed(segments)
        frames = self._framer.feed(pieces)
        self._note(packets, segments, pieces)
        for one in self._held:
            yield self.pairer.feed(one)
        self._held = []
        self._hold(frames)
        if live:
            yield self.pairer.feed(self._held.pop())

    def finish(self) -> Iterator[ExchangeBatch]:
        segments = self._segments.finish()
        pieces = self._reassembler.finish()
        self._hold(self._framer.feed(pieces))
        self._hold(self._framer.finish())
        self._note(segments, pieces)
        yield self.pairer.finish(join_frames(self._held))
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
    starts = np.cumsum([0, *(len(part.body) for part in parts)])
    ends = [np.zeros(1, dtype=np.int64)]
    ends += [part.ends[1:] - part.ends[0] + start for part, start in zip(parts, starts, strict=False)]
    columns = ("kind", "connection", "is_response", "offset", "lost", "first_ns", "time_ns", "packet")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    bodies = [part.body[part.ends[0] : part.ends[-1]] for part in parts]
    starts = np.cumsum([0, *map(len, bodies)])
    ends = [np.zeros(1, dtype=np.int64)]
    ends += [part.ends[1:] - part.ends[0] + start for part, start in zip(parts, starts, strict=False)]
    return Frames(body=np.concatenate(bodies), ends=np.concatenate(ends), **joined)


def sniff(source: Input) -> tuple[Input, str]:
    """What to read from, and whether it is a `capture` or a `log`."""
    given: Input = source
    if isinstance(source, str | os.PathLike) and os.fspath(source) != "-":
        raw = Source(source)
        try:
            if not _is_file(source):
                raise InputError(f"{raw.name} is neither a file nor `-`; `kafkascope read - < {raw.name}` reads a pipe")
            head = _read_head(raw)
        finally:
            raw.close()
    else:
        file = sys.stdin.buffer if source == "-" else source
        assert not isinstance(file, str | os.PathLike)
        held = _Peeked(file)
        given = held  # type: ignore[assignment]
        head = held.head
        raw = None
    name = "standard input" if source == "-" else _uri(source)
    content = bytearray(SNIFF_BYTES)
    count = Unpacked(Source(io.BytesIO(head))).fill(memoryview(content))
    start = bytes(content[:count])
    if not start and not head:
        raise InputError(f"{name} is empty")
    if start[:4] in MAGICS or start[:4] == MAGIC:
        return given, "capture"
    if MARK.encode() in start:
        return given, "log"
    if start and b"\0" not in start[:4096]:
        raise InputError(
            f"{name} is no recording: it is text without a line of a broker's request log; pcap, pcapng and"
            f" `{MARK}` lines are read"
        )
    raise InputError(f"{name} is no recording: its first bytes are neither pcap nor pcapng, plain or compressed")
