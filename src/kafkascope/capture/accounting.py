"""Counts what is read: files, packets, log lines and bytes, over all files and in each of them."""

import dataclasses
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafkascope.capture.base.flow import Packets, Problem
from kafkascope.capture.exchanges.account import Account
from kafkascope.capture.exchanges.exchange_columns import KNOWN_FROM_NS
from kafkascope.capture.exchanges.exchanges import ExchangeBatch, Recordings
from kafkascope.capture.exchanges.file_tally import FileTallies
from kafkascope.capture.frames.headers import Frame
from kafkascope.capture.resume.reread import after
from kafkascope.capture.sniff import Recording

if TYPE_CHECKING:
    from kafkascope.capture.request_log.reader import RequestLog


class Accounting:
    """`account` counts over all files, `tallies` by file. `earlier_packets` are those that earlier runs counted, or
    that are skipped here: packets are numbered after them."""

    def __init__(self) -> None:
        self.recordings = Recordings()
        self.account = Account()
        self.tallies = FileTallies(self.recordings)
        self.earlier_packets = 0
        self._file: io.FileIO | None = None
        self._file_bytes = 0

    @property
    def file_bytes(self) -> int:
        """Bytes of regular files read so far, as stored (perhaps compressed)."""
        return self._file_bytes + (self._file.tell() if self._file is not None else 0)

    @contextmanager
    def file(self, uri: str, recording: Recording) -> Iterator[None]:
        """Counts for this file while it is read, and closes it at the end."""
        self._file = recording.file
        try:
            self.recordings.uris.append(uri)
            counted = self.account.packets + self.account.log_lines
            self.recordings.first_packets.append(self.earlier_packets + counted)
            self.account.begin(uri)
            yield
            if recording.problem:
                self.add_unpack_problem(recording.problem)
        finally:
            if recording.file is not None:
                self._file_bytes, self._file = self.file_bytes, None
                recording.file.close()

    def add_unpack_problem(self, detail: str) -> None:
        self.account.add_problems([Problem("compression", detail, -1, -1, 0)])

    def count_packets(self, batches: Iterable[Packets], skip: int) -> Iterator[Packets]:
        """The packets of the current file without the first `skip`, numbered over all files."""
        account = self.account
        first = self.recordings.first_packets[-1]
        tally = self.tallies.of(len(self.recordings.uris) - 1)
        bytes_before = account.bytes_read
        for batch in batches:
            packets = after(batch, skip)
            self.earlier_packets += len(batch.start) - len(packets.start)
            account.packets += len(packets.start)
            account.bytes_read = bytes_before + packets.base + len(packets.data)
            tally.packets += len(packets.start)
            if len(packets.start):
                span = int(packets.time_ns.min()), int(packets.time_ns.max())
                account.add_span(*span)
                tally.add_span(*span)
            yield dataclasses.replace(packets, first=packets.first + first) if first else packets

    def count_lines(self, log: "RequestLog", batches: Iterable[ExchangeBatch]) -> Iterator[ExchangeBatch]:
        """The batches of a request log, the current file."""
        tally = self.tallies.of(len(self.recordings.uris) - 1)
        before = dataclasses.replace(self.account)
        for batch in batches:
            self._count_lines(log, before)
            times = batch.rows[batch.rows[:, Frame.FIRST_NS] >= KNOWN_FROM_NS, Frame.LAST_NS]
            self.account.add_times(times)
            tally.add_times(times)
            yield batch
        self._count_lines(log, before)
        tally.log_lines += log.lines

    def _count_lines(self, log: "RequestLog", before: Account) -> None:
        self.account.log_lines = before.log_lines + log.lines
        self.account.log_lines_unread = before.log_lines_unread + log.unread
        self.account.log_lines_without_time = before.log_lines_without_time + log.without_time
        self.account.add_problems(log.problems.take())
