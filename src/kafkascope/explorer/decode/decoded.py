"""Decodes bytes for the decode page. Problems are shown on the page, never raised.

Bytes that can't be read to their end are shown up to the problem, with its place and reason.
"""

from base64 import b64encode
from dataclasses import replace
from typing import Any
from uuid import UUID

from kafkascope.codec.annotations.annotate import Annotation, annotate
from kafkascope.codec.annotations.frame import annotations_of
from kafkascope.codec.annotations.records import annotate_records
from kafkascope.codec.frame import DecodedFrame, split_length
from kafkascope.codec.identify.identify import Identified, guess_responses, identify
from kafkascope.codec.identify.partial import read_partly
from kafkascope.codec.json_form import to_json, uuid_text
from kafkascope.codec.records.record_data import decode_records
from kafkascope.codec.records.records_form import batch_json, record_fields, records_json
from kafkascope.codec.result import Decoded
from kafkascope.errors import DecodeError, InputError, KafkascopeError, UsageError
from kafkascope.explorer.decode.consecutive_frames import FrameSpan, frames_in
from kafkascope.explorer.decode.pieces import pieces
from kafkascope.explorer.decode.recordings import permalink
from kafkascope.explorer.decode.shorten import shorten
from kafkascope.limits import MAX_LINK_BYTES, MAX_SHOWN_ITEMS, MAX_SHOWN_PIECES
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.releases import check_release
from kafkascope.schema.targets import parse_message

_RECORDS = "records"
# Number of frames decoded on one page; the others have links.
_MOST_FRAMES = 8
# Errors are worded for the command line, which has flags where the page has form fields.
_OF_THE_PAGE = {
    "needs --as NAME:VERSION": "cannot be recognized from its bytes: enter the message, as NAME:VERSION",
    "`kafkascope apis` lists them": "the search finds names by a part of them",
    "; use @file to read a file, - for standard input": "",
}


def decoded_facts(raw: bytes, name: str = "", release: str = "") -> dict[str, Any]:
    """`name` is `ShareFetchRequest:2`, `records` for record data alone, or empty for a request, which names itself. An
    unknown name or release raises `UsageError`."""
    if name.lower() == _RECORDS:
        return _record_data(raw)
    parsed_release = check_release(release) if release else None
    target = parse_message(name) if name else None
    if target:
        layout(*target, parsed_release)
    try:
        identified = identify(raw, name or None, parsed_release)
    except (InputError, UsageError) as error:
        return _first_of_several(raw, name, release) or _unread(raw, target, parsed_release, error)
    return (None if identified.exact else _first_of_several(raw, name, release)) or _read(identified, raw)


def _first_of_several(raw: bytes, name: str, release: str) -> dict[str, Any] | None:
    """For consecutive frames: the first one, and the places of the others."""
    first, *following = frames_in(raw)
    if not following:
        return None
    facts = decoded_facts(raw[: first.size], name, release)
    # Any four bytes can look like a length: the first frame must be exact, or all lengths must fit and the first
    # decode.
    even = all(piece.missing == 0 for piece in following)
    if not facts["exact"] and not (even and (facts["problem"] is None or facts["guesses"])):
        return None
    shown = [_other(piece, raw, name, release) for piece in following[:MAX_SHOWN_ITEMS]]
    pieces_left = MAX_SHOWN_PIECES - len(facts["bytes"])
    for other, piece in zip(shown[: _MOST_FRAMES - 1], following, strict=False):
        if piece.missing is None or pieces_left <= 0:
            break
        other["decoded"] = decoded_facts(raw[piece.at : piece.at + piece.size], name, release)
        pieces_left -= len(other["decoded"]["bytes"])
    return facts | {"others": shown, "othersLeft": len(following) - len(shown)}


def _other(piece: FrameSpan, raw: bytes, name: str, release: str) -> dict[str, Any]:
    query = permalink(raw[piece.at : piece.at + piece.size], name, release)
    return {"at": piece.at, "size": piece.size, "missing": piece.missing, "query": query, "decoded": None}


def for_page(text: str) -> str:
    for option, field in _OF_THE_PAGE.items():
        text = text.replace(option, field)
    return text


def _read(identified: Identified, raw: bytes) -> dict[str, Any]:
    frame = identified.frame
    body = identified.body or (frame.body if frame else None)
    facts = _empty(raw) | {"exact": identified.exact, "reasons": list(identified.reasons)}
    body_at = 0
    rows: list[Annotation] = []
    spans = len(body.spans) if body else 0
    if frame:
        header = to_json(frame.header.name, frame.header.version, frame.header.value)
        facts |= {"message": frame.name, "version": frame.version, "apiKey": frame.api_key, "header": header}
        facts |= {"frame": frame.length is not None, "kind": frame.kind}
        body_at = frame.body_at
        rows = annotations_of(_fewer(frame), raw, identified.release)
    elif body:
        facts |= {"message": body.name, "version": body.version}
        shown = replace(body, spans=body.spans[:MAX_SHOWN_PIECES])
        rows = annotate(layout(body.name, body.version, identified.release), shown, raw)
    if body:
        facts["json"], facts["jsonCut"] = shorten(to_json(body.name, body.version, body.value, identified.release))
        facts["records"] = _records(body, identified.release)
    facts["bytes"] = pieces(_with_batches(rows, raw)[:MAX_SHOWN_PIECES], raw, body_at)
    facts["left"] = max(spans - MAX_SHOWN_PIECES, 0)
    return facts


def _empty(raw: bytes) -> dict[str, Any]:
    return {
        "message": None,
        "version": None,
        "kind": None,
        "apiKey": None,
        "frame": False,
        "header": None,
        "size": len(raw),
        "exact": False,
        "reasons": [],
        "json": None,
        "jsonCut": False,
        "records": [],
        "bytes": [],
        "left": 0,
        "problem": None,
        "stopped": None,
        "why": None,
        "unreadHex": "",
        "assumed": None,
        "guesses": [],
        "others": [],
        "othersLeft": 0,
        "hex": raw.hex() if len(raw) <= MAX_LINK_BYTES else None,
    }


def _fewer(frame: DecodedFrame) -> DecodedFrame:
    """Only the first pieces are named: naming a million takes a minute, and nobody reads them."""
    body = replace(frame.body, spans=frame.body.spans[:MAX_SHOWN_PIECES]) if frame.body else None
    return replace(frame, body=body)


def _with_batches(rows: list[Annotation], raw: bytes) -> list[Annotation]:
    """Replaces record data by the pieces of its batches, if they can be read."""
    shown: list[Annotation] = []
    for row in rows:
        if row.type == "records" and row.end > row.start and len(shown) < MAX_SHOWN_PIECES:
            try:
                shown += annotate_records(raw[row.start : row.end], row.start, f"{row.path}.")
                continue
            except DecodeError:
                pass
        shown.append(row)
    return shown


def _records(body: Decoded, release: str | None) -> list[dict[str, Any]]:
    """The batches of each field with record data, each with its first records."""
    if not any(data for _, data in record_fields(body, release)):
        return []
    return [_fewer_records(place) for place in records_json(body, release)]


def _fewer_records(place: dict[str, Any]) -> dict[str, Any]:
    batches = [
        batch | {"records": batch["records"][:MAX_SHOWN_ITEMS], "left": max(len(batch["records"]) - MAX_SHOWN_ITEMS, 0)}
        for batch in place["batches"]
    ]
    shown, cut = shorten(batches[:MAX_SHOWN_ITEMS])
    return place | {"batches": shown, "left": len(batches) - len(shown), "cut": cut}


def _record_data(raw: bytes) -> dict[str, Any]:
    """Batches outside a message: a log segment, or a field that was cut out."""
    facts = _empty(raw) | {"message": _RECORDS}
    try:
        decoded = decode_records(raw)
        rows = annotate_records(raw)
    except DecodeError as error:
        return facts | {"problem": str(error), "stopped": 0, "unreadHex": raw[:256].hex(" ")}
    listed = {"path": "", "error": None, "batches": [batch_json(batch) for batch in decoded.batches]}
    facts["records"] = [_fewer_records(listed | {"truncatedBytes": decoded.truncated_bytes})]
    facts |= {"exact": decoded.exact, "reasons": list(decoded.reasons), "left": max(len(rows) - MAX_SHOWN_PIECES, 0)}
    return facts | {"bytes": pieces(rows[:MAX_SHOWN_PIECES], raw)}


def _unread(raw: bytes, target: tuple[str, int] | None, release: str | None, error: KafkascopeError) -> dict[str, Any]:
    facts = _empty(raw) | {"problem": for_page(str(error))}
    if target is None:
        guesses = guess_responses(raw)
        if len(guesses) == 1 and split_length(raw)[1] and release is None:
            return _only_reading(raw, guesses[0])
        facts["guesses"] = guesses[:MAX_SHOWN_ITEMS]
    # A whole frame that fits a response to its last byte isn't a broken request.
    is_answer = facts["guesses"] and split_length(raw)[1]
    if is_answer or raw[:2] == b"\x16\x03" or not raw:
        return facts
    read = read_partly(raw, target, release)
    facts |= {"message": read.name, "version": read.version, "stopped": read.stopped}
    facts["json"], facts["jsonCut"] = shorten(_plain(read.value))
    facts["why"] = read.why
    facts["header"] = _plain(read.header) or None
    facts["bytes"] = pieces(read.annotations[:MAX_SHOWN_PIECES], raw, read.body_at)
    facts["left"] = max(len(read.annotations) - MAX_SHOWN_PIECES, 0)
    facts["unreadHex"] = raw[read.stopped : read.stopped + 256].hex(" ")
    return facts


def _only_reading(raw: bytes, name: str) -> dict[str, Any]:
    """A whole frame that fits the response of only one API. Other versions of it may fit the same bytes."""
    identified = identify(raw, name, None)
    others = [other for other in _same_api(name) if other != name and _reads(raw, other)]
    return _read(identified, raw) | {"assumed": name, "guesses": others[:MAX_SHOWN_ITEMS]}


def _same_api(name: str) -> list[str]:
    response = name.partition(":")[0]
    return [f"{response}:{version}" for version in reversed(message(response).all_versions())]


def _reads(raw: bytes, name: str) -> bool:
    try:
        return identify(raw, name, None).exact
    except (InputError, UsageError):
        return False


def _plain(value: Any) -> Any:
    """A value with missing fields as JSON. Complete values go through `to_json`."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return uuid_text(value) if isinstance(value, UUID) else value
