"""One exchange of a lake in, its bytes out, read again from the recording; or why they are not to be had.

Credentials are hidden as everywhere, and so is record data."""

from typing import Any

from kafkascope.errors import DecodeError
from kafkascope.explorer.lake_values import plain
from kafkascope.explorer.page import Page
from kafkascope.explorer.pages.lake_exchange import found_row
from kafkascope.explorer.pieces import pieces
from kafkascope.explorer.reread import reread
from kafkascope.lake.browse import place_of
from kafkascope.lake.home import Lake
from kafkascope.limits import MAX_SHOWN_PIECES


def make(lake: Lake, exchange_id: str, at: str = "") -> Page:
    row = found_row(lake, exchange_id, at)
    found = reread(lake, row)
    sides = []
    if found.request is not None or found.response is not None:
        from kafkascope.capture.bodies import read_frame

        asked = None if row["api_key"] is None else (row["api_key"], row["api_version"])
        if found.request is not None:
            sides.append(_side("request", found.request, lambda raw: read_frame(raw, None, spans=True)))
        if found.response is not None and asked is not None:
            sides.append(_side("response", found.response, lambda raw: read_frame(raw, asked, spans=True)))
    facts = {
        "lake": lake.uri,
        "exchange": plain(row) | {"at": place_of(row).at},
        "sides": sides,
        "why": found.why,
    }
    return Page(f"Bytes of {row['api'] or 'an answer'} {exchange_id}", facts, "An exchange byte by byte.")


def _side(side: str, frame: bytes, read: Any) -> dict[str, Any]:
    from kafkascope.capture.hidden import hidden_annotations, hidden_json
    from kafkascope.codec.annotate_frame import annotations_of

    raw = len(frame).to_bytes(4, "big") + frame
    facts: dict[str, Any] = {"side": side, "size": len(raw), "problem": None, "json": None, "bytes": [], "left": 0}
    try:
        found = read(frame)
    except DecodeError as error:
        return facts | {"message": None, "version": None, "exact": False, "reasons": [], "problem": str(error)}
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
