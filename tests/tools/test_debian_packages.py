"""The tool that finds Chromium and other programs of Debian: a named Chromium counts, what it installs it prints first,
and without them nothing fails."""

import os
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tools import debian_packages as tool


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
    output = capsys.readouterr().err
    assert output.count("\n") == output.count("are skipped") == 5
    for package in ("chromium-headless-shell", "tcpdump", "tshark", "xxd", "lz4"):
        assert f"apt-get install {package}" in output


# Writes down each call, with what the user could read by then.
APT_GET = """#!/bin/sh
{ echo "apt-get $*"; /bin/cat screen; } > "call-$1-$#"
case "$*" in *--simulate*) echo "Inst libnspr4 (2:4.35)"; echo "Inst chromium (140)";; esac
"""


def test_nothing_is_installed_that_was_not_printed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apt-get").write_text(APT_GET)
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(tool.CHOICE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with (tmp_path / "screen").open("w") as screen, redirect_stdout(screen):
        tool.main()
    update, *before_update = (tmp_path / "call-update-1").read_text().splitlines()
    assert update == "apt-get update"
    assert len(before_update) == 1
    assert (
        "apt-get update && apt-get install --yes --no-install-recommends chromium-headless-shell tcpdump tshark xxd lz4"
        in before_update[0]
    )
    assert f"{tool.CHOICE}=none" in before_update[0]
    install, *before_install = (tmp_path / "call-install-8").read_text().splitlines()
    assert install == "apt-get install --yes --no-install-recommends chromium-headless-shell tcpdump tshark xxd lz4"
    assert before_install == [*before_update, "packages that apt-get installs now: libnspr4 chromium"]


def test_none_installs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apt-get").write_text(APT_GET)
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv(tool.CHOICE, "none")
    tool.main()
    assert not list(tmp_path.glob("call-*"))
