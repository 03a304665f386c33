"""The folder of compiled kernels: a new one for every state of the code, for one user alone, and old ones go."""

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import llvmlite
import numba
import numpy as np
import pytest
from numba.core import config

import kafkascope
from kafkascope.columnar.compiling import kernel_folder
from kafkascope.columnar.compiling.kernel_folder import PACKAGE, ROOMS, contents, digest, folder, sources
from kafkascope.errors import UsageError
from kafkascope.limits import MAX_KERNEL_FOLDERS, MAX_KERNEL_IDLE_DAYS
from tests.support.cli import is_one_line_error, process

CAPTURE = str(Path(__file__).parents[2] / "captures" / "share" / "capture.pcap.xz")
NOBODY = 65_534
DAY = 86_400
# Others can write to it, or could replace it: what is done to which folder, and what the line says.
REFUSED = {
    "itself for its group": ("kept", 0o770, "chmod"),
    "itself for all": ("kept", 0o707, "chmod"),
    "itself, though sticky": ("kept", 0o1777, "chmod"),
    "the one of all versions": ("base", 0o777, "chmod"),
    "the one above": ("above", 0o777, "chmod"),
    "the one above for its group": ("above", 0o770, "chmod"),
    "itself of another user": ("kept", NOBODY, "chown"),
    "the one of all versions, of another user": ("base", NOBODY, "chown"),
    "the one above, of another user": ("above", NOBODY, "chown"),
}


@pytest.fixture
def above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """NUMBA_CACHE_DIR, not there yet."""
    chosen = tmp_path / "chosen"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(chosen))
    return chosen


@pytest.fixture(autouse=True)
def _looks_again() -> Iterator[None]:
    """A process looks once."""
    kernel_folder._checked.cache_clear()
    digest.cache_clear()
    yield
    kernel_folder._checked.cache_clear()
    digest.cache_clear()


def test_a_digest_goes_by_every_source_of_a_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for room in ROOMS:
        shutil.copytree(PACKAGE / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE / "limits.py", tmp_path)
    own = digest()
    digest.cache_clear()
    monkeypatch.setattr(kernel_folder, "PACKAGE", tmp_path)
    seen = {digest()}
    assert seen == {own}
    changed = sources(tmp_path)
    assert {path.name for path in changed} >= {"limits.py", "jit.py", "flow.py", "headers.py", "memory.py"}
    for path in changed:
        path.write_bytes(path.read_bytes() + b"#")
        digest.cache_clear()
        assert digest() not in seen, path
        seen.add(digest())
    folder = tmp_path / "capture" / "base"
    (folder / "flow.py").rename(folder / "flows.py")
    digest.cache_clear()
    assert digest() not in seen
    assert len(seen) == len(changed) + 1


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        *[(module, "__version__", "99.9") for module in (kafkascope, numba, llvmlite, np)],
        (sys, "version", "3.99"),
        (config, "BOUNDSCHECK", 1),
        (config, "OPT", 0),
        (llvmlite.binding, "get_host_cpu_name", lambda: "another"),
        (llvmlite.binding, "get_host_cpu_features", llvmlite.binding.FeatureMap),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_digest_goes_by_versions_settings_and_processor(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, value: object
) -> None:
    own = digest()
    digest.cache_clear()
    monkeypatch.setattr(module, name, value)
    assert digest() != own


def test_kernels_are_written_in_their_rooms_and_compiled_by_one_module() -> None:
    compiles = set()
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if re.search(r"^\s*(import|from) (numba|llvmlite)\b", source, re.MULTILINE):
            assert path.relative_to(PACKAGE).parts[0] in ROOMS, path
            if re.search(r"\b(n?jit|vectorize|guvectorize|cfunc)\(|cache=True", source):
                compiles.add(path.name)
    assert compiles == {"jit.py"}


def test_a_folder_is_created_for_its_user_alone(above: Path) -> None:
    before = os.umask(0)
    try:
        kept = folder()
    finally:
        os.umask(before)
    assert kept == above / f"kafkascope-{os.geteuid()}" / digest()
    assert [path.stat().st_mode & 0o7777 for path in (kept, kept.parent, above)] == [0o700] * 3
    assert contents(kept) == (0, 0)


def test_a_folder_is_in_the_cache_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    caches = tmp_path / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    assert folder() == caches / "kafkascope" / "kernels" / digest()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folder() == tmp_path / "xdg" / "kafkascope" / "kernels" / digest()
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert folder() == caches / "kafkascope" / "kernels" / digest()


@pytest.mark.parametrize(("which", "value", "how"), REFUSED.values(), ids=REFUSED)
def test_refuses_a_folder_that_others_could_write_to(above: Path, which: str, value: int, how: str) -> None:
    kept = folder()
    assert kept is not None
    place = {"kept": kept, "base": kept.parent, "above": above}[which]
    if how == "chown":
        if os.geteuid():
            pytest.skip("only root gives folders away")
        os.chown(place, value, -1)
    else:
        place.chmod(value)
    kernel_folder._checked.cache_clear()
    with pytest.raises(UsageError) as refused:
        folder()
    message = str(refused.value)
    assert message.startswith(f"refusing to store kernels in {place}: it ") and "compiled kernels are code; " in message
    assert ("belongs to another user" if how == "chown" else "can be written to by other users") in message
    assert message.endswith("set NUMBA_CACHE_DIR to a folder of your own")


def test_a_sticky_folder_above_is_fine(above: Path) -> None:
    above.mkdir()
    above.chmod(0o1777)
    assert folder() is not None


def test_refuses_a_symbolic_link_and_follows_those_above(above: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(0o700)
    above.symlink_to(tmp_path / "real")
    kept = folder()
    assert kept is not None and kept.parents[1] == tmp_path / "real"
    kept.rename(tmp_path / "elsewhere")
    kept.symlink_to(tmp_path / "elsewhere")
    kernel_folder._checked.cache_clear()
    with pytest.raises(UsageError, match="it is not a folder, and compiled kernels are code; remove it"):
        folder()


def test_a_link_to_a_folder_of_others_is_refused_by_what_it_leads_to(above: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real").chmod(0o777)
    above.symlink_to(tmp_path / "real")
    with pytest.raises(UsageError, match=f"{tmp_path}/real: it can be written to"):
        folder()


def test_there_is_none_where_no_folder_can_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "folder"))
    assert folder() is None


def test_read_with_such_a_folder_ends_with_2_and_one_line(above: Path) -> None:
    above.mkdir()
    above.chmod(0o777)
    done = process("read", CAPTURE, NUMBA_CACHE_DIR=str(above))
    assert (done.returncode, done.stdout) == (2, b"")
    assert is_one_line_error(done.stderr.decode()) and "compiled kernels are code; chmod go-w" in done.stderr.decode()


def made(base: Path, count: int, days: float) -> list[Path]:
    """Folders as other versions leave them, last used so long ago."""
    folders = [base / f"{number:031x}{int(days) % 10}" for number in range(count)]
    for path in folders:
        path.mkdir(parents=True, mode=0o700)
        (path / "kafkascope.capture.x-1.kernel").write_bytes(bytes(100))
        os.utime(path, (time.time() - days * DAY,) * 2)
    return folders


def test_old_folders_go_when_a_new_one_is_made(above: Path) -> None:
    base = above / f"kafkascope-{os.geteuid()}"
    above.mkdir(mode=0o700)
    base.mkdir(mode=0o700)
    old = made(base, 2, MAX_KERNEL_IDLE_DAYS + 1)
    week = made(base, 2, 7)
    mine = [base / "notes", base / "0123"]
    for path in mine:
        path.mkdir()
        os.utime(path, (0, 0))
    assert folder() is not None
    assert [path.exists() for path in (*old, *week, *mine)] == [False] * 2 + [True] * 4
    # Nothing is looked through when the folder is there.
    older = made(base, 1, MAX_KERNEL_IDLE_DAYS + 1)
    kernel_folder._checked.cache_clear()
    folder()
    assert older[0].exists()


def test_of_many_folders_those_used_last_stay_and_all_of_today(above: Path) -> None:
    base = above / f"kafkascope-{os.geteuid()}"
    above.mkdir(mode=0o700)
    base.mkdir(mode=0o700)
    today, week, month = made(base, 4, 0.5), made(base, 3, 6), made(base, 9, 28)
    folder()
    assert all(path.exists() for path in (*today, *week))
    assert sum(path.exists() for path in month) == MAX_KERNEL_FOLDERS - 1 - len(today) - len(week)


def test_versions_side_by_side_keep_theirs(above: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start of either would make the other compile for a minute."""
    other = made(above / f"kafkascope-{os.geteuid()}", 12, 0.9)
    assert folder() is not None and all(path.exists() for path in other)
    # A start is a use.
    mine = folder()
    assert mine is not None
    os.utime(mine, (time.time() - 20 * DAY,) * 2)
    kernel_folder._checked.cache_clear()
    folder()
    assert time.time() - mine.stat().st_mtime < DAY
    digest.cache_clear()
    monkeypatch.setattr(kafkascope, "__version__", "99.9")
    assert folder() != mine and mine.exists()
