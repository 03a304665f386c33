"""`marts` reads a lake that anybody may have written: whatever is in its files, it ends with a line, and nothing
outside of the lake is touched.

`KAFKASCOPE_SEED` chooses other damage; with `KAFKASCOPE_SOAK` set there are many times as many cases."""

import random
import shutil
from pathlib import Path

import pytest

from tests.lake.test_hostile_lake import SEED, SOAK, contents, deadline
from tests.lake.test_hostile_lake import outside as outside
from tests.pipeline.test_ingest import capture
from tests.support.cli import Cli, is_one_line_error
from tests.support.lake_damage import Damage
from tests.support.lakes import ingest_here

CASES = 200 if SOAK else 3
# Of each recording, what its marts are made of and little else: planning takes longer than the work.
TABLES = {
    "share": "share_fetch_request share_fetch_response share_group_heartbeat_request metadata_response",
    "streams": "streams_group_heartbeat_request streams_group_heartbeat_response metadata_response",
    "quorum": "describe_quorum_response fetch_request vote_request vote_response",
}


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("lakes")
    for name, tables in TABLES.items():
        ingest_here([capture(name, folder)], folder / name)
        kept = {*tables.split(), "captures", "exchanges", "unfinished"}
        for path in (folder / name).iterdir():
            if path.is_dir() and path.name[0] != "_" and path.name not in kept:
                shutil.rmtree(path)
    return [folder / name for name in TABLES]


@pytest.mark.usefixtures("spark")
def test_marts_of_a_damaged_lake_end_with_a_line(
    lakes: list[Path],
    outside: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the session of the tests, which the command finds and leaves as it was."""
    cli = Cli(capsys, monkeypatch)
    before = contents(outside)
    for number in range(CASES):
        chance = random.Random(f"marts {SEED} {number}")
        lake = tmp_path / "lake"
        shutil.copytree(chance.choice(lakes), lake)
        done = Damage(lake, outside, chance).do()
        print(f"KAFKASCOPE_SEED={SEED}, case {number}: {done}")
        with deadline():
            answer = cli("marts", str(lake))
        assert answer.code in (0, 3), (done, answer)
        assert "Traceback" not in answer.err, (done, answer)
        assert answer.code == 0 or is_one_line_error(answer.err.splitlines(keepends=True)[-1]), (done, answer)
        assert contents(outside) == before, done
        shutil.rmtree(lake)


@pytest.mark.usefixtures("spark")
def test_a_data_file_that_is_cut_off_is_named(
    lakes: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(lakes[1], lake)
    path = next((lake / "streams_group_heartbeat_response").rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-100])
    answer = Cli(capsys, monkeypatch)("marts", str(lake))
    assert answer.code == 3
    assert answer.err.splitlines()[-1].startswith(f"kafkascope: {path}: not the Parquet file that the lake's log names")
