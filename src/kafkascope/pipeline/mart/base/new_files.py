"""Runs the job that writes rows, and returns its files."""

import json
from typing import TYPE_CHECKING, Any

from kafkascope.lake.write.files import NewFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Instead of a file: rows that were taken from a walk earlier turned out to be wrong.
OUTDATED = "outdated"


class OutdatedError(Exception):
    """What rows before a checkpoint were made from shows differently now."""


def written(rows: "DataFrame", write: Any) -> list[NewFile]:
    """`OutdatedError` if a walk can't go on."""
    files = [row.file for row in rows.mapInArrow(write, "file string").collect()]
    if OUTDATED in files:
        raise OutdatedError
    return [NewFile(**json.loads(file)) for file in files]
