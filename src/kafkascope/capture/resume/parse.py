"""Parses the state of an earlier run. It comes from a lake, so it is refused unless a run can have left it."""

import json
from typing import Any

from kafkascope.capture.resume.check import check
from kafkascope.capture.resume.state import STATE_FORM, Carried, CarriedPieces, CarriedSearch, CarriedStream
from kafkascope.errors import InputError


def parse_carried(text: str) -> Carried:
    try:
        values = json.loads(text)
        form = values.pop("form")
        if form != STATE_FORM:
            raise InputError(f"the state of an earlier run has form {form}; this version reads {STATE_FORM}")
        for name in ("files", "asked", "waiting"):
            values[name] = _rows(values[name])
        values["streams"] = tuple(_stream(stream) for stream in values["streams"])
        values["slot"] = _row(values["slot"])
        values["pieces"] = _pieces(values["pieces"]) if values["pieces"] else None
        made = Carried(**values)
        check(made)
        return made
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"the state of an earlier run can't be read: {type(error).__name__}") from None


def _row(values: Any) -> Any:
    return tuple(values) if values is not None else None


def _rows(values: Any) -> Any:
    return tuple(map(tuple, values))


def _stream(values: dict[str, Any]) -> CarriedStream:
    search = values["search"]
    if search:
        rows = {"candidates": _row(search["candidates"]), "marks": _rows(search["marks"])}
        search = CarriedSearch(**search | rows | {"end": _row(search.get("end", ()))})
    rows = {name: _row(values[name]) for name in ("row", "state")}
    rows |= {name: _rows(values[name]) for name in ("delivered", "early")}
    return CarriedStream(**values | rows | {"search": search})


def _pieces(values: dict[str, Any]) -> CarriedPieces:
    rows = {"opened": _row(values["opened"]), "named": _row(values["named"]), "entries": _rows(values["entries"])}
    return CarriedPieces(**values | rows)
