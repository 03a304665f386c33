"""Requests and responses as values in, `Frames` as the framer gives them out: `Wire().ask(…).answer(…).frames()`."""

from typing import Any, Self

import numpy as np

from kafkascope.capture.base.flow import (
    Connection,
    Endpoints,
    FrameKind,
    Frames,
)
from kafkascope.capture.exchanges.exchange import Exchange, to_exchanges
from kafkascope.capture.exchanges.exchanges import Pairer, Recordings
from kafkascope.capture.exchanges.name_cache import NameCache
from kafkascope.codec.frame import encode_frame

START_NS = 1_763_200_000_000_000_000
MS = 1_000_000
URI = "test.pcap"


def connection(number: int) -> Connection:
    """Broker 10.0.0.1:9092, client 10.0.0.2, whose port is 40000 and the number."""
    mapped = bytes(10) + b"\xff\xff"
    ends = Endpoints(mapped + bytes([10, 0, 0, 1]), 9092, mapped + bytes([10, 0, 0, 2]), 40_000 + number)
    return Connection(number, number, ends, START_NS, START_NS, (7, 9), True, client=1, protocol="kafka")


class Wire:
    """Frames in the order of the recording, a millisecond apart unless told otherwise."""

    def __init__(self) -> None:
        self.rows: list[tuple[bytes, int, int, int, int, int, int]] = []
        self.now = START_NS
        self.offsets: dict[tuple[int, int], int] = {}

    def raw(
        self, data: bytes, side: int, *, kind: int = FrameKind.FRAME, on: int = 0, at: int | None = None, lost: int = 0
    ) -> Self:
        self.now = self.now + MS if at is None else START_NS + at * MS
        offset = self.offsets.get((on, side), 0)
        self.rows.append((data, kind, on, side, offset, lost, self.now))
        self.offsets[on, side] = offset + (4 + len(data) if kind in (FrameKind.FRAME, FrameKind.TOKEN) else lost)
        return self

    def ask(
        self, api: str, version: int, value: dict[str, Any] | None = None, *, correlation: int = 1,
        client: str | None = "app", on: int = 0, at: int | None = None,
    ) -> Self:  # fmt: skip
        header = {"correlationId": correlation, "clientId": client}
        return self.raw(encode_frame(f"{api}Request", version, value or {}, header, length=False), 0, on=on, at=at)

    def answer(
        self, api: str, version: int, value: dict[str, Any] | None = None, *, correlation: int = 1, on: int = 0,
        at: int | None = None,
    ) -> Self:  # fmt: skip
        header = {"correlationId": correlation}
        return self.raw(encode_frame(f"{api}Response", version, value or {}, header, length=False), 1, on=on, at=at)

    def token(self, data: bytes, side: int) -> Self:
        return self.raw(data, side, kind=FrameKind.TOKEN)

    def lose(self, count: int, side: int) -> Self:
        return self.raw(b"", side, kind=FrameKind.LOST, lost=count)

    def end(self, side: int) -> Self:
        return self.raw(b"", side, kind=FrameKind.ENDED)

    def frames(self, first: int = 0, last: int | None = None) -> Frames:
        rows = self.rows[first:last]
        ends = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row[0]) for row in rows], out=ends[1:])
        times = np.array([row[6] for row in rows], dtype=np.int64)
        return Frames(
            body=np.frombuffer(b"".join(row[0] for row in rows), dtype=np.uint8),
            ends=ends,
            kind=np.array([row[1] for row in rows], dtype=np.uint8),
            connection=np.array([row[2] for row in rows], dtype=np.int32),
            is_response=np.array([row[3] for row in rows], dtype=np.uint8),
            offset=np.array([row[4] for row in rows], dtype=np.int64),
            lost=np.array([row[5] for row in rows], dtype=np.int64),
            first_ns=times,
            time_ns=times,
            packet=np.arange(first, first + len(rows), dtype=np.int64),
        )

    def exchanges(self, *, step: int | None = None) -> list[Exchange]:
        """All of them, fed as one with the end or `step` frames at a time, in the order in which they came out."""
        count = 1 + max(row[2] for row in self.rows)
        pairer = Pairer([connection(number) for number in range(count)], Recordings([URI], [0]), names=True)
        knowledge = NameCache()
        listed: list[Exchange] = []
        batches = [pairer.feed(self.frames(at, at + step)) for at in range(0, len(self.rows), step)] if step else []
        for batch in [*batches, pairer.finish(None if step else self.frames())]:
            knowledge.learn(batch)
            listed += to_exchanges(batch, knowledge.names(batch))
        return listed
