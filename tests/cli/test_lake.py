"""`lake`: an account in text and JSON, leftovers and old days taken out; what is no lake is one line."""

import json
import re
from datetime import datetime
from pathlib import Path

import click
import pytest

from kafkascope.cli.commands.lake import run
from kafkascope.lake.home import SIGN, Lake, make_lake, open_lake
from kafkascope.lake.write.heartbeat import begin
from tests.lake.build import NOON, ROOT, days, exchanges, half_land, land, on_disk, seen
from tests.support.cli import Cli, is_one_line_error


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A whole ingest over two days, one that runs, one that died."""
    made = make_lake(tmp_path / "lake")
    land(made, "5d1f", exchanges(["a", "b"] * 600), exchanges(["c"], NOON + days(1)))
    half_land(made, "77aa", exchanges(["d"] * 3))
    begin(made, "90ff")
    return made


def test_info_tells_tables_and_ingests(cli: Cli, lake: Lake) -> None:
    lines = cli.out("lake", "info", lake.uri).splitlines()
    assert "1 recording in 1 ingest, format 2" in " ".join(lines[:2])
    rows = [line.split() for line in lines]
    assert ["exchanges", "1,201", "2"] in [row[:3] for row in rows]
    assert any("2026-11-15 12:00 – 2026-11-16 12:00" in line for line in lines)
    assert any(re.search(r"90ff +pid \d+ on ", line) for line in lines)
    assert any("77aa  3 rows in exchanges" in line for line in lines)


def test_info_as_json_has_the_keys_that_are_told(cli: Cli, lake: Lake) -> None:
    document = json.loads(cli.out("lake", "info", lake.uri, "--json"))
    assert list(document) == ["uri", "format", "tables", "recordings", "ingests", "running", "half_done"]
    (exchanges,) = [table for table in document["tables"] if table["name"] == "exchanges"]
    assert (exchanges["rows"], exchanges["files"], exchanges["hidden_files"]) == (1201, 2, 1)
    assert datetime.fromisoformat(exchanges["first_at"]) == NOON
    assert [run["ingest_id"] for run in document["running"]] == ["90ff"]
    assert list(document["running"][0]) == ["ingest_id", "user", "host", "pid", "started", "beat"]
    assert [(half_done["ingest_id"], half_done["rows"]) for half_done in document["half_done"]] == [("77aa", 3)]


def test_info_of_a_new_lake_is_a_line(cli: Cli, tmp_path: Path) -> None:
    make_lake(tmp_path / "new")
    assert len(cli.out("lake", "info", str(tmp_path / "new")).split("\n", 2)) <= 3


def test_vacuum_says_what_goes_and_takes_it(cli: Cli, lake: Lake) -> None:
    before = on_disk(lake)
    output = cli.out("lake", "vacuum", lake.uri, "--dry-run")
    assert "Of ingests that died (77aa): would be removed" in output
    assert on_disk(lake) == before
    output = cli.out("lake", "vacuum", lake.uri)
    assert "Of ingests that died (77aa): removed" in output
    assert "1 file of" in output and "too new to delete" in output
    assert on_disk(lake) == before
    done = json.loads(cli.out("lake", "vacuum", lake.uri, "--older-than", "0s", "--json"))
    assert (done["dry_run"], done["ingests"], done["deleted_files"], done["waiting_files"]) == (False, [], 1, 0)
    assert len(on_disk(lake)) == len(before) - 1


def test_expire_takes_whole_days(cli: Cli, lake: Lake) -> None:
    output = cli.out("lake", "expire", lake.uri, "--before", "2026-11-16", "--dry-run")
    assert "Before 2026-11-16: would be removed" in output
    assert "Marts keep the rows of those days until kafkascope marts" in output
    assert len(seen(lake)) == 1201
    done = json.loads(cli.out("lake", "expire", lake.uri, "--before", "2026-11-16", "--json"))
    assert [(out["table"], out["rows"]) for out in done["taken_out"]] == [("exchanges", 1200)]
    assert seen(lake) == ["c"]
    assert cli.out("lake", "expire", lake.uri, "--before", "2026-11-16") == "Nothing is older than 2026-11-16.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["info", "none"], 1, "there is no lake here"),
        (["info", "."], 3, "isn't a kafkascope lake"),
        (["info", "newer"], 3, "a lake of format 99"),
        (["info", "gopher://x"], 2, "can't be opened"),
        (["expire", "none", "--before", "soon"], 2, "isn't a day; write it as 2026-11-15"),
        (["expire", "none"], 2, "kafkascope lake expire: --before is missing"),
        (["vacuum", "none", "--older-than", "long"], 2, "isn't a duration; write it as 250us, 100ms"),
        (["vacuum", "none", "--older-than", "7d"], 1, "there is no lake here"),
        (["info", ""], 2, "an empty path"),
        (["vacuum", "none"], 1, "there is no lake here"),
        (["empty"], 2, "kafkascope lake: unknown command empty; the commands are"),
    ],
)
def test_wrong_use_and_bad_input_are_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("newer").mkdir()
    Path("newer", SIGN).write_text('{"format": 99, "id": "x"}')
    answer = cli("lake", *arguments)
    assert answer.code == code, answer
    assert is_one_line_error(answer.err) and words in answer.err


def test_expired_rows_do_not_come_back(cli: Cli, lake: Lake) -> None:
    cli.out("lake", "expire", lake.uri, "--before", "2026-11-17")
    land(open_lake(lake.uri), "5d1f", exchanges(["a"]))
    assert seen(lake) == []


def test_every_flag_and_key_of_the_three_is_told() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    about = text.split("\n## lake\n")[1].split("\n## ")[0]
    context = click.Context(run)
    for name in run.list_commands(context):
        command = run.get_command(context, name)
        assert command is not None
        part = about.split(f"`kafkascope lake {name} LAKE")[1].split("`kafkascope lake ")[0]
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                for option in parameter.opts:
                    assert re.search(rf"^\| `{re.escape(option)}[ `]", part, re.MULTILINE), f"{name} {option}"
