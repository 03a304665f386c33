"""The compiled kernel is kept on disk, and elsewhere where the package's own folder cannot be written to."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kafkascope
from kafkascope.columnar.compiled import _stamp, kernel, warm_up

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
PROGRAM = "from kafkascope.columnar.compiled import warm_up; made = warm_up(); print(made.from_disk, made.folder)"


def test_warm_up_says_where_the_kernel_is_kept() -> None:
    made = warm_up()
    assert made.seconds >= 0
    assert made.folder is not None and Path(made.folder).is_dir()
    assert kernel() is kernel()


def test_the_cache_goes_by_every_source_of_the_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from kafkascope.columnar import compiled

    copied = tmp_path / "kafkascope"
    shutil.copytree(Path(kafkascope.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__", "data"))
    monkeypatch.setattr(compiled, "__file__", str(copied / "columnar" / "compiled.py"))
    before = _stamp()
    for name in ("columnar/memory.py", "columnar/operations.py", "limits.py"):
        with (copied / name).open("a") as file:
            file.write("# changed\n")
        assert _stamp() != before
        before = _stamp()


@pytest.mark.skipif(not SOAK, reason="compiles the kernel three times")
def test_a_package_that_cannot_be_written_to_keeps_its_kernel_elsewhere(tmp_path: Path) -> None:
    copied = tmp_path / "site" / "kafkascope"
    shutil.copytree(Path(kafkascope.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    # In its place nothing can be made, not even by root.
    (copied / "columnar" / "__pycache__").touch()
    home = tmp_path / "home"
    nowhere = "/dev/null/nowhere"
    for environment, folder in (
        ({"HOME": str(home)}, str(home)),
        ({"HOME": nowhere, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}, str(tmp_path / "cache")),
        ({"HOME": nowhere}, None),
    ):
        clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "site"), "PYTHONDONTWRITEBYTECODE": "1"}
        said = []
        for _ in range(2):
            command = [sys.executable, "-c", PROGRAM]
            done = subprocess.run(
                command, capture_output=True, text=True, env=clean | environment, timeout=300, check=True
            )
            said.append(done.stdout.split())
        assert [words[0] for words in said] == (["False", "True"] if folder else ["False", "False"])
        assert said[1][1].startswith(folder or "None")
