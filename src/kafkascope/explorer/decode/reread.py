"""Finds the frames of a lake's exchange in the recordings it came from, if they are still available.

The lake stores no bytes, only the recording and the packet."""

import time
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import pyarrow.compute as pc
from pyarrow import fs

from kafkascope.capture.formats import CAPTURE
from kafkascope.errors import InputError
from kafkascope.lake.home import Lake
from kafkascope.lake.place import place_of
from kafkascope.lake.read.visible_rows import captures_rows, dataset
from kafkascope.limits import MAX_REREAD_SECONDS
from kafkascope.pipeline.ingestion.inputs import file_digest, open_input

_COLUMNS = "capture_uri kind digest bytes first_at last_at".split()


@dataclass(frozen=True, slots=True)
class Reread:
    """`why` is the reason if there are no frames."""

    request: bytes | None = None
    response: bytes | None = None
    why: str | None = None


def reread(lake: Lake, row: dict[str, Any]) -> Reread:
    recordings, why = _recordings(lake, row)
    if why:
        return Reread(why=why)
    from kafkascope.capture.exchanges.exchange_columns import to_arrow
    from kafkascope.capture.files.packets import CHUNK_BYTES
    from kafkascope.capture.reader import Reading
    from kafkascope.capture.resume.run import Part

    ends = {_end(row["client_address"]), _end(row["broker_address"])}
    if None in ends:
        return Reread(why="addresses in this lake are pseudonyms, so its connection can't be found")
    part = Part(
        choose=lambda connection: (
            {(connection.address_a, connection.port_a), (connection.address_b, connection.port_b)} == ends
        ),
        chunk_bytes=4 * CHUNK_BYTES,
    )
    deadline = time.monotonic() + MAX_REREAD_SECONDS

    def check() -> None:
        if time.monotonic() > deadline:
            raise InputError(
                f"it was not found within {MAX_REREAD_SECONDS:g} s; kafkascope read {row['capture_uri']} --exchange "
                f"{row['exchange_id']} has no such limit"
            )

    try:
        for batch in Reading([open_input(uri) for uri in recordings], on_step=check, part=part).batches():
            check()
            at = pc.index(to_arrow(batch).column("exchange_id"), row["exchange_id"]).as_py()
            if at >= 0:
                return Reread(batch.request_frame(at), batch.response_frame(at))
    except InputError as error:
        return Reread(why=str(error))
    return Reread(why="its recordings no longer contain it")


def _recordings(lake: Lake, row: dict[str, Any]) -> tuple[list[str], str | None]:
    """The recordings that its connection spans, in time order."""
    of_connection = pc.field("connection_id") == row["connection_id"]
    times = dataset(lake, "connections").to_table(columns=["first_at", "last_at"], filter=of_connection).to_pylist()
    first = min((connection["first_at"] for connection in times if connection["first_at"]), default=None)
    last = max((connection["last_at"] for connection in times if connection["last_at"]), default=None)
    rows = [capture for capture in captures_rows(lake, _COLUMNS) if _may_hold(capture, row, first, last)]
    own = next((capture for capture in rows if capture["capture_uri"] == row["capture_uri"]), None)
    if own is None:
        return [], "its recording is no longer in this lake"
    if own["kind"] != CAPTURE:
        return [], f"its recording is of the kind {own['kind']}, which has no packets"
    for capture in rows:
        # A lake may name a pipe, which blocks, or a device without an end.
        place, size = place_of(str(capture["capture_uri"])), max(capture["bytes"] or 0, 0)
        if place.info().type != fs.FileType.File:
            return [], f"{capture['capture_uri']} no longer exists"
        if place.info().size < size or file_digest(place, size) != capture["digest"]:
            return [], f"{capture['capture_uri']} has changed since the ingest"
    return [
        capture["capture_uri"]
        for capture in sorted(rows, key=lambda capture: (str(capture["first_at"]), str(capture["capture_uri"])))
    ], None


def _may_hold(capture: dict[str, Any], row: dict[str, Any], first: Any, last: Any) -> bool:
    if capture["capture_uri"] == row["capture_uri"]:
        return True
    if capture["kind"] != CAPTURE or None in (capture["first_at"], capture["last_at"], first, last):
        return False
    return bool(capture["first_at"] <= last and capture["last_at"] >= first)


def _end(text: str | None) -> tuple[bytes, int] | None:
    """Address and port as packets have them; None if this isn't an address."""
    host, _, port = (text or "").rpartition(":")
    try:
        address = ip_address(host.strip("[]"))
        number = int(port)
    except ValueError:
        return None
    packed = address.packed
    return (packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed), number
