"""`warm-up` reports the kernels of this machine, compiles those that are missing, or says why it can't."""

import json
from pathlib import Path

import pytest

from kafkascope.capture.warm_up import run
from kafkascope.capture.warm_up.run import is_warm, warm_up
from kafkascope.columnar.compiling.kernel_folder import contents
from tests.support.cli import Cli


def test_it_says_what_is_there_and_does_nothing_twice(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    warm = Path(warm_up().folder)
    # Nothing is started.
    monkeypatch.setattr(run, "_HALVES", ())
    count, size = contents(warm)
    assert is_warm() and count > 40
    document = json.loads(cli.out("warm-up", "--json"))
    assert document.pop("seconds") >= 0
    assert document == {"folder": str(warm), "kernels": count, "bytes": size, "compiled": 0}
    line = cli.out("warm-up")
    assert line.startswith(f"{count} kernels, ") and f" in {warm}: none was missing, " in line


def test_where_nothing_can_be_kept_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert is_warm()
    answer = cli("warm-up")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith(f"kafkascope: kernels can't be kept: {tmp_path / 'file'}/kafkascope-")
    assert answer.err.rstrip().endswith("or every process compiles for itself")
