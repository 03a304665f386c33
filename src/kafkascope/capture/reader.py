"""Recordings in, exchanges out: `read` one at a time, `read_batches` as Arrow columns, `decode_messages` their bodies.

Captures given together are one recording, in the order of their first packets: a connection goes on from one file to
the next."""

import dataclasses
import io
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.base.flow import Flows, Frames, Packets, Pieces, Problem, Segments
from kafkascope.capture.exchanges.account import Account, count_frames
from kafkascope.capture.exchanges.exchange import Exchange, to_exchanges
from kafkascope.capture.exchanges.exchange_columns import KNOWN_FROM_NS, to_arrow
from kafkascope.capture.exchanges.exchanges import Ends, ExchangeBatch, Pairer, Recordings
from kafkascope.capture.exchanges.file_tally import FileTallies, FileTally
from kafkascope.capture.exchanges.name_cache import NameCache
from kafkascope.capture.files.decompress import DecompressedFile, Decompressor
from kafkascope.capture.files.file_order import by_first_packet
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.files.source import FollowPolicy, Input, Source, inputs
from kafkascope.capture.formats import LOG
from kafkascope.capture.frames.frame_table import are_done, join_frames
from kafkascope.capture.frames.framing import PORTION_BYTES, PORTION_ROWS, Framer
from kafkascope.capture.frames.headers import (
    Frame,
)
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.resume.choose import Chooser
from kafkascope.capture.resume.places import PlaceReader
from kafkascope.capture.resume.reread import after
from kafkascope.capture.resume.run import WHOLE, Part, Steps, carry, flows_of, late_pieces, leave_out, resume
from kafkascope.capture.resume.state import Carried
from kafkascope.capture.sniff import Recording, sniff, uri_of
from kafkascope.capture.tcp.reassembly import Reassembler
from kafkascope.errors import InputError, KernelError

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
    """The bodies: one table after the other, each of one message, with `exchange_id` in front of its columns."""
    from kafkascope.capture.exchanges.messages import (
        Messages,  # the decoder is not needed to list exchanges, and takes its time
    )

    messages = Messages()
    for batch in Reading(paths).batches():
        yield from messages.add(batch)
    yield from messages.finish()


class Reading:
    """One pass over recordings. `names` asks for groups, members and topics; `kafka_ports` are taken for Kafka's where
    what a connection says does not tell. `account` is up to date while it goes on, and whole at the end.

    `follow` goes on at the end of a growing file until `deadline`, if there is one, and with the next file where one of
    the same name takes its place: `on_change` hears how. `on_bad` hears of a file that cannot be read, and the others
    are read; without it that is an `InputError`. `on_step` is called now and then, also where nothing is found,
    `on_file` before a file is opened.

    `part` says that more was read before, or will be later, or is read by others; `carried` is for the next run then.
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
        self.names = names
        self._ports = kafka_ports
        self._waiting = FollowPolicy(deadline) if follow else None
        self._on_change, self._on_bad, self._on_step, self._on_file = on_change, on_bad, on_step, on_file
        self.recordings = Recordings()
        self._tallies = FileTallies(self.recordings)
        self._capture: Capture | None = None
        self._file: io.FileIO | None = None
        self._file_bytes = 0
        self.live = False
        # Files that `follow` can help with where they end too early.
        self.plain_files: set[str] = set()
        self.account = Account()
        self._part = part or WHOLE
        self._numbers_before = 0  # of packets that are not counted here
        self.carried: list[Carried] = []

    @property
    def file_bytes(self) -> int:
        """Read of regular files so far, packed as they are."""
        return self._file_bytes + (self._file.tell() if self._file is not None else 0)

    @property
    def ends(self) -> list[Ends]:
        """What is known of the ends of `account.connections`, by their numbers."""
        return self._capture.ends if self._capture is not None else []

    def batches(self) -> Iterator[ExchangeBatch]:
        """None of them is empty."""
        for batch in self._all():
            if len(batch):
                self.account.add_batch(batch)
                yield batch
            else:
                self._on_step()
            del batch  # a long frame isn't kept while the next one is read

    def by_file(self) -> dict[str, FileTally]:
        """File to what was found in it."""
        return self._tallies.by_uri()

    def pending(self) -> Iterator[ExchangeBatch]:
        """After `batches` of a part that is not the last: what is `carried`, as if the recording ended here."""
        if self._capture is not None and not self._part.last:
            for batch in self._capture.finish():
                if len(batch):
                    self.account.add_batch(batch)
                    yield batch

    def _all(self) -> Iterator[ExchangeBatch]:
        if self._part.carried:
            self._numbers_before = self._begin().numbers_before
        # A part's files were put in order by whoever divides the recording.
        for path in by_first_packet(self._paths) if self._part is WHOLE else self._paths:
            goes_on = True
            while goes_on:
                try:
                    with self._guarded(uri_of(path)):
                        yield from self._one(path)
                except InputError as error:
                    # A file that was replaced before it could be told what it is, is none to complain about.
                    if not self._changed():
                        if self._on_bad is None:
                            raise
                        self._on_bad(error)
                goes_on = self._changed()
                if goes_on and self._waiting is not None:
                    self._on_change(f"{uri_of(path)} was {self._waiting.changed}; reading goes on with the new one")
                    self._waiting.changed = None
        if self._capture is not None:
            with self._guarded(self.recordings.uris[-1] if self.recordings.uris else "the recording"):
                yield from self._capture.finish() if self._part.last else self._capture.suspend()
                self.carried = self._capture.carried

    @contextmanager
    def _guarded(self, uri: str) -> Iterator[None]:
        """A kernel that was stopped at a bound leaves its tables half changed: the next file starts with new ones."""
        try:
            yield
        except IndexError as error:
            self._capture = None
            self._part = dataclasses.replace(self._part, carried=())
            raise KernelError.at(f"{uri}, after packet {self.account.packets:,}") from error

    def _begin(self) -> "Capture":
        if self._capture is None:
            self._capture = Capture(
                self.recordings,
                self.account,
                names=self.names,
                kafka_ports=self._ports,
                part=self._part,
                tallies=self._tallies,
            )
        return self._capture

    def _changed(self) -> bool:
        return self._waiting is not None and self._waiting.changed is not None

    def _one(self, path: Input) -> Iterator[ExchangeBatch]:
        self._on_file(uri_of(path))
        recording = sniff(path, self._waiting)
        self.live = recording.live
        self._file = recording.file
        if recording.file is not None and not recording.packed:
            self.plain_files.add(uri_of(path))
        try:
            self.recordings.uris.append(uri_of(path))
            read = self.account.packets + self.account.log_lines
            self.recordings.first_packets.append(self._numbers_before + read)
            self.account.begin(uri_of(path))
            yield from self._log(recording) if recording.format.kind == LOG else self._packets(recording)
            if recording.problem:
                self.account.add_problems([Problem("compression", recording.problem, -1, -1, 0)])
        finally:
            if recording.file is not None:
                self._file_bytes, self._file = self.file_bytes, None
                recording.file.close()

    def _packets(self, recording: Recording) -> Iterator[ExchangeBatch]:
        capture = self._begin()
        first = self.recordings.first_packets[-1]
        tally = self._tallies.of(len(self.recordings.uris) - 1)
        bytes_before = self.account.bytes_read
        skip = self._part.skip.get(self.recordings.uris[-1], 0)
        for packets in read_packets(recording.source, waiting=self._waiting, chunk_bytes=self._part.chunk_bytes):
            known = len(packets.start)
            packets = after(packets, skip)
            self._numbers_before += known - len(packets.start)
            self.account.packets += len(packets.start)
            self.account.bytes_read = bytes_before + packets.base + len(packets.data)
            tally.packets += len(packets.start)
            if len(packets.start):
                span = int(packets.time_ns.min()), int(packets.time_ns.max())
                self.account.add_span(*span)
                tally.add_span(*span)
            if first:
                packets = dataclasses.replace(packets, first=packets.first + first)
            yield from capture.feed(packets, live=recording.live)

    def _log(self, recording: Recording) -> Iterator[ExchangeBatch]:
        log: RequestLog = recording.format.load()(self.recordings, names=self.names)
        tally = self._tallies.of(len(self.recordings.uris) - 1)
        before = dataclasses.replace(self.account)
        unpacked = Decompressor(Source(recording.source, self._waiting))
        skip = self._part.skip.get(self.recordings.uris[-1], 0)
        for batch in log.read(DecompressedFile(unpacked), skip=skip):  # type: ignore[arg-type]
            self._count(log, before)
            times = batch.rows[batch.rows[:, Frame.FIRST_NS] >= KNOWN_FROM_NS, Frame.LAST_NS]
            self.account.add_times(times)
            tally.add_times(times)
            yield batch
        self._count(log, before)
        tally.log_lines += log.lines
        if unpacked.problem:
            self.account.add_problems([Problem("compression", unpacked.problem, -1, -1, 0)])

    def _count(self, log: "RequestLog", before: Account) -> None:
        self.account.log_lines = before.log_lines + log.lines
        self.account.log_lines_unread = before.log_lines_unread + log.unread
        self.account.log_lines_without_time = before.log_lines_without_time + log.without_time
        self.account.add_problems(log.problems.take())


class Capture:
    """The steps from packets to exchanges, for all files of one recording, or of a part of it."""

    def __init__(
        self,
        recordings: Recordings,
        account: Account,
        *,
        names: bool,
        kafka_ports: Collection[int],
        part: Part | None = None,
        tallies: FileTallies | None = None,
    ) -> None:
        self._part = part = part or WHOLE
        old = PlaceReader(part.carried, recordings)
        self._tallies = tallies
        if tallies is not None:
            tallies.earlier = len(old.uris)
        self.numbers_before = old.end
        self.carried: list[Carried] = []
        mine = part.mine()
        flows, numbers = flows_of(mine)
        self._account = account
        self._names, self._ports = names, kafka_ports
        self._segments = SegmentReader(flows)
        self._reassembler = Reassembler(flows)
        account.connections = self._reassembler.connections
        self._framer = Framer(self._reassembler.connections, kafka_ports=kafka_ports)
        self._pairer = Pairer(self._reassembler.connections, recordings, names=names)
        self._held: list[Frames] = []
        self._chooser = Chooser(flows, part.choose) if part.choose is not None else None
        self._steps = Steps(flows, self._reassembler, self._framer, self._pairer, recordings)
        self._late = late_pieces(self._steps, lambda: self._held) if not part.last else None
        if mine:
            unread = resume(self._steps, self._late, mine, numbers, old, part.reopen)
            for uri, problem in unread:
                account.file = uri
                account.add_problems([problem])

    @property
    def ends(self) -> list[Ends]:
        return self._pairer.ends

    @property
    def flows(self) -> Flows:
        return self._steps.flows

    def feed(self, packets: Packets, *, live: bool) -> Iterator[ExchangeBatch]:
        """One step behind unless it is `live`: the last frames are paired together with the end, so that requests that
        nobody answered stand in their places."""
        if self._chooser is not None:
            self._chooser.renew()
        segments = self._segments.feed(packets)
        if self._chooser is not None:
            segments = self._chooser.choose(segments)
        self._note_files(packets, segments)
        yield from self.feed_segments(segments, packets.first, live=live)

    def feed_segments(self, segments: Segments, first: int, *, live: bool = False) -> Iterator[ExchangeBatch]:
        """The same behind the packets; `first` is the number of the first of them."""
        self._reassembler.retire(self._is_done)
        pieces = self._reassembler.feed(segments)
        gone = self._reassembler.take_gone()
        if gone:
            for connection, ends in zip(gone, self._pairer.forget(gone), strict=True):
                self._part.on_gone(connection, ends)
        if self._late is not None:
            self._late.note(pieces, first)
        for frames in self._framer.portions(pieces):
            yield from self._pair_held()
            self._hold(frames)
        self._tally(pieces)
        self._note(pieces)
        if live:
            yield from self._pair_held()

    def _is_done(self, count: int) -> npt.NDArray[np.bool_]:
        done = are_done(self._framer._tables, count)
        done[self._pairer.waiting()] = False
        return done

    def _pair_held(self) -> Iterator[ExchangeBatch]:
        held, self._held = self._held, []
        if held:
            yield self._pairer.feed(join_frames(held))

    def finish(self) -> Iterator[ExchangeBatch]:
        segments = self._segments.finish()
        pieces = self._reassembler.finish()
        for frames in chain(self._framer.portions(pieces), self._framer.last_portions()):
            if _is_much([*self._held, frames]):
                yield from self._pair_held()
            self._hold(frames)
        self._tally(pieces)
        self._note_files(segments)
        self._note(pieces)
        yield self._pairer.finish(join_frames(self._held))
        self._account.lost_answers = self._pairer.lost_answers
        self._held = []

    def suspend(self) -> Iterator[ExchangeBatch]:
        """Instead of `finish`: what is certain now. The rest is `carried`, but for what waits for a connection that
        was idle for too long: that comes out as if the recording ended."""
        assert self._late is not None
        self._note_files(self._segments.finish())
        yield from self._pair_held()
        times = (one.last_ns for one in self._reassembler.connections)
        now = max(self._account.last_ns or 0, max(times, default=0))
        self.carried, idle = carry(self._steps, self._late, now_ns=now, idle_ns=self._part.idle_ns)
        self._account.lost_answers = self._pairer.lost_answers
        if idle:
            account, files = Account(), Recordings()
            part = Part(carried=idle, reopen=self._part.reopen)
            tallies = FileTallies(files)
            ended = Capture(files, account, names=self._names, kafka_ports=self._ports, part=part, tallies=tallies)
            yield from ended.finish()
            leave_out(self._steps, idle)
            self._account.add_ended(account)
            if self._tallies is not None:
                self._tallies.add_ended(tallies)
            for one, last in zip(idle, account.connections, strict=True):
                self._reassembler.connections[one.number].gap_bytes[:] = last.gap_bytes
                self._reassembler.connections[one.number].bytes_seen[:] = last.bytes_seen

    def _hold(self, frames: Frames) -> None:
        if len(frames.kind):
            counts = count_frames(frames)
            self._account.add_frames(counts)
            if self._tallies is not None:
                self._tallies.add_frames(frames, counts)
        self._account.add_problems(frames.problems)
        self._held.append(frames)

    def _tally(self, pieces: Pieces) -> None:
        if self._tallies is not None:
            self._tallies.add_pieces(pieces, self._reassembler.connections)

    def _note_files(self, *steps: Any) -> None:
        """What is wrong with the files whatever connections are read of them."""
        if self._part.tells_files:
            for step in steps:
                self._account.add_problems(step.problems)

    def _note(self, pieces: Pieces) -> None:
        self._account.add_problems(pieces.problems)
        self._account.forgotten = self._reassembler.forgotten


def _is_much(parts: list[Frames]) -> bool:
    """For one batch."""
    return sum(len(one.kind) for one in parts) > PORTION_ROWS or sum(one.size for one in parts) > PORTION_BYTES
