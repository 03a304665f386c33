"""One exchange of a lake in, its bytes out, read again from the recording; or why they are not to be had.

Recordings are read by a process of their own, which has a cap on time and memory."""

from kafkascope.errors import InputError
from kafkascope.explorer.decode.decoder import DECODER
from kafkascope.explorer.facts.lake_values import plain
from kafkascope.explorer.page import Page
from kafkascope.explorer.pages.lake_exchange import called, found_row
from kafkascope.lake.home import Lake
from kafkascope.lake.read.browse import place_of


def make(lake: Lake, exchange_id: str, at: str = "") -> Page:
    row = found_row(lake, exchange_id, at)
    try:
        found = DECODER.reread(lake.uri, row)
    except InputError as error:
        found = {"sides": [], "why": str(error)}
    facts = {"lake": lake.uri, "exchange": plain(row) | {"at": place_of(row).at}, **found}
    return Page(f"Bytes of {called(row)} {exchange_id}", facts, "An exchange byte by byte.")
