"""Ends a frame inside missing bytes that reach beyond it: its header is listed if it was recorded."""

from kafkascope.capture.frames.chunks import damage
from kafkascope.capture.frames.detect.resync import Asked
from kafkascope.capture.frames.frame_table import (
    CHUNK,
    FrameCount,
    Output,
    Partial,
    Tables,
    wider,
)
from kafkascope.capture.frames.split import (
    SplitStop,
    end_damaged,
    has_header,
)
from kafkascope.capture.frames.token_frames import judge_last


def end_in_gap(tables: Tables, output: Output, row: int, asked: Asked) -> tuple[Output, int]:
    """The output with its frame, and where the next one begins; -1 where nothing is known of an unfinished frame."""
    state = tables.state[row]
    if state[Partial.LENGTH] < 0:
        return output, -1
    damage(tables.following, tables.counts, state)
    if not has_header(state, row & 1):
        return output, -1
    if tables.counts[FrameCount.ROWS] + 2 >= len(output.kind) or tables.counts[FrameCount.BODY] + CHUNK > len(
        output.body
    ):
        output = wider(output, int(tables.counts[FrameCount.BODY]) + CHUNK)
    end = int(state[Partial.OFFSET] + 4 + state[Partial.LENGTH])
    if end_damaged(tables, output, row) == SplitStop.JUDGE:
        judge_last(tables, output, row >> 1, asked)
    return output, end
