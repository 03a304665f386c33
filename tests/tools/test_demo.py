"""`make demo` shows the four messages in short, and `--long` shows their whole pages."""

import pytest

from tools.demo import MESSAGES, messages


def test_four_messages_in_short_fit_on_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    messages()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 12
    assert all(any(f"{name} v{version}" in line for line in lines) for name, version in MESSAGES)


def test_long_form_shows_every_page(capsys: pytest.CaptureFixture[str]) -> None:
    messages(long=True)
    printed = capsys.readouterr().out
    assert printed.count("Decoded back") == printed.count("\nSchema\n") == len(MESSAGES)
