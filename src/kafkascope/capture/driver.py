"""Drives packets through the steps of a capture to exchanges, and passes the results of one step to the others.

Data flows one way: segments, pieces, frames, exchanges. What an earlier step needs to know from a later one, the
protocols of connections and the flow numbers that are free again, is returned as a value and passed on here."""

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Flows, Frames, Int64s, Packets, Pieces, Segments
from kafkascope.capture.exchanges.account import Account, count_frames
from kafkascope.capture.exchanges.exchanges import Ends, ExchangeBatch, Pairer, Recordings
from kafkascope.capture.exchanges.file_tally import FileTallies
from kafkascope.capture.frames.frame_table import join_frames
from kafkascope.capture.frames.framing import PORTION_BYTES, PORTION_ROWS, Framer
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.resume.choose import Chooser
from kafkascope.capture.resume.places import PlaceReader
from kafkascope.capture.resume.run import WHOLE, Part, Steps, carry, flows_of, late_pieces, leave_out, resume
from kafkascope.capture.resume.state import Carried
from kafkascope.capture.tcp.reassembly import Reassembler


class Capture:
    """The steps from packets to exchanges, for all files of one recording, or of a part of it. `carried` is for the
    next run, after `suspend`; packets are numbered after the `numbers_before` of earlier runs."""

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
        self._is_own = True
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

    def enter(self, *, own: bool) -> Iterator[ExchangeBatch]:
        """Whether the following packets are of the run's own stretch. What is held belongs to the stretch before."""
        if own != self._is_own:
            yield from self._pair_held()
            self._is_own = own

    def feed(self, packets: Packets, *, live: bool) -> Iterator[ExchangeBatch]:
        """Unless it is `live`, the last frames are paired with the next batch or the end, so that requests without a
        response come in their places."""
        segments = self._segments.feed(packets)
        if self._chooser is not None:
            segments = self._chooser.choose(segments)
        self._note_files(packets, segments)
        yield from self.feed_segments(segments, packets.first, live=live)
        released = self.take_released_flows()
        self._segments.release(released)
        if self._chooser is not None:
            self._chooser.release(released)

    def take_released_flows(self) -> Int64s:
        """Numbers of flows that no connection uses any more: new flows may have them."""
        return self._reassembler.take_released_flows()

    def feed_segments(self, segments: Segments, first: int, *, live: bool = False) -> Iterator[ExchangeBatch]:
        """Like `feed`, for segments that another process read from packets; `first` is the number of the first packet.
        Whoever numbers their flows takes the released ones."""
        if self._reassembler.is_crowded:
            self._reassembler.retire(self._is_done())
        pieces = self._reassembler.feed(segments)
        gone = self._reassembler.take_gone()
        if gone:
            for connection, ends in zip(gone, self._pairer.forget(gone), strict=True):
                self._part.on_gone(connection, ends)
        if self._late is not None:
            self._late.note(pieces, first)
        for frames in self._framer.portions(pieces):
            self._reassembler.apply_verdicts(frames.verdicts)
            yield from self._pair_held()
            self._hold(frames)
        self._tally(pieces)
        self._note(pieces)
        if live:
            yield from self._pair_held()

    def _is_done(self) -> npt.NDArray[np.bool_]:
        """Connection to whether framing and pairing are done with it."""
        done = self._framer.is_done(len(self._reassembler.connections))
        done[self._pairer.waiting()] = False
        return done

    def _pair_held(self) -> Iterator[ExchangeBatch]:
        held, self._held = self._held, []
        if not held:
            return
        if self._is_own:
            yield self._pairer.feed(join_frames(held))
        elif self._part.on_elsewhere is not None:
            self._part.on_elsewhere(self._pairer.feed(join_frames(held)))
        else:
            self._pairer.skip(join_frames(held))

    def finish(self) -> Iterator[ExchangeBatch]:
        segments = self._segments.finish()
        pieces = self._reassembler.finish()
        for frames in chain(self._framer.portions(pieces), self._framer.last_portions()):
            self._reassembler.apply_verdicts(frames.verdicts)
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
        """Instead of `finish`: returns the exchanges that are certain now. The rest is `carried`, except connections
        that were idle for too long: theirs are returned as if the recording ended."""
        assert self._late is not None
        self._note_files(self._segments.finish())
        yield from self._pair_held()
        times = (connection.last_ns for connection in self._reassembler.connections)
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
            for carried, last in zip(idle, account.connections, strict=True):
                connection = self._reassembler.connections[carried.number]
                connection.gap_bytes[:] = last.gap_bytes
                connection.bytes_seen[:] = last.bytes_seen

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
        """Reports the problems of the files themselves, whichever connections are read."""
        if self._part.tells_files:
            for step in steps:
                self._account.add_problems(step.problems)

    def _note(self, pieces: Pieces) -> None:
        self._account.add_problems(pieces.problems)
        self._account.forgotten = self._reassembler.forgotten


def _is_much(parts: list[Frames]) -> bool:
    """Too much to be paired as one batch."""
    return sum(len(part.kind) for part in parts) > PORTION_ROWS or sum(part.size for part in parts) > PORTION_BYTES
