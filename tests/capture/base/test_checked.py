"""No kernel of captures reaches past its arrays, whatever the numbers say that a recording leads to."""

import ast
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import kafkascope.capture
from kafkascope.capture.base import checked
from kafkascope.capture.base.flow import Flows, Pieces, Segments
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.messages import Messages
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.frames.framing import Framer
from kafkascope.capture.frames.headers import (
    Frame,
    read_headers,
)
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.reader import Reading
from kafkascope.capture.tcp.reassembly import Reassembler
from kafkascope.errors import KernelError
from tests.captures import capture
from tests.support.cli import Cli

ROOM = Path(kafkascope.capture.__file__).parent
OUTSIDE = (-1, -(1 << 40), 1 << 40, (1 << 63) - 1, -(1 << 63))


def modules() -> list[str]:
    return [
        ".".join(("kafkascope.capture", *path.relative_to(ROOM).with_suffix("").parts)) for path in ROOM.rglob("*.py")
    ]


def test_only_the_checked_reads_reach_memory_by_address() -> None:
    """`checked` compares before each of its reads. No other module of the room has the means to leave them out."""
    modules_by_address = set()
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imported = isinstance(node, ast.ImportFrom) and (
                node.module == "kafkascope.columnar.kernel.memory"
                or (node.module == "kafkascope.columnar" and any(name.name == "memory" for name in node.names))
            )
            by_address = isinstance(node, ast.Attribute) and node.attr in ("ctypes", "address", "from_address")
            if imported or by_address:
                modules_by_address.add(path.name)
    assert modules_by_address == {"checked.py"}


def test_every_kernel_of_the_room_checks_its_indices() -> None:
    kernels = [
        value for name in modules() for value in vars(import_module(name)).values() if isinstance(value, Dispatcher)
    ]
    assert len(kernels) > 100
    assert [kernel.py_func.__name__ for kernel in kernels if not kernel.targetoptions["boundscheck"]] == []


@pytest.mark.parametrize("at", [*OUTSIDE, 7, 8, 9])
def test_reads_outside_of_an_array_are_refused(at: int) -> None:
    data = np.zeros(8, np.uint8)
    calls: list[tuple[Any, int, tuple[Any, ...]]] = [
        (checked.read_i16, 2, (data, at)),
        (checked.read_i32, 4, (data, at)),
    ]
    for kernel, width, arguments in calls:
        assert not 0 <= at <= 8 - width
        with pytest.raises(IndexError):
            kernel(*arguments)
    assert not data.any()


SHIFTED = [place for at in OUTSIDE for place in ((at, 0, 1), (0, at, 1), (0, 0, at))]


@pytest.mark.parametrize(("to", "at", "count"), [(0, 0, 9), (0, 8, 1), (8, 0, 1), (4, 0, 5), (0, 4, 5), *SHIFTED])
def test_copies_and_comparisons_past_either_array_are_refused(to: int, at: int, count: int) -> None:
    target, source = np.zeros(8, np.uint8), np.ones(8, np.uint8)
    for kernel in (checked.copy, checked.differing_bytes):
        with pytest.raises(IndexError):
            kernel(target, to, source, at, count)
    assert not target.any()


def test_what_ends_at_the_end_is_inside() -> None:
    data = np.arange(8, dtype=np.uint8)
    assert checked.read_i32(data, 4) == 0x04050607
    target = np.zeros(8, np.uint8)
    checked.copy(target, 0, data, 0, 8)
    assert (target == data).all()
    checked.copy(target, 8, data, 8, 0)


def recorded() -> Segments:
    packets = next(read_packets(BytesIO(capture("clients"))))
    return SegmentReader(Flows()).feed(packets)


def with_one(column: Any, index: int, value: int) -> Any:
    changed = column.copy()
    changed[index] = value
    return changed


def pieces_of(segments: Segments) -> tuple[Reassembler, Pieces]:
    flows = Flows()
    packets = next(read_packets(BytesIO(capture("clients"))))
    again = SegmentReader(flows).feed(packets)
    reassembler = Reassembler(flows)
    return reassembler, reassembler.feed(replace(again, start=segments.start, length=segments.length))


@pytest.mark.parametrize("start", [1 << 40, -(1 << 40)])
def test_a_segment_outside_of_its_data_stops_reassembly(start: int) -> None:
    segments = recorded()
    at = int(np.flatnonzero(segments.length)[0])
    with pytest.raises(IndexError):
        pieces_of(replace(segments, start=with_one(segments.start, at, start)))


@pytest.mark.parametrize("start", [1 << 40, -(1 << 40)])
def test_a_piece_outside_of_its_data_stops_framing(start: int) -> None:
    reassembler, pieces = pieces_of(recorded())
    at = int(np.flatnonzero(pieces.length)[-1])
    with pytest.raises(IndexError):
        Framer(reassembler.connections).feed(replace(pieces, start=with_one(pieces.start, at, start)))


def test_a_frame_outside_of_its_batch_stops_whoever_reads_it() -> None:
    reassembler, pieces = pieces_of(recorded())
    frames = Framer(reassembler.connections).feed(pieces)
    with pytest.raises(IndexError):
        read_headers(replace(frames, ends=frames.ends + len(frames.body)))
    for column, value in ((Frame.FRAME_AT, 1 << 40), (Frame.FRAME_AT, -(1 << 40)), (Frame.SIZE, 1 << 40)):
        batch = next(Reading(BytesIO(capture("clients"))).batches())
        batch.rows[batch.request[0], column] = value
        with pytest.raises((KernelError, MemoryError)):
            list(Messages().add(batch, to_arrow(batch)))
    batch = next(Reading(BytesIO(capture("clients"))).batches())
    batch.rows[batch.request[0], Frame.CLIENT_AT] = 1 << 40
    with pytest.raises(KernelError):
        to_arrow(batch)


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours in the step before: the first batch of segments says that its bytes are elsewhere."""
    feed = SegmentReader.feed
    seen = []

    def wrong(self: SegmentReader, packets: Any) -> Segments:
        segments = feed(self, packets)
        seen.append(1)
        return replace(segments, start=segments.start + (1 << 40)) if len(seen) == 1 else segments

    monkeypatch.setattr(SegmentReader, "feed", wrong)


def test_a_stopped_kernel_is_one_line_and_the_other_files_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("clients", "share"):
        (tmp_path / f"{name}.pcap").write_bytes(capture(name))
    whole = sum(len(batch) for batch in Reading(BytesIO(capture("share"))).batches())
    broken(monkeypatch)
    answer = Cli(capsys, monkeypatch)("read", str(tmp_path / "clients.pcap"), str(tmp_path / "share.pcap"), "--json")
    assert answer.code == 3
    lines = [line for line in answer.err.splitlines() if "clients.pcap" in line]
    assert len(lines) == 1 and "this is a bug, please report it" in lines[0]
    assert "Traceback" not in answer.err
    assert len(answer.out.splitlines()) == whole


def test_a_stopped_kernel_is_a_kernel_error_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    with pytest.raises(KernelError, match="after packet"):
        list(Reading(BytesIO(capture("clients"))).batches())
