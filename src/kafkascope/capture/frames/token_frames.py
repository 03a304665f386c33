"""Decides whether the last frame is a raw SASL token, where the framing kernel isn't sure."""

from kafkascope.capture.base.flow import FrameKind
from kafkascope.capture.frames.detect.cut_packets import request_head
from kafkascope.capture.frames.detect.resync import RequestsById
from kafkascope.capture.frames.frame_table import ConnSlot, FrameCount, Output, Partial, Tables
from kafkascope.capture.frames.split import remember_frame
from kafkascope.capture.frames.tokens import is_request, is_response


def judge_last(tables: Tables, output: Output, slot: int, requests: RequestsById) -> None:
    """Corrects the kind of the last row. A token that was recorded in part is lost."""
    row = int(tables.counts[FrameCount.ROWS]) - 1
    start, end, role = int(output.ends[row]), int(output.ends[row + 1]), int(output.is_response[row])
    missing = int(output.lost[row])
    raw = (end - start + missing).to_bytes(4, "big") + output.body[start:end].tobytes()
    if role:
        handshake_id, tokens = (
            int(tables.slots[slot, ConnSlot.HANDSHAKE_ID]),
            bool(tables.state[2 * slot, Partial.TOKENS]),
        )
        is_frame = is_response(raw, requests, handshake_id, tokens=tokens)
    else:
        is_frame = request_head(raw) is not None if missing else is_request(raw)
    if is_frame:
        output.kind[row] = FrameKind.FRAME
        tables.state[2 * slot + role, Partial.TOKENS] = 0
        remember_frame(tables.slots, tables.asked, tables.state, slot, role, output.body, start, end - start)
    elif missing:
        output.kind[row], output.lost[row] = FrameKind.LOST, 4 + end - start + missing
        output.ends[row + 1] = tables.counts[FrameCount.BODY] = start
    else:
        output.kind[row] = FrameKind.TOKEN
