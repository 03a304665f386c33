"""The bytes of a lake's exchange, re-read from its recording, or why they aren't available.

A separate process with limits on time and memory reads the recordings."""

from kafkascope.errors import InputError
from kafkascope.explorer.decode.decoder import DECODER
from kafkascope.explorer.facts.lake_values import plain
from kafkascope.explorer.page import Page
from kafkascope.explorer.pages.lake.exchange import exchange_row, row_title
from kafkascope.lake.home import Lake
from kafkascope.lake.read.browse import place_of


def make(lake: Lake, exchange_id: str, at: str = "") -> Page:
    row = exchange_row(lake, exchange_id, at)
    try:
        result = DECODER.reread(lake.uri, row)
    except InputError as error:
        result = {"sides": [], "why": str(error)}
    facts = {"lake": lake.uri, "exchange": plain(row) | {"at": place_of(row).at}, **result}
    return Page(f"Bytes of {row_title(row)} {exchange_id}", facts, "An exchange byte by byte.")
