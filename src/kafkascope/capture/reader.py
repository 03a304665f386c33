"""Reads recordings: `read` yields exchanges one at a time, `read_batches` Arrow columns, `decode_messages` the bodies.

Captures that are read together are one recording, in the order of their first packets: a connection continues from one
file to the next."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkascope.capture.accounting import Accounting
from kafkascope.capture.exchanges.account import Account
from kafkascope.capture.exchanges.exchange import Exchange, to_exchanges
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.exchanges import Ends, ExchangeBatch, Recordings
from kafkascope.capture.exchanges.file_tally import FileTally
from kafkascope.capture.exchanges.name_cache import NameCache
from kafkascope.capture.files.decompress import DecompressedFile, Decompressor
from kafkascope.capture.files.file_order import by_first_packet
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.files.source import FollowPolicy, Input, Source, inputs
from kafkascope.capture.following import Following
from kafkascope.capture.formats import LOG
from kafkascope.capture.part_run import PartRun
from kafkascope.capture.resume.run import WHOLE, Part
from kafkascope.capture.resume.state import Carried
from kafkascope.capture.resume.stretch import cut_packets
from kafkascope.capture.sniff import Recording, sniff, uri_of
from kafkascope.errors import InputError

if TYPE_CHECKING:
    from kafkascope.capture.exchanges.messages import MessageTable
    from kafkascope.capture.request_log.reader import RequestLog

Paths = Input | Iterable[Input]


def read(paths: Paths) -> Iterator[Exchange]:
    """Every exchange of one or more recordings. `paths` are files, `-` for standard input, or open binary files."""
    knowledge = NameCache()
    for batch in Reading(paths, names=True).batches():
        knowledge.learn(batch)
        yield from to_exchanges(batch, knowledge.names(batch))


def read_batches(paths: Paths) -> Iterator[pa.RecordBatch]:
    """The same as record batches with the columns of `exchanges`."""
    for batch in Reading(paths).batches():
        yield to_arrow(batch)


def decode_messages(paths: Paths) -> "Iterator[MessageTable]":
    """The bodies: one table after another, each of one message, with `exchange_id` in front of its columns."""
    from kafkascope.capture.exchanges.messages import (
        Messages,  # the decoder is slow to import, and listing exchanges doesn't need it
    )

    messages = Messages()
    for batch in Reading(paths).batches():
        yield from messages.add(batch)
    yield from messages.finish()


class Reading:
    """One pass over recordings. `names` adds groups, members and topics; `kafka_ports` are taken for Kafka if the bytes
    of a connection don't show its protocol. `account` is up to date during the pass, and complete at the end.

    `follow` continues at the end of a growing file until `deadline`, if there is one, and with the next file if one of
    the same name replaces it: `on_change` is called with a sentence about it. `on_bad` gets the error of a file that
    can't be read, and the others are read; without it the error is raised. `on_step` is called now and then, also while
    no exchange is found, `on_file` before a file is opened.

    `part` means that another run reads more, before, after or at the same time; `carried` is then for the next run.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        names: bool = False,
        kafka_ports: Collection[int] = (),
        follow: bool = False,
        deadline: float | None = None,
        on_change: Callable[[str], None] = lambda _: None,
        on_bad: Callable[[InputError], None] | None = None,
        on_step: Callable[[], None] = lambda: None,
        on_file: Callable[[str], None] = lambda _: None,
        part: Part | None = None,
    ) -> None:
        self._paths = inputs(paths)
        self._part = part or WHOLE
        self._on_bad, self._on_step, self._on_file = on_bad, on_step, on_file
        self._following = Following(FollowPolicy(deadline) if follow else None, on_change)
        self._accounting = Accounting()
        self._run = PartRun(self._part, self._accounting, kafka_ports)
        self.names = names
        self.live = False
        self._file_number = -1
        self._is_over = False
        # Files that end too early, for which `follow` would help.
        self.plain_files: set[str] = set()

    @property
    def account(self) -> Account:
        return self._accounting.account

    @property
    def recordings(self) -> Recordings:
        return self._accounting.recordings

    @property
    def file_bytes(self) -> int:
        """Bytes of regular files read so far, as stored (perhaps compressed)."""
        return self._accounting.file_bytes

    @property
    def carried(self) -> list[Carried]:
        """For the next run, once `batches` ended."""
        return self._run.carried

    @property
    def ends(self) -> list[Ends]:
        """The two ends of `account.connections`, by their numbers."""
        return self._run.ends

    def by_file(self) -> dict[str, FileTally]:
        return self._accounting.tallies.by_uri()

    def batches(self) -> Iterator[ExchangeBatch]:
        """None of them is empty."""
        for batch in self._all():
            if len(batch):
                self.account.add_batch(batch)
                yield batch
            else:
                self._on_step()
            del batch  # a long frame isn't kept while the next one is read

    def pending(self) -> Iterator[ExchangeBatch]:
        """After `batches` of a part that isn't the last: what is `carried`, as if the recording ended here."""
        for batch in self._run.pending():
            if len(batch):
                self.account.add_batch(batch)
                yield batch

    def _all(self) -> Iterator[ExchangeBatch]:
        self._run.start(names=self.names)
        # The files of a part were ordered when the recording was divided.
        for path in by_first_packet(self._paths) if self._part is WHOLE else self._paths:
            if self._is_over:
                break
            self._file_number += 1
            is_due = True
            while is_due:
                try:
                    with self._run.guarded(uri_of(path)):
                        yield from self._file(path)
                except InputError as error:
                    # A file that was replaced before its format was known isn't bad.
                    if not self._following.is_replaced:
                        if self._on_bad is None:
                            raise
                        self._on_bad(error)
                is_due = self._following.starts_again(uri_of(path))
        yield from self._run.end()

    def _file(self, path: Input) -> Iterator[ExchangeBatch]:
        uri = uri_of(path)
        self._on_file(uri)
        recording = sniff(path, self._following.waiting)
        self.live = recording.live
        if recording.file is not None and not recording.packed:
            self.plain_files.add(uri)
        with self._accounting.file(uri, recording):
            yield from self._log(recording) if recording.format.kind == LOG else self._packets(recording)

    def _packets(self, recording: Recording) -> Iterator[ExchangeBatch]:
        capture = self._run.capture(names=self.names)
        batches = read_packets(recording.source, waiting=self._following.waiting, chunk_bytes=self._part.chunk_bytes)
        stretch = self._part.stretch
        for batch in self._accounting.count_packets(batches, self._skipped()):
            for position, packets in cut_packets(batch, self._file_number, stretch.bounds()):
                if stretch.is_over(position):
                    self._is_over = True
                    return
                yield from capture.enter(own=stretch.has(position))
                yield from capture.feed(packets, live=recording.live)

    def _log(self, recording: Recording) -> Iterator[ExchangeBatch]:
        log: RequestLog = recording.format.load()(self.recordings, names=self.names)
        unpacked = Decompressor(Source(recording.source, self._following.waiting))
        batches = log.read(DecompressedFile(unpacked), skip=self._skipped())  # type: ignore[arg-type]
        yield from self._accounting.count_lines(log, batches)
        if unpacked.problem:
            self._accounting.add_unpack_problem(unpacked.problem)

    def _skipped(self) -> int:
        """Packets or lines of the current file that an earlier run has read."""
        return self._part.skip.get(self.recordings.uris[-1], 0)
