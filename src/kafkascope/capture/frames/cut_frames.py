"""Ends a frame inside missing bytes that reach beyond it: its header is listed if it was recorded."""

from kafkascope.capture.frames.chunks import damage
from kafkascope.capture.frames.detect.resync import Asked
from kafkascope.capture.frames.frame_table import BODY, CHUNK, LENGTH, OFFSET, ROWS, Output, Tables, wider
from kafkascope.capture.frames.split import JUDGE, end_damaged, has_header
from kafkascope.capture.frames.token_frames import judge_last


def end_in_gap(tables: Tables, output: Output, row: int, asked: Asked) -> tuple[Output, int]:
    """The output with its frame, and where the next one begins; -1 where nothing is known of an unfinished frame."""
    state = tables.state[row]
    if state[LENGTH] < 0:
        return output, -1
    damage(tables.following, tables.counts, state)
    if not has_header(state, row & 1):
        return output, -1
    if tables.counts[ROWS] + 2 >= len(output.kind) or tables.counts[BODY] + CHUNK > len(output.body):
        output = wider(output, int(tables.counts[BODY]) + CHUNK)
    end = int(state[OFFSET] + 4 + state[LENGTH])
    if end_damaged(tables, output, row) == JUDGE:
        judge_last(tables, output, row >> 1, asked)
    return output, end
