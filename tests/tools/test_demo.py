"""`make demo` shows the four messages in short, and `--long` shows their whole pages and the whole report."""

from pathlib import Path

import pytest

from tests.report.build import finding, report_of
from tools.demo import MESSAGES, messages, story


def test_four_messages_in_short_fit_on_a_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    messages()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 12 and max(map(len, lines)) <= 80
    assert all(any(f"{name} v{version}" in line for line in lines) for name, version in MESSAGES)


def test_long_form_shows_every_page(capsys: pytest.CaptureFixture[str]) -> None:
    messages(long=True)
    printed = capsys.readouterr().out
    assert printed.count("Decoded back") == printed.count("\nSchema\n") == len(MESSAGES)


def test_story_is_the_verdict_and_where_the_page_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    page.write_text("page")
    report = report_of(tmp_path / "lake", findings=[finding()])
    story(report, str(page), long=False)
    short = capsys.readouterr().out
    story(report, str(page), long=True)
    long = capsys.readouterr().out
    assert short.splitlines()[0] == long.splitlines()[0] and str(page) in short
    assert "Not read" in long and "Not read" not in short
