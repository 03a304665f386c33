"""Runs the steps over a part of a recording: resumes what the run before left, and leaves the rest to the next one."""

import dataclasses
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from kafkascope.capture.accounting import Accounting
from kafkascope.capture.driver import Capture
from kafkascope.capture.exchanges.exchanges import Ends, ExchangeBatch
from kafkascope.capture.resume.run import Part
from kafkascope.capture.resume.state import Carried
from kafkascope.errors import KernelError


class PartRun:
    """`carried` is for the next run, once this one ended."""

    def __init__(self, part: Part, accounting: Accounting, kafka_ports: Collection[int]) -> None:
        self._part = part
        self._accounting = accounting
        self._ports = kafka_ports
        self._capture: Capture | None = None
        self.carried: list[Carried] = []

    @property
    def ends(self) -> list[Ends]:
        """The two ends of the connections, by their numbers."""
        return self._capture.ends if self._capture is not None else []

    def start(self, *, names: bool) -> None:
        """Restores what the run before left, if anything."""
        if self._part.carried:
            self._accounting.earlier_packets = self.capture(names=names).numbers_before

    def capture(self, *, names: bool) -> Capture:
        """The steps, created when the first file needs them."""
        if self._capture is None:
            self._capture = Capture(
                self._accounting.recordings,
                self._accounting.account,
                names=names,
                kafka_ports=self._ports,
                part=self._part,
                tallies=self._accounting.tallies,
            )
        return self._capture

    @contextmanager
    def guarded(self, uri: str) -> Iterator[None]:
        """A kernel that was stopped at a bound leaves its tables half changed: the next file starts with new ones."""
        try:
            yield
        except IndexError as error:
            self._capture = None
            self._part = dataclasses.replace(self._part, carried=())
            raise KernelError.at(f"{uri}, after packet {self._accounting.account.packets:,}") from error

    def end(self) -> Iterator[ExchangeBatch]:
        """All files were read, or all of the stretch: the rest of its exchanges, but for what is carried to the next
        run."""
        if self._capture is not None:
            uris = self._accounting.recordings.uris
            with self.guarded(uris[-1] if uris else "the recording"):
                yield from last_exchanges(self._capture, self._part)
                self.carried = self._capture.carried

    def pending(self) -> Iterator[ExchangeBatch]:
        """What is carried, as if the recording ended here; nothing after the last part."""
        if self._capture is not None and not self._part.last and self._part.stretch.is_last:
            yield from self._capture.finish()


def last_exchanges(capture: Capture, part: Part) -> Iterator[ExchangeBatch]:
    """The last exchanges of a run. What is unfinished belongs to the last stretch, which may not have begun if the
    recording is shorter than expected."""
    yield from capture.enter(own=part.stretch.is_last)
    if part.stretch.is_last:
        yield from capture.finish() if part.last else capture.suspend()
