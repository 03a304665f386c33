"""What a lake knows of earlier ingests: which recordings it has, and what they left unfinished."""

from dataclasses import dataclass, field, replace

import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.place import place_of, told
from kafkascope.lake.reading import FOLLOWS, captures_rows, dataset
from kafkascope.lake.tables import INGEST_ID
from kafkascope.pipeline.inputs import Found, digest

LOG = "request_log"
# Of a folder's logs that may have grown since: those that were read last.
_MOST_LOGS = 16


@dataclass(frozen=True, slots=True)
class State:
    """`digests` are of all recordings; `sizes` are (bytes, packets, digest) by URI, as they were last; `heads` are the
    ingests that no other goes on from, `carried` what they left. `logs` are (bytes, lines, digest) by folder, the last
    ones first: a log that is rotated gets another name."""

    digests: frozenset[str]
    sizes: dict[str, tuple[int, int, str]]
    heads: tuple[str, ...]
    carried: tuple[str, ...]
    logs: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)

    def grown(self, found: Found) -> Found:
        """A file that was read before and has grown since begins where it ended then."""
        known = self.sizes.get(found.uri)
        if known is not None and _goes_on(found, known):
            return replace(found, read_packets=known[1])
        for one in self.logs.get(_folder(found.uri), ())[:_MOST_LOGS]:
            if _goes_on(found, one):
                return replace(found, read_packets=_whole_lines(found, one))
        return found


def _goes_on(found: Found, known: tuple[int, int, str]) -> bool:
    return known[0] < found.size and digest(place_of(found.uri), known[0]) == known[2]


def _folder(uri: str) -> str:
    return uri.rpartition("/")[0]


def _whole_lines(found: Found, known: tuple[int, int, str]) -> int:
    """The last line that was there may have been a half one: then it could not be read, and is read now."""
    size, lines, _ = known
    place = place_of(found.uri)
    with told(place.uri), place.filesystem.open_input_file(place.path) as file:
        file.seek(size - 1)
        around = file.read(2)
    return lines if b"\n" in around else lines - 1


def state_of(lake: Lake) -> State:
    wanted = [INGEST_ID, FOLLOWS, "capture_uri", "digest", "bytes", "packets", "log_lines", "kind", "ingested_at"]
    rows = captures_rows(lake, wanted)
    followed = {one for row in rows for one in row[FOLLOWS] or ()}
    # A log or a file of frames leaves nothing to go on from.
    heads = sorted({row[INGEST_ID] for row in rows if row["kind"] == "capture"} - followed)
    sizes: dict[str, tuple[int, int, str]] = {}
    for row in rows:
        known = sizes.get(row["capture_uri"])
        if row["kind"] == "capture" and (known is None or known[0] < row["bytes"]):
            sizes[row["capture_uri"]] = (row["bytes"], row["packets"], row["digest"])
    logs: dict[str, list[tuple[int, int, str]]] = {}
    for row in sorted(rows, key=lambda row: row["ingested_at"], reverse=True):
        if row["kind"] == LOG and row["bytes"]:
            logs.setdefault(_folder(row["capture_uri"]), []).append((row["bytes"], row["log_lines"], row["digest"]))
    return State(frozenset(row["digest"] for row in rows), sizes, tuple(heads), _carried(lake, heads), logs)


def _carried(lake: Lake, heads: list[str]) -> tuple[str, ...]:
    """One state a connection: where two ingests ran side by side, that which got further."""
    if not heads or not lake.has("unfinished"):
        return ()
    rows = dataset(lake, "unfinished").to_table(filter=pc.field(INGEST_ID).isin(heads)).to_pylist()
    named: dict[str, tuple[int, str]] = {}
    nameless = []
    for row in rows:
        at = int(row["last_at"].timestamp() * 1e6)
        if row["connection_id"] is None or len(heads) == 1:
            nameless.append(row["state"])
        elif row["connection_id"] not in named or named[row["connection_id"]][0] < at:
            named[row["connection_id"]] = (at, row["state"])
    return tuple(sorted([*nameless, *(state for _, state in named.values())]))
