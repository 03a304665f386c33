"""Calls that a client of ours made in, exchanges out: the same batches as a capture of them gives.

A call has its frames and times, so nothing has to be paired; what was sent and not answered is `unanswered`."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from kafkascope.capture.base.flow import Frames
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.exchanges.exchanges import (
    FIRST_WITH_SOFTWARE,
    Ends,
    ExchangeBatch,
    Recordings,
    make_batch,
    software_of,
)
from kafkascope.capture.exchanges.identity import connection_name, text_hash
from kafkascope.capture.exchanges.pairing import (
    PairStatus,
)
from kafkascope.capture.frames.headers import (
    API_VERSIONS,
    Frame,
    FrameRows,
    read_headers,
)
from kafkascope.capture.frames.scan_program import ScanPrograms

# Every frame has its length in front on the wire.
PREFIX_BYTES = 4
# Connections that are remembered after their end. One that comes back after so many others counts its bytes anew.
MOST_LINKS = 10_000

# A connection: our end, the broker's, and when it was made.
Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Called:
    """One call. Frames are without their length; `opened_ns` tells two connections of the same ports apart."""

    client_address: str
    broker_address: str
    opened_ns: int
    request: bytes
    response: bytes | None
    sent_ns: int
    received_ns: int | None


@dataclass(slots=True)
class Link:
    """A connection from its beginning. `ended` is set by `CallReader.links`."""

    ends: Ends
    first_ns: int
    last_ns: int
    client_bytes: int = 0
    broker_bytes: int = 0
    ended: bool = False

    @property
    def connection_id(self) -> str:
        return connection_name(self.ends.number)


@dataclass(slots=True)
class CallReader:
    """Connections go on from one batch to the next: an exchange is named by its connection and by how many bytes were
    sent on it before, wherever the batches are cut."""

    calls: int = 0  # so far: a call's number stands for its packet
    _links: dict[Key, Link] = field(default_factory=dict)  # in the order of their last use
    _programs: ScanPrograms = field(default_factory=ScanPrograms)

    def batch(self, calls: Iterable[Called], uri: str) -> tuple[ExchangeBatch, list[Link]]:
        """The exchanges, and the connections that they went over."""
        parts: list[bytes] = []
        table: list[tuple[int, int, int, int, int]] = []
        request: list[int] = []
        response: list[int] = []
        used: dict[Key, int] = {}
        links: list[Link] = []
        for place, call in enumerate(sorted(calls, key=lambda one: one.sent_ns), self.calls):
            key = (call.client_address, call.broker_address, call.opened_ns)
            if key not in used:
                used[key] = len(links)
                links.append(self._link(key))
            number = used[key]
            link = links[number]
            offset = link.client_bytes
            request.append(len(parts))
            parts.append(call.request)
            table.append((number, 0, offset, call.sent_ns, place))
            link.client_bytes += len(call.request) + PREFIX_BYTES
            link.last_ns = max(link.last_ns, call.sent_ns, call.received_ns or 0)
            if call.response is None or call.received_ns is None:
                response.append(-1)
                continue
            response.append(len(parts))
            parts.append(call.response)
            table.append((number, 1, offset, call.received_ns, place))
            link.broker_bytes += len(call.response) + PREFIX_BYTES
        self.calls += len(request)
        frames = Frames.whole(parts, table)
        rows, content = read_headers(frames)
        ends = [link.ends for link in links]
        _learn_software(content, rows, ends)
        answers = np.array(response, dtype=np.int64)
        status = np.where(answers >= 0, PairStatus.ANSWERED, PairStatus.UNANSWERED).astype(np.uint8)
        batch = make_batch(
            rows, np.array(request, dtype=np.int64), answers, status, ends, Recordings([uri], [0]),
            self._programs, names=False, sized=True, content=content,
        )  # fmt: skip
        return batch, links

    def links(self, still_open: Collection[Key] | None) -> tuple[list[Link], list[Link]]:
        """(connections that have ended since the last call, those that may go on). None stands for all: any may go
        on."""
        ended: list[Link] = []
        lasting: list[Link] = []
        for key, link in self._links.items():
            if not link.ended:
                link.ended = still_open is not None and key not in still_open
                (ended if link.ended else lasting).append(link)
        over = [key for key, link in self._links.items() if link.ended]
        for key in over[: max(0, len(self._links) - MOST_LINKS)]:
            del self._links[key]
        return ended, lasting

    def _link(self, key: Key) -> Link:
        link = self._links.pop(key, None)
        if link is None:
            client, broker, opened_ns = key
            ends = Ends(text_hash(f"{client}-{broker}-{opened_ns}".encode()), client, broker)
            link = Link(ends, opened_ns, opened_ns)
        link.ended = False
        self._links[key] = link
        return link


def _learn_software(content: Content, rows: FrameRows, ends: list[Ends]) -> None:
    telling = (rows[:, Frame.RESPONSE] == 0) & (rows[:, Frame.BODY_AT] > 0) & (rows[:, Frame.API_KEY] == API_VERSIONS)
    telling &= rows[:, Frame.VERSION] >= FIRST_WITH_SOFTWARE
    wanted = [Frame.CONNECTION, Frame.OFFSET, Frame.FRAME_AT, Frame.SIZE, Frame.CLIENT_AT, Frame.CLIENT_SIZE]
    for number, offset, at, size, client_at, client_size in rows[telling][:, wanted].tolist():
        known = ends[number]
        if known.software is None:
            known.software = software_of(content.bytes(at, size), client_at + client_size if client_at >= 0 else -1)
            known.software_from = offset
