"""A lake in, its first page out: the verdict, its recordings, its tables, and what was not read."""

from typing import Any

from kafkascope.explorer.facts.lake_values import plain
from kafkascope.explorer.page import Page
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import captures_rows
from kafkascope.lake.upkeep.info import info
from kafkascope.limits import MAX_SHOWN_RECORDINGS
from kafkascope.report.summaries.findings import findings_in
from kafkascope.report.summaries.mart_rows import has_marts
from kafkascope.report.summaries.scope import Scope

_COLUMNS = "capture_uri kind bytes packets frames exchanges first_at last_at lost_bytes tls_bytes tcp_bytes".split()


def make(lake: Lake) -> Page:
    found = info(lake)
    rows = sorted(captures_rows(lake, _COLUMNS), key=lambda row: (str(row["first_at"]), str(row["capture_uri"])))
    tables = [
        {
            "name": one.name,
            "rows": one.rows,
            "files": one.files,
            "bytes": one.bytes,
            "first_at": plain(one.first_at),
            "last_at": plain(one.last_at),
        }
        for one in found.tables
    ]
    facts: dict[str, Any] = {
        "lake": lake.uri,
        "verdict": verdict(lake),
        "recordings": [plain(row) for row in rows[:MAX_SHOWN_RECORDINGS]],
        "recordings_left": max(len(rows) - MAX_SHOWN_RECORDINGS, 0),
        "exchanges": next((one.rows for one in found.tables if one.name == "exchanges"), 0),
        "tables": tables,
        "running": len(found.running),
        "half_done": len(found.half_done),
    }
    return Page("Lake", facts, "What is in this lake, and how its clusters are.")


def verdict(lake: Lake) -> dict[str, Any] | None:
    """None where the marts were never built."""
    if not has_marts(lake):
        return None
    told = findings_in(lake, Scope(), ()).verdict
    counts = {"critical": told.critical, "warning": told.warning, "info": told.info}
    return {"state": told.state, "sentence": told.sentence, **counts}
