"""Builds the mart of findings from the other marts. The rules read what they need of each mart, a batch at a time."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.health.findings.diagnosis import Finding, findings_of
from kafkascope.health.findings.needs import Need, needs_of
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.write.files import Files
from kafkascope.lake.write.replace import replace

_ROWS = 16_384


def write_findings(lake: Lake, thresholds: Mapping[str, float], prefix: str) -> int:
    """How many there are."""
    rows = list(_findings(lake, thresholds))
    files = Files(lake, "", prefix)
    if rows:
        files.add(MARTS["findings"], _table(rows))
    replace(lake, MARTS["findings"], files.close())
    return len(rows)


def _findings(lake: Lake, thresholds: Mapping[str, float]) -> Iterator[Finding]:
    needs = needs_of(thresholds)
    return findings_of({name: _rows(lake, name, need) for name, need in needs.items() if lake.has(name)}, thresholds)


def _rows(lake: Lake, name: str, need: Need) -> Iterator[dict[str, Any]]:
    """Times as whole microseconds. Most rows of a mart are of what went well: these become no Python objects."""
    rows = dataset(lake, name)

    def column(name: str) -> pc.Expression:
        expression = pc.field(name)
        return expression.cast(pa.int64()) if pa.types.is_timestamp(rows.schema.field(name).type) else expression

    projection = {name: column(name) for name in need.columns}
    where = None if need.where is None else need.where(column)
    for batch in rows.to_batches(columns=projection, filter=where, batch_size=_ROWS):
        yield from batch.to_pylist()


def _table(findings: list[Finding]) -> pa.Table:
    schema = MARTS["findings"].schema
    rows = [{**asdict(finding), "figures": json.dumps(finding.figures)} for finding in findings]
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in schema])
    return pa.Table.from_pylist(rows, schema=plain).cast(schema)
