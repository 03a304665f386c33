"""Lists the exchanges of a lake that match a filter, in time order and page by page."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from kafkascope.capture.exchanges.exchange_columns import TOKEN_API
from kafkascope.capture.exchanges.pairing import STATUSES
from kafkascope.errors import NotFoundError, UsageError
from kafkascope.explorer.facts.lake_values import plain
from kafkascope.explorer.page import Page
from kafkascope.lake.home import Lake
from kafkascope.lake.read.browse import ANY_ERROR, ExchangeFilters, exchanges, parse_place, place_of
from kafkascope.limits import MAX_LISTED_EXCHANGES
from kafkascope.schema.catalog import apis
from kafkascope.schema.errors.error_codes import find_error
from kafkascope.schema.names import clip, find_api, suggest
from kafkascope.times import microseconds_of, parse_moment

# The query of the address: `after` is the start of the page, `back` the starts of earlier pages.
QUERY = ("api", "client", "group", "error", "status", "since", "until", "slow", "after", "back")
_PLACES = ("after", "back")
# In `back`: the mark of the first page, which has no start, and the separator of pages.
_FIRST, _THEN = "first", "~"
# More would make the address too long. Before these, the previous page is the first one.
_MOST_BACK = 24
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Columns of the list; the page of an exchange has the rest.
_COLUMNS = (
    "exchange_id request_at response_at latency_us api_key api api_version client_id client_address broker_address "
    "request_bytes response_bytes error_code error status"
).split()
# Names on the wire are never longer.
_LONGEST = 32_767


def make(lake: Lake, **values: str) -> Page:
    values = {name: values.get(name, "").strip()[:_LONGEST] for name in QUERY}
    values |= {"api": _api(values["api"]), "error": _error(values["error"]), "status": _status(values["status"])}
    selection = ExchangeFilters(
        api=values["api"],
        client=values["client"],
        group=values["group"],
        error=values["error"],
        status=values["status"],
        since=_time(values["since"], "since"),
        until=_time(values["until"], "until"),
        slower_us=_milliseconds(values["slow"]),
    )
    after = parse_place(values["after"]) if values["after"] else None
    listed = exchanges(lake, selection, after, MAX_LISTED_EXCHANGES, _COLUMNS)
    filters = {name: value for name, value in values.items() if value and name not in _PLACES}
    back = [place for place in values["back"].split(_THEN) if place] if after else []
    trail = [*back, values["after"] or _FIRST][-_MOST_BACK:]
    before = MAX_LISTED_EXCHANGES * len(back) if back[:1] == [_FIRST] or not after else None
    facts: dict[str, Any] = {
        "lake": lake.uri,
        "asked": values,
        "filtered": bool(filters),
        "exchanges": [plain(row) | {"at": place_of(row).at} for row in listed.rows],
        "total": listed.total,
        "before": before,
        "next": urlencode(filters | {"after": str(listed.after), "back": _THEN.join(trail)}) if listed.after else None,
        "previous": _previous(filters, back),
        "first": urlencode(filters) if after else None,
        "apis": sorted((*apis().values(), TOKEN_API)),
        "statuses": list(STATUSES),
    }
    return Page("Exchanges", facts, "Requests with their responses, in time order.")


def _previous(filters: dict[str, str], back: list[str]) -> str | None:
    """The query of the previous page; None if it isn't known."""
    if not back:
        return None
    *earlier, place = back
    return urlencode(filters if place == _FIRST else filters | {"after": place, "back": _THEN.join(earlier)})


def _api(text: str) -> str:
    """An API by name or key, as the lake has it. Unknown names are refused: they would look like an empty lake."""
    name = text if text in ("", TOKEN_API) else find_api(text)
    if name is None:
        raise NotFoundError(f"unknown API {clip(text)}{suggest(text)}")
    return name


def _error(text: str) -> str:
    """An error by name or code."""
    if not text or text.lower() == ANY_ERROR:
        return text.lower()
    error = find_error(text)
    if not error.code:
        raise UsageError(f"error: {error.name} means success; leave the field empty, or write any")
    return error.name


def _status(text: str) -> str:
    if text and text not in STATUSES:
        raise UsageError(f"status: {text[:40]!r} isn't one of {', '.join(STATUSES)}")
    return text


def _time(text: str, name: str) -> int | None:
    """ISO 8601, in UTC unless it has an offset: `2026-11-15`, `2026-11-15 08:30`, `2026-11-15T08:30:00.25Z`."""
    if not text:
        return None
    moment = parse_moment(text)
    if moment is None:
        raise UsageError(f"{name}: {text[:40]!r} isn't a time; write it as 2026-11-15 08:30:00")
    return microseconds_of(moment)


def _milliseconds(text: str) -> int | None:
    if not text:
        return None
    try:
        value = float(text.removesuffix("ms").strip())
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        raise UsageError(f"slow: {text[:40]!r} isn't a number of milliseconds; write it as 100")
    return int(value * 1000)
