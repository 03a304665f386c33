"""The overview of a lake: verdict, recordings, tables, and what wasn't read."""

from typing import Any

from kafkascope.explorer.facts.lake_values import plain
from kafkascope.explorer.page import Page
from kafkascope.lake.home import Lake
from kafkascope.lake.read.log_rows import listed_tables
from kafkascope.lake.read.mart_rows import has_marts
from kafkascope.lake.read.visible_rows import captures_rows
from kafkascope.lake.upkeep.info import info
from kafkascope.limits import MAX_SHOWN_RECORDINGS
from kafkascope.report.summaries.findings import findings_in
from kafkascope.report.summaries.scope import Scope

_COLUMNS = "capture_uri kind bytes packets frames exchanges first_at last_at lost_bytes tls_bytes tcp_bytes".split()


def make(lake: Lake) -> Page:
    contents, log_tables = info(lake), listed_tables()
    rows = sorted(captures_rows(lake, _COLUMNS), key=lambda row: (str(row["first_at"]), str(row["capture_uri"])))
    tables = [
        {
            "name": table.name,
            "listed": table.name in log_tables,
            "rows": table.rows,
            "files": table.files,
            "bytes": table.bytes,
            "first_at": plain(table.first_at),
            "last_at": plain(table.last_at),
        }
        for table in contents.tables
    ]
    facts: dict[str, Any] = {
        "lake": lake.uri,
        "verdict": verdict_of(lake),
        "recordings": [plain(row) for row in rows[:MAX_SHOWN_RECORDINGS]],
        "recordings_left": max(len(rows) - MAX_SHOWN_RECORDINGS, 0),
        "exchanges": next((table.rows for table in contents.tables if table.name == "exchanges"), 0),
        "tables": tables,
        "running": len(contents.running),
        "half_done": len(contents.half_done),
    }
    return Page("Lake", facts, "The contents of this lake, and the health of its clusters.")


def verdict_of(lake: Lake) -> dict[str, Any] | None:
    """None if the marts were never built."""
    if not has_marts(lake):
        return None
    judged = findings_in(lake, Scope(), ()).verdict
    counts = {"critical": judged.critical, "warning": judged.warning, "info": judged.info}
    return {"state": judged.state, "sentence": judged.sentence, **counts}
