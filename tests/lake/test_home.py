"""A lake is made once, opened again, and told apart from what is none; what cannot be said no more than one line."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkascope.errors import InputError, NotFoundError, UsageError
from kafkascope.lake.home import LAKE_FORMAT, SIGN, Lake, make_lake, open_lake
from kafkascope.lake.place import filesystem_errors, place_of, reason
from tests.lake.build import ROOT, exchanges, land, seen, together


def test_lake_that_is_made_opens_again_as_the_same(lake: Lake) -> None:
    assert make_lake(lake.uri).id == open_lake(lake.uri).id == open_lake(f"file://{lake.uri}").id == lake.id
    assert lake.tables() == []


def test_lake_travels_to_tasks(lake: Lake) -> None:
    loaded = pickle.loads(pickle.dumps(lake))  # noqa: S301
    assert (loaded.uri, loaded.id, loaded.tables()) == (lake.uri, lake.id, [])


def test_empty_folder_becomes_a_lake(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert make_lake(tmp_path / "empty").tables() == []


def test_two_that_make_it_at_once_get_one_lake(tmp_path: Path) -> None:
    script = "from kafkascope.lake.home import make_lake\nready()\nprint(make_lake(sys.argv[1]).id)"
    for turn in range(3):
        lakes = together(script, [[str(tmp_path / str(turn))]] * 2)
        assert set(lakes) == {open_lake(tmp_path / str(turn)).id}


def test_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").touch()
    with pytest.raises(UsageError, match="isn't empty and isn't a lake"):
        make_lake(tmp_path)
    with pytest.raises(InputError, match="isn't a kafkascope lake"):
        open_lake(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_file_is_no_lake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="a lake is a folder"):
        make_lake(tmp_path / "file")


def test_missing_lake_is_not_found_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no lake here"):
        open_lake(tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("sign", ["", "{}", "[]", '{"format": "x", "id": "a"}', "\xff"])
def test_sign_of_another_program_is_refused(tmp_path: Path, sign: str) -> None:
    (tmp_path / SIGN).write_text(sign, encoding="latin-1")
    with pytest.raises(InputError, match="another program's"):
        open_lake(tmp_path)


def test_newer_format_is_refused_and_left_alone(lake: Lake) -> None:
    newer = json.dumps({"format": LAKE_FORMAT + 1, "id": lake.id})
    Path(lake.uri, SIGN).write_text(newer)
    for opened in (open_lake, make_lake):
        with pytest.raises(InputError, match=f"a lake of format {LAKE_FORMAT + 1}; .* upgrade"):
            opened(lake.uri)
    assert Path(lake.uri, SIGN).read_text() == newer


def test_unknown_scheme_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="a URI with file, webhdfs, hdfs, s3"):
        place_of("gopher://x/y")


def test_reasons_are_one_line_in_the_systems_words() -> None:
    colours = "Generic error\n  \x1b[31m↳\x1b[0m Unable to open\n  \x1b[31m↳\x1b[0m Too many open files (os error 24)\n"
    assert reason(OSError(colours)) == "too many open files"
    assert reason(OSError("Error: Os { code: 13, kind: PermissionDenied }")) == "no permission"
    assert reason(OSError(28, "Error writing bytes")) == "no space left on device"
    assert reason(ValueError("one\n  two")) == "one two"
    with pytest.raises(InputError, match=r"^there: no such file or directory$"), filesystem_errors("there"):
        raise FileNotFoundError(2, "x")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that every user may look into; pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: S103
        yield Path(folder)


WRITE = """
import os, resource, sys
from kafkascope.errors import InputError
from kafkascope.lake.home import open_lake
from tests.lake.build import CAPTURES, EXCHANGES, capture, commit, exchanges, written
from deltalake import DeltaTable
lake = open_lake(sys.argv[1])
files = written(lake, "b", EXCHANGES, exchanges(["b"]))
what = sys.argv[2]
folders = [folder for folder, _, _ in os.walk(lake.uri)]
if what == "nobody" and os.getuid() == 0:
    os.setuid(65534)
elif what == "nobody":
    for folder in folders:
        os.chmod(folder, 0o555)
if what == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
for step in (
    lambda: written(lake, "c", EXCHANGES, exchanges(["c"])),
    lambda: commit(lake, EXCHANGES, files, "b"),
    lambda: commit(lake, CAPTURES, [], "b"),
):
    try:
        step()
        print("done")
    except InputError as error:
        print(error)
if what == "nobody" and os.getuid() != 65534:
    for folder in folders:
        os.chmod(folder, 0o755)
"""


def refusals(lake: Lake, what: str) -> list[str]:
    command = [sys.executable, "-W", "error", "-c", WRITE, lake.uri, what]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(("what", "why"), [("nobody", "no permission"), ("full", "file too large")])
def test_no_permission_and_a_full_disk_are_one_line_and_leave_the_lake_as_it_was(
    open_folder: Path, what: str, why: str
) -> None:
    lake = make_lake(open_folder / "lake")
    land(lake, "a", exchanges(["a"]))
    message = refusals(lake, what)
    assert len(message) == 3
    assert all(line.startswith(lake.uri) and line.endswith(f": {why}") for line in message), message
    assert seen(lake) == ["a"]
    land(lake, "b", exchanges(["b"]))
    assert seen(lake) == ["a", "b"]


@pytest.mark.parametrize("name", ["a%20b", "a\\b", "a*b", "a?b", "a[1]", "a{b}", "a\nb"])
def test_a_name_that_delta_or_spark_take_for_another_is_refused_and_nothing_made(tmp_path: Path, name: str) -> None:
    for opened in (make_lake, open_lake):
        with pytest.raises(UsageError, match="can't contain"):
            opened(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["sp ace", "a#b", "100%", "ünï日本", "a+b:c;d&e'f\"g", "~a"])
def test_other_odd_names_are_good_for_a_lake(tmp_path: Path, name: str) -> None:
    land(make_lake(tmp_path / name), "one", exchanges(["a"]))
    assert seen(open_lake(tmp_path / name)) == seen(open_lake((tmp_path / name).as_uri())) == ["a"]


def test_an_empty_name_is_not_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for opened in (make_lake, open_lake):
        with pytest.raises(UsageError, match="empty path"):
            opened("")
    assert not list(tmp_path.iterdir())
