"""What earlier ingests left unfinished comes out of the lake, which is input: a state that no ingest has written is a
row in quarantine, and the ingest goes on without it."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from tests.pipeline.test_seams import cut_share
from tests.support.lakes import ingest_here


def rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = dataset(lake, name).to_table().to_pylist()
    return table


def forge(folder: Path, change: Any) -> int:
    """How many states there are."""
    (path,) = (folder / "unfinished").glob("*.parquet")
    table = pq.read_table(path)
    at = table.schema.get_field_index("state")
    states = [change(state) for state in table.column(at).to_pylist()]
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(states, pa.string())), path)
    return len(states)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        lambda _: "[" * 100_000,
        lambda _: '{"form":1e400}',
        lambda state: json.dumps(json.loads(state) | {"place": 1 << 60}),
        lambda state: state[: random.Random(1).randrange(len(state))],
    ],
)
def test_a_forged_state_is_in_quarantine_and_what_it_was_about_stays(tmp_path: Path, change: Any) -> None:
    first, second, _ = cut_share(tmp_path)
    lake = ingest_here([first], tmp_path / "lake")
    before = {row["exchange_id"]: row["status"] for row in rows(lake, "exchanges")}
    assert "unanswered" in before.values()
    count = forge(tmp_path / "lake", change)
    ingest_here([second], tmp_path / "lake")
    lake = open_lake(str(tmp_path / "lake"))
    after = {row["exchange_id"]: row["status"] for row in rows(lake, "exchanges")}
    assert len(after) > len(before)
    assert {name: after.get(name) for name in before} == before
    quarantined = [row for row in rows(lake, "quarantine") if row["kind"] == "unfinished"]
    assert quarantined and all(
        "the state of an earlier run" in row["detail"] or "more of this" in row["detail"] for row in quarantined
    )
    more = sum(int(row["detail"].split()[0]) - 1 for row in quarantined if "more of this" in row["detail"])
    assert len(quarantined) + more == count
