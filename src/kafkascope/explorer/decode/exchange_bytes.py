"""Re-reads an exchange of a lake from its recordings and annotates its bytes, in the decoding process.

Credentials and record data are hidden, as everywhere."""

from collections.abc import Iterator
from typing import Any

from kafkascope.capture.exchanges.exchange_columns import TOKEN_API
from kafkascope.capture.exchanges.facts import ENVELOPE
from kafkascope.errors import DecodeError
from kafkascope.explorer.decode.pieces import pieces
from kafkascope.explorer.decode.reread import Reread, reread
from kafkascope.lake.home import open_lake
from kafkascope.lake.place import readable
from kafkascope.limits import MAX_SHOWN_PIECES


def exchange_bytes(where: str, row: dict[str, Any]) -> dict[str, Any]:
    """`row` has the columns of `decoder.REREAD_COLUMNS`. `sides` are the available frames, `why` the reason if there
    are none."""
    with readable(where):
        frames = reread(open_lake(where), row)
    sides = [
        _side(side, frame, _asked(row) if side == "response" else None, _unread(row, side))
        for side, frame in (("request", frames.request), ("response", frames.response))
        if frame is not None
    ]
    if row["api_key"] == ENVELOPE:
        sides += _inside(frames)
    return {"sides": sides, "why": frames.why}


def _asked(row: dict[str, Any]) -> tuple[int, int] | None:
    return None if row["api_key"] is None else (row["api_key"], row["api_version"])


def _unread(row: dict[str, Any], side: str) -> str | None:
    """A reason why a side can't be read that is known before trying."""
    if row["api"] == TOKEN_API:
        return "it is a SASL token, which is hidden"
    return "its request is not in the recording" if side == "response" and row["api_key"] is None else None


def _inside(frames: Reread) -> Iterator[dict[str, Any]]:
    from kafkascope.capture.exchanges.exchange import inner_frames

    request_api: tuple[int, int] | None = None
    for frame, content in inner_frames(frames.request, frames.response):
        yield _side(f"{frame.kind} inside", content[4:], request_api)
        request_api = (frame.api_key, frame.version)


def _side(side: str, frame: bytes, request_api: tuple[int, int] | None, unread: str | None = None) -> dict[str, Any]:
    from kafkascope.capture.exchanges.bodies import read_frame
    from kafkascope.capture.exchanges.redaction import hidden_annotations, hidden_json
    from kafkascope.codec.annotations.frame import annotations_of

    raw = len(frame).to_bytes(4, "big") + frame
    facts: dict[str, Any] = {"side": side, "size": len(raw), "problem": None, "json": None, "bytes": [], "left": 0}
    facts |= {"message": None, "version": None, "exact": False, "reasons": []}
    if unread:
        return facts | {"problem": unread}
    try:
        decoded = read_frame(frame, request_api, spans=True)
    except DecodeError as error:
        return facts | {"problem": str(error)}
    rows = list(hidden_annotations(decoded, annotations_of(decoded, raw, None), records=False))
    return facts | {
        "message": decoded.name,
        "version": decoded.version,
        "exact": decoded.exact,
        "reasons": list(decoded.reasons),
        "json": hidden_json(decoded.body) if decoded.body is not None else None,
        "bytes": pieces(rows[:MAX_SHOWN_PIECES], raw, decoded.body_at),
        "left": max(len(rows) - MAX_SHOWN_PIECES, 0),
    }
