"""After a warm-up no task of an ingest needs another kernel; two processes share the work, and it is done once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkascope.capture.warm_up import run as warm_up_run
from kafkascope.capture.warm_up.run import is_warm, warm_up
from kafkascope.columnar.compiling import kernel_folder
from kafkascope.columnar.compiling.kernel_folder import COMPLETE, folder, is_complete, mark_complete
from kafkascope.errors import InputError

CAPTURES = Path(__file__).parents[2] / "captures"
# Loads everything, then runs tasks of ingests; prints the kernels that these still had to look for.
INGESTS = """
import json, sys
from pathlib import Path
from kafkascope.columnar.compiling import kernel_files
from kafkascope.capture.warm_up.kernels import load_all

looked_for = []
path_of = kernel_files.KernelFiles.path
def path(self, signature, codegen):
    made = path_of(self, signature, codegen)
    looked_for.append(made.name)
    return made
kernel_files.KernelFiles.path = path
load_all()
assert looked_for
looked_for.clear()
from tests.pipeline.ingestion.without_spark import ingest_all
rows = ingest_all(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
print(json.dumps([rows, looked_for]))
"""


@pytest.fixture(scope="module")
def warm() -> Path:
    """The folder of this run, with all kernels in it."""
    return Path(warm_up().folder)


def test_after_it_no_ingest_needs_another_kernel(warm: Path, tmp_path: Path) -> None:
    paths = [str(path) for name in ("share", "clients") for path in sorted(CAPTURES.glob(f"{name}/*.xz"))]
    assert len(paths) == 4 and warm == folder()
    process = subprocess.run([sys.executable, "-c", INGESTS, str(tmp_path), *paths], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-2000:]
    rows, looked_for = json.loads(process.stdout)
    assert min(rows) > 100 and looked_for == []


def test_a_kernel_that_is_gone_is_missed(tmp_path: Path) -> None:
    assert not is_complete(tmp_path)
    mark_complete(tmp_path)
    assert not is_complete(tmp_path)
    for name in ("a.kernel", "b.kernel"):
        (tmp_path / name).touch()
    mark_complete(tmp_path)
    assert is_complete(tmp_path) and sorted(os.listdir(tmp_path)) == ["a.kernel", "b.kernel", COMPLETE]
    (tmp_path / "b.kernel").unlink()
    assert not is_complete(tmp_path)


def test_an_existing_folder_that_is_read_only_is_no_reason_to_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kept = folder()
    access = os.access
    # Root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: path != kept and access(path, mode))
    assert is_warm() and kernel_folder.contents(kept or tmp_path) == (0, 0)
    with pytest.raises(InputError, match="cannot be written to"):
        warm_up()


def test_a_half_that_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warm_up_run, "_MODULE", "kafkascope.nowhere")
    with pytest.raises(InputError, match=r"^compiling the kernels failed: .*No module named kafkascope.nowhere$"):
        warm_up()
