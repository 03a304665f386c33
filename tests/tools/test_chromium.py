"""The tool that finds Chromium: what is named counts, and where there is none it says so and fails nothing."""

from pathlib import Path

import pytest

from tools import chromium as tool


def test_the_one_that_is_named_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "chromium"
    program.touch()
    monkeypatch.setenv(tool.CHOICE, str(program))
    assert tool.chromium() == str(program)
    monkeypatch.setenv(tool.CHOICE, str(tmp_path / "nothing"))
    assert tool.chromium() is None


def test_the_first_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "google-chrome"
    program.touch(mode=0o755)
    monkeypatch.delenv(tool.CHOICE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool.chromium() == str(program)


def test_a_machine_without_one_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(tool.CHOICE, raising=False)
    # No apt-get either.
    monkeypatch.setenv("PATH", str(tmp_path))
    tool.main()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "apt-get install chromium" in said and "are skipped" in said
