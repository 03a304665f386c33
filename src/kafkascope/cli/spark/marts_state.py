"""Reads the state of a lake's marts: whether they are older than its recordings, and their findings by severity."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkascope.lake.home import Lake


def severities(lake: "Lake") -> dict[str, int]:
    """The number of findings of each severity."""
    from collections import Counter

    from kafkascope.lake.read.visible_rows import dataset

    if not lake.has("findings"):
        return {}
    counts = Counter(dataset(lake, "findings").to_table(columns=["severity"]).column("severity").to_pylist())
    return {severity: counts.get(severity, 0) for severity in ("critical", "warning", "info")}


def are_old(lake: "Lake") -> bool:
    """Whether an ingest was committed since the marts were built, or none were built. The incidents are built last."""
    from kafkascope.lake.read.visible_rows import captures_rows
    from kafkascope.lake.write.commit import find_table

    landed = [row["ingested_at"].timestamp() for row in captures_rows(lake, ["ingested_at"]) if row["ingested_at"]]
    incidents = find_table(lake, "incidents")
    if incidents is None or not landed:
        return bool(landed)
    return bool(incidents.history(1)[0]["timestamp"] / 1000 < max(landed))
