"""Lists the exchanges of a small uploaded recording: pcap, pcapng or a request log, compressed or not."""

import io
from typing import Any
from urllib.parse import urlencode

from kafkascope.limits import MAX_LINK_BYTES, MAX_SHOWN_ITEMS
from kafkascope.times import iso


def recording_facts(content: bytes, name: str) -> dict[str, Any]:
    """`InputError` if the recording can't be read. Needs the extra `columns`."""
    from kafkascope.capture.exchanges.exchange import Exchange
    from kafkascope.capture.reader import read

    file = io.BytesIO(content)
    file.name = name or "the recording"
    shown: list[dict[str, Any]] = []
    apis: dict[str, int] = {}
    count = 0

    def facts_of(exchange: Exchange) -> dict[str, Any]:
        return {
            "id": exchange.exchange_id,
            "at": iso(exchange.request_at) if exchange.request_at else None,
            "client": exchange.client_id if exchange.client_id is not None else exchange.client_address,
            "broker": exchange.broker_address,
            "api": exchange.api,
            "version": exchange.api_version,
            "latencyUs": exchange.latency_us,
            "error": exchange.error,
            "status": exchange.status,
            "request": _side(exchange.request_frame, None),
            "response": _side(exchange.response_frame, _asked(exchange.api, exchange.api_version)),
        }

    for exchange in read(file):
        count += 1
        title = exchange.api or "not known"
        apis[title] = apis.get(title, 0) + 1
        if len(shown) < MAX_SHOWN_ITEMS:
            shown.append(facts_of(exchange))
    return {
        "count": count,
        "apis": [{"api": api, "count": number} for api, number in sorted(apis.items(), key=lambda item: -item[1])],
        "exchanges": shown,
        "left": count - len(shown),
    }


def _asked(api: str | None, version: int | None) -> str:
    return f"{api}Response:{version}" if api and version is not None else ""


def _side(frame: bytes | None, response_to: str | None) -> dict[str, Any] | None:
    """The size of a side, and a link to its decoded form if it's known and short enough."""
    if frame is None:
        return None
    whole = len(frame).to_bytes(4, "big") + frame
    is_known = response_to is None or response_to != ""
    query = permalink(whole, response_to or "") if is_known else None
    return {"size": len(whole), "query": query}


def permalink(raw: bytes, name: str, release: str = "") -> str | None:
    """The query of an address that decodes these bytes; None if there are too many."""
    if len(raw) > MAX_LINK_BYTES or not raw:
        return None
    query = {"hex": raw.hex(), "as": name, "release": release}
    return urlencode({key: value for key, value in query.items() if value})
