"""Registers the pages of the lake browser, which only the server has: overview, findings, exchanges."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

from kafkascope.errors import InputError, KafkascopeError, NotFoundError
from kafkascope.explorer.gates import LAKE, REREAD
from kafkascope.explorer.page import Kind, Page
from kafkascope.explorer.pages import home
from kafkascope.explorer.pages.lake import exchange, exchange_bytes, exchanges, findings, overview, records
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.place import readable


def lake_kinds(where: str) -> tuple[Kind, ...]:
    """Opens the lake for every page, since it may have been written to, moved or deleted meanwhile."""

    def of(make: Callable[..., Page]) -> Callable[..., Page]:
        return partial(_made, make, where)

    return (
        Kind("lake", "lake/index.html", "lake.html", of(overview.make), lasting=False, gate=LAKE),
        Kind("lake_findings", "lake/findings.html", "lake_findings.html", of(findings.make), lasting=False, gate=LAKE),
        Kind(
            "lake_exchanges",
            "lake/exchanges.html",
            "lake_exchanges.html",
            of(exchanges.make),
            query=exchanges.QUERY,
            lasting=False,
            gate=LAKE,
        ),
        Kind(
            "lake_records",
            "lake/records/{table}.html",
            "lake_records.html",
            of(records.make),
            query=records.RECORD_QUERY,
            lasting=False,
            gate=LAKE,
        ),
        Kind(
            "lake_exchange",
            "lake/exchange/{exchange_id}.html",
            "lake_exchange.html",
            of(exchange.make),
            query=("at",),
            lasting=False,
            gate=LAKE,
        ),
        Kind(
            "lake_bytes",
            "lake/bytes/{exchange_id}.html",
            "lake_bytes.html",
            of(exchange_bytes.make),
            query=("at",),
            lasting=False,
            gate=REREAD,
        ),
    )


def home_kind(where: str) -> Kind:
    """The home page with the lake's verdict. It never waits: while another request reads the verdict, it shows the last
    one, and none if the lake can't be read."""
    reading = Lock()
    last: list[dict[str, Any] | None] = [None]

    def make() -> Page:
        if reading.acquire(blocking=False):
            try:
                with readable(where):
                    last[0] = overview.verdict_of(opened(where))
            except KafkascopeError:
                last[0] = None
            finally:
                reading.release()
        return home.make(last[0])

    return replace(home.KIND, make=make, lasting=False)


def _made(make: Callable[..., Page], where: str, **parameters: Any) -> Page:
    with readable(where):
        return make(opened(where), **parameters)


# Tables that pages have opened, until their logs change.
_KEPT: dict[tuple[str, str], tuple[object, Any]] = {}


def opened(where: str) -> Lake:
    try:
        return replace(open_lake(where), kept=_KEPT)
    except NotFoundError as error:
        # The address is right, but the lake is gone.
        raise InputError(str(error)) from None
