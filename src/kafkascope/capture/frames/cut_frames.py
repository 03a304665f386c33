"""Ends a frame whose last bytes are missing: it becomes a row if its header was recorded."""

from kafkascope.capture.frames.chunks import damage
from kafkascope.capture.frames.detect.resync import RequestsById
from kafkascope.capture.frames.frame_table import CHUNK, FrameCount, Output, Partial, Tables, wider
from kafkascope.capture.frames.split import SplitStop, end_damaged, has_header
from kafkascope.capture.frames.token_frames import judge_last


def end_in_gap(tables: Tables, output: Output, row: int, requests: RequestsById) -> tuple[Output, int]:
    """The output with the frame, and where the next one begins: -1 if there is no unfinished frame with a header."""
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
    if end_damaged(tables, output, row) == SplitStop.UNSURE_TOKEN:
        judge_last(tables, output, row >> 1, requests)
    return output, end
