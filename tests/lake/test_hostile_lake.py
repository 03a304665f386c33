"""A lake is input: whatever is in its files, a command ends with a line, and nothing outside of the lake is touched.

`KAFKASCOPE_SEED` chooses other damage; with `KAFKASCOPE_SOAK` set there are many times as many cases."""

import faulthandler
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kafkascope.errors import InputError, KafkascopeError
from kafkascope.explorer.server.app import create
from kafkascope.lake.home import Lake, make_lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.upkeep.info import info
from kafkascope.lake.upkeep.retention import vacuum
from kafkascope.lake.write.heartbeat import INGESTS, begin
from tests.explorer.asgi import ask
from tests.lake.build import days, exchanges, land
from tests.pipeline.test_ingest import capture, pieces
from tests.report.build import incident, put
from tests.support.cli import Cli, is_one_line_error
from tests.support.lake_damage import Damage, paths_out
from tests.support.lakes import half_ingest_here, ingest_here

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
SEED = int(os.environ.get("KAFKASCOPE_SEED", 0)) or (random.randrange(1 << 32) if SOAK else 15)
CASES = 1_000 if SOAK else 24
# Nothing here takes a hundredth of that: who misses it hangs.
SECONDS = 600
TABLES = "captures exchanges findings incidents share_deliveries share_fetch_request unfinished".split()
PAGES = ("index.html", "findings.html", "exchanges.html?group=a", "report.html", "exchange/abc.html")


@contextmanager
def deadline() -> Iterator[None]:
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small lake with all that a lake can have, and a recording that goes on from it."""
    folder = tmp_path_factory.mktemp("whole")
    first, second, third, fourth = pieces(capture("share", folder), 4, seed=9)
    ingest_here([first], folder / "lake")
    lake = ingest_here([second], folder / "lake")
    for name, rows in incident("share").items():
        put(lake, name, rows)
    half_ingest_here([third], lake)
    for path in (folder / "lake").iterdir():
        if path.is_dir() and path.name[0] != "_" and path.name not in TABLES:
            shutil.rmtree(path)
    for name in ("exchanges", "captures"):
        DeltaTable(str(folder / "lake" / name)).create_checkpoint()
    return folder / "lake", fourth


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What nobody may touch, old enough for `vacuum`."""
    folder = tmp_path / "outside"
    (folder / "date=2026-11-15").mkdir(parents=True)
    for name in ("kept.parquet", "date=2026-11-15/kept.parquet", "kept-t.json", "x-t.json"):
        (folder / name).write_bytes(b"kept")
        os.utime(folder / name, (0, 0))
    return folder


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


Work = Callable[[str, Path], None]


@pytest.fixture
def commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[Work]:
    """Every command that opens a lake, and every page of it; the one that deletes is the last."""
    cli = Cli(capsys, monkeypatch)

    def command(*words: str) -> Work:
        def run(where: str, _: Path) -> None:
            answer = cli(*(where if word == "LAKE" else word for word in words), stdin=b"")
            assert answer.code in (0, 1, 3), answer
            assert answer.code != 3 or answer.out or is_one_line_error(answer.err), answer

        return run

    def page(name: str) -> Work:
        def run(where: str, _: Path) -> None:
            assert ask(create(where), f"/lake/{name}").status in (200, 404, 422), name

        return run

    def refused_at_most(work: Work) -> Work:
        def run(where: str, recording: Path) -> None:
            with suppress(KafkascopeError):
                work(where, recording)

        return run

    def compacted(where: str, _: Path) -> None:
        compact(open_lake(where), most_small=1)

    def ingested(where: str, recording: Path) -> None:
        ingest_here([recording], where)

    return [
        command("lake", "info", "LAKE"),
        command("report", "LAKE", "--json"),
        command("lake", "expire", "LAKE", "--before", "2027-01-01"),
        *map(page, PAGES),
        refused_at_most(compacted),
        refused_at_most(ingested),
        command("lake", "vacuum", "LAKE", "--older-than", "0s"),
    ]


def test_damage_of_any_kind_is_a_line(
    whole: tuple[Path, Path], outside: Path, tmp_path: Path, commands: list[Work]
) -> None:
    before = contents(outside)
    *some, last = commands
    for number in range(CASES):
        chance = random.Random(f"{SEED} {number}")
        lake = tmp_path / "lake"
        shutil.copytree(whole[0], lake)
        done = Damage(lake, outside, chance).do()
        print(f"KAFKASCOPE_SEED={SEED}, case {number}: {done}")
        for work in [*(some if SOAK else chance.sample(some, 4)), last]:
            with deadline():
                work(str(lake), whole[1])
        assert contents(outside) == before, done
        shutil.rmtree(lake)


@pytest.mark.parametrize("form", range(len(paths_out(Path("/x")))))
def test_a_log_leads_nowhere_else(tmp_path: Path, outside: Path, form: int) -> None:
    """In every form that a name can have, added, removed, or both."""
    lake = make_lake(tmp_path / "lake")
    land(lake, "a", exchanges(["a1"]))
    name = paths_out(outside / "kept.parquet")[form]
    log = sorted((tmp_path / "lake" / "exchanges" / "_delta_log").glob("*.json"))[-1]
    add = next(json.loads(line)["add"] for line in log.read_text().splitlines() if '"add"' in line)
    actions = [
        {"add": add | {"path": name}},
        {"remove": {"path": name, "deletionTimestamp": 1, "dataChange": True}},
    ]
    whole = log.read_text()
    for chosen in (actions[:1], actions[1:], actions):
        log.write_text(whole + "".join(json.dumps(action) + "\n" for action in chosen))
        if chosen == actions[:1]:
            for work in (info, lambda place: dataset(place, "exchanges").to_table()):
                with pytest.raises(InputError, match="outside its folder"):
                    work(lake)
        with suppress(InputError):
            vacuum(lake, age=days(0))
    assert contents(outside)[str(outside / "kept.parquet")] == b"kept"


@pytest.mark.parametrize(
    "mark",
    [
        {"ingest_id": "../../outside/kept", "token": "t"},
        {"ingest_id": "..", "token": "/../../outside/x-t"},
        {"beat": "2020-01-01T00:00:00"},
        {"pid": 1e400},
        {"started": None},
        {"ingest_id": ["a"]},
    ],
)
def test_a_sign_of_life_deletes_no_other_file(lake: Lake, outside: Path, mark: dict[str, Any]) -> None:
    """`vacuum` ends those of the dead: by the name of the file that it has read, not by what is in it."""
    then = "2020-01-01T00:00:00+00:00"
    sign = {"ingest_id": "a", "token": "t", "user": "u", "host": "h", "pid": 1, "started": then, "beat": then} | mark
    before = contents(outside)
    path = Path(lake.place.path) / INGESTS / "a-t.json"
    path.parent.mkdir()
    path.write_text(json.dumps(sign))
    os.utime(path, (0, 0))
    vacuum(lake, age=days(0))
    assert not path.exists()
    assert contents(outside) == before


def test_links_out_of_the_lake_are_refused_wherever_they_are(lake: Lake, outside: Path) -> None:
    land(lake, "a", exchanges(["a1"]))
    before = contents(outside)
    folder = Path(lake.place.path)
    for name in ("exchanges", "exchanges/_delta_log", "exchanges/date=2026-11-15", INGESTS):
        moved = folder / "moved"
        (folder / name).mkdir(exist_ok=True)
        shutil.move(folder / name, moved)
        (folder / name).symlink_to(outside)
        writing: Callable[[Lake], object] = lambda place: land(place, "b", exchanges(["b1"]))  # noqa: E731
        if name == INGESTS:
            writing = lambda place: begin(place, "b")  # noqa: E731
        for work in (info, lambda place: vacuum(place, age=days(0)), writing):
            with pytest.raises(InputError, match="outside its folder"):
                work(lake)
        (folder / name).unlink()
        shutil.move(moved, folder / name)
    assert contents(outside) == before


def test_links_in_circles_end(lake: Lake) -> None:
    land(lake, "a", exchanges(["a1"]))
    table = Path(lake.place.path) / "exchanges"
    for name in ("one", "two", "three"):
        (table / name).symlink_to(table)
        (table / "date=2026-11-15" / name).symlink_to("..")
    with deadline():
        assert vacuum(lake, age=days(0)).deleted_files == 0
        assert info(lake).tables


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(lake: Lake) -> None:
    land(lake, "a", exchanges(["a1"]))
    folder = Path(lake.place.path)
    data = next((folder / "exchanges").rglob("*.parquet"))
    log = next((folder / "captures" / "_delta_log").glob("*.json"))
    for path in (data, log, folder / "_kafkascope.json"):
        path.unlink()
        os.mkfifo(path)
        with deadline(), pytest.raises(InputError, match="this isn't a file"):
            info(open_lake(lake.uri))
