"""`doctor` about the pipeline: Java, folders and Spark, each with what is there and what mends it."""

import json
import os
from pathlib import Path

import pytest

from kafkascope.columnar.compiling.kernel_folder import contents, folder
from kafkascope.formatting import size
from tests.support.cli import Cli, process

Check = dict[str, object]


def checks(cli: Cli, *arguments: str) -> dict[str, Check]:
    rows = json.loads(cli("doctor", "--json", *arguments).out)["checks"]
    return {check["what"]: check for check in rows}


def fake_java(folder: Path, says: str) -> Path:
    """A Java home whose `java -version` says so."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('java version "25" 2025-09-16 LTS', 25),
    ],
)
def test_java_is_told_by_version_and_path(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, version: int
) -> None:
    java = fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    row = checks(cli)["Java"]
    assert row["ok"] and row["found"] == f"{version}, {java}, for the pipeline"


def test_java_that_is_too_old_is_told_with_the_fix(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, 'openjdk version "1.8.0_292"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    row = checks(cli)["Java"]
    assert not row["ok"]
    assert row["found"] == f"{java} is Java 8"
    assert row["fix"] == "install Java 17 or newer, or set JAVA_HOME to one"


def test_no_java_is_no_error_until_spark_is_asked_for(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = cli("doctor")
    assert answer.code == 0
    assert "found none; install Java 17 or newer" in " ".join(answer.out.split())
    answer = cli("doctor", "--spark")
    assert (answer.code, answer.err) == (1, "")
    assert answer.out.rstrip().endswith("Spark doesn't start: see above.")


def test_a_folder_that_cannot_be_written_to_is_told(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "file" / "folder"))
    row = checks(cli)["Spark's files"]
    assert not row["ok"] and "cannot be written to" in str(row["found"])
    assert "set SPARK_LOCAL_DIRS to a writable folder" in str(row["fix"])
    (tmp_path / "file").unlink()
    assert checks(cli)["Spark's files"]["ok"]
    assert os.listdir(tmp_path / "file" / "folder") == []


def test_the_folder_of_kernels_is_told_with_its_size(cli: Cli) -> None:
    kept = folder()
    assert kept is not None
    row = checks(cli)["kernels"]
    count, total = contents(kept)
    assert row["ok"] and str(row["found"]).startswith(f"{count} compiled, {size(total)} in {kept}")


def test_kernels_that_cannot_be_kept_are_told(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(cli)["kernels"]["ok"]
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "folder"))
    row = checks(cli)["kernels"]
    assert not row["ok"] and str(row["found"]).endswith("cannot be written to")
    assert str(row["fix"]).startswith("set NUMBA_CACHE_DIR to a writable folder")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "open"))
    row = checks(cli)["kernels"]
    assert not row["ok"] and str(row["found"]).endswith("and compiled kernels are code")
    assert str(row["fix"]).startswith(f"chmod go-w {tmp_path / 'open'}")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "new"))
    row = checks(cli)["kernels"]
    assert row["ok"] and str(row["found"]).startswith("0 compiled, 0 B in ")
    assert str(row["found"]).endswith(
        "; others are compiled when they are first needed, or all by `kafkascope warm-up`"
    )


@pytest.mark.heavy
def test_spark_starts_and_a_worker_answers_when_asked() -> None:
    # In a process of its own: a session in this one is other tests'.
    answer = process("doctor", "--spark", timeout=300)
    output = " ".join(answer.stdout.decode().split())
    assert answer.returncode == 0
    assert "a Python worker responds in" in output
    assert output.rstrip().endswith("The catalog and the codec work.")
