"""Arguments in, what the command line answers out: in this process, or as a process of its own."""

import io
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkascope.cli import terminal
from kafkascope.cli.main import main

COMMAND = str(Path(sys.executable).with_name("kafkascope"))


def hear_interrupts() -> None:
    """For a child: a shell that runs the tests in the background makes all below it deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str


class Cli:
    """`cli("show", "ShareFetch")`; standard input is empty unless given."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("COLUMNS", "100")

    def __call__(self, *arguments: str, stdin: bytes = b"", **environment: str) -> Answer:
        for name, value in environment.items():
            self._monkeypatch.setenv(name, value)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        # one process answers once, so these remember; here many answers share one
        terminal.colours.cache_clear()
        terminal.width.cache_clear()
        self._capsys.readouterr()
        code = main(list(arguments))
        out, err = self._capsys.readouterr()
        return Answer(code, out, err)

    def out(self, *arguments: str, stdin: bytes = b"", **environment: str) -> str:
        """Of an answer that must be a success without remarks."""
        answer = self(*arguments, stdin=stdin, **environment)
        assert (answer.code, answer.err) == (0, ""), answer
        return answer.out


def process(
    *arguments: str | bytes, stdin: bytes = b"", timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return subprocess.run(
        [COMMAND, *arguments], input=stdin, capture_output=True, timeout=timeout, env=clean | environment
    )


def without_progress(text: str) -> list[str]:
    """The lines but those that a slow machine adds, as `reading: 20% of 1.2 GB in 3 files, 31 s`."""
    return [line for line in text.splitlines() if not re.match(r"\w[\w ]*: \d+% of ", line)]


def is_one_line_error(text: str) -> bool:
    return text.startswith("kafkascope") and text.count("\n") == 1 and "Traceback" not in text
