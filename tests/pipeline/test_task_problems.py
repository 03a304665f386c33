"""What is wrong with recordings is in quarantine with file, place and bytes, however much of it there is."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kafkascope.capture.base.flow import Problem
from kafkascope.capture.exchanges.account import MOST_KEPT, Account
from kafkascope.capture.exchanges.exchanges import Recordings
from kafkascope.lake.home import make_lake
from kafkascope.lake.write.files import Files
from kafkascope.pipeline.ingestion.rows.exchange_writer import ExchangeWriter
from kafkascope.pipeline.ingestion.rows.problems import write_problems


def quarantined(folder: Path, account: Account) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """(rows, how many of each file)"""
    lake = make_lake(folder)
    files = Files(lake, "given")
    intake = ExchangeWriter(files)
    write_problems(intake, account, Recordings(["a.pcap", "b.pcap", "c.pcap"], [0, 100, 200]))
    rows = [
        row for file in files.close() for row in pq.read_table(lake.table(file.table).child(file.path).path).to_pylist()
    ]
    assert intake.quarantined == len(rows)
    return rows, dict(intake.quarantined_by_uri)


def account_of(*files: tuple[str, int]) -> Account:
    """So many problems of each file, of seven bytes each."""
    account = Account()
    for number, (file, count) in enumerate(files):
        account.begin(file)
        first = 100 * number
        account.add_problems(Problem("malformed", "odd", first + at, 100 * at, 7) for at in range(count))
    return account


def test_the_rest_of_a_kind_has_its_file_and_bytes(tmp_path: Path) -> None:
    rows, by_file = quarantined(tmp_path / "lake", account_of(("a.pcap", 100)))
    assert by_file == {"a.pcap": MOST_KEPT + 1}
    assert sum(row["bytes"] for row in rows) == 700
    assert [row["detail"] for row in rows[1:]] == [
        *(f"odd (offset {100 * n})" for n in range(1, 5)),
        "95 more of this kind",
    ]


def test_the_rest_of_several_files_says_so(tmp_path: Path) -> None:
    rows, by_file = quarantined(tmp_path / "lake", account_of(("a.pcap", 3), ("b.pcap", 3), ("c.pcap", 3)))
    assert by_file == {"a.pcap": 3, "b.pcap": 3}
    assert (rows[-1]["capture_uri"], rows[-1]["bytes"]) == ("b.pcap", 28)
    assert rows[-1]["detail"] == "4 more of this kind, in this file and those read after it"


def test_what_has_no_offset_names_none(tmp_path: Path) -> None:
    account = Account()
    account.begin("a.pcap")
    account.add_problems([Problem("stray", "3 segments don't belong to any connection of their flow", -1, -1, 0)])
    ((row,), _) = quarantined(tmp_path / "lake", account)
    assert row["detail"] == "3 segments don't belong to any connection of their flow"
