"""Reads an exchange of a lake again from its recordings, and tells what its bytes are; in the process that decodes.

Credentials are hidden as everywhere, and so is record data."""

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
    """`row` has the columns that `decoder.REREAD_COLUMNS` names. `sides` are the frames that there are, `why` says why
    there are none."""
    with readable(where):
        found = reread(open_lake(where), row)
    sides = [
        _side(side, frame, _asked(row) if side == "response" else None, _unread(row, side))
        for side, frame in (("request", found.request), ("response", found.response))
        if frame is not None
    ]
    if row["api_key"] == ENVELOPE:
        sides += _inside(found)
    return {"sides": sides, "why": found.why}


def _asked(row: dict[str, Any]) -> tuple[int, int] | None:
    return None if row["api_key"] is None else (row["api_key"], row["api_version"])


def _unread(row: dict[str, Any], side: str) -> str | None:
    """Why a side that is there cannot be read, known before it is tried."""
    if row["api"] == TOKEN_API:
        return "it is a SASL token, and hidden"
    return "its request is not in the recording" if side == "response" and row["api_key"] is None else None


def _inside(found: Reread) -> Iterator[dict[str, Any]]:
    from kafkascope.capture.exchanges.exchange import inner_frames

    asked: tuple[int, int] | None = None
    for frame, content in inner_frames(found.request, found.response):
        yield _side(f"{frame.kind} inside", content[4:], asked)
        asked = (frame.api_key, frame.version)


def _side(side: str, frame: bytes, asked: tuple[int, int] | None, unread: str | None = None) -> dict[str, Any]:
    from kafkascope.capture.exchanges.bodies import read_frame
    from kafkascope.capture.exchanges.redaction import hidden_annotations, hidden_json
    from kafkascope.codec.annotations.frame import annotations_of

    raw = len(frame).to_bytes(4, "big") + frame
    facts: dict[str, Any] = {"side": side, "size": len(raw), "problem": None, "json": None, "bytes": [], "left": 0}
    facts |= {"message": None, "version": None, "exact": False, "reasons": []}
    if unread:
        return facts | {"problem": unread}
    try:
        found = read_frame(frame, asked, spans=True)
    except DecodeError as error:
        return facts | {"problem": str(error)}
    rows = list(hidden_annotations(found, annotations_of(found, raw, None), records=False))
    return facts | {
        "message": found.name,
        "version": found.version,
        "exact": found.exact,
        "reasons": list(found.reasons),
        "json": hidden_json(found.body) if found.body is not None else None,
        "bytes": pieces(rows[:MAX_SHOWN_PIECES], raw, found.body_at),
        "left": max(len(rows) - MAX_SHOWN_PIECES, 0),
    }
