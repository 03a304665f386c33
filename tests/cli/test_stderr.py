"""Standard error that is closed, full or gone costs no line of the answer, and does not change the exit code."""

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.captures import HERE
from tests.support.cli import COMMAND

SHARE = str(HERE / "share" / "capture.pcap.xz")
WHOLE: list[tuple[list[str], int]] = [
    (["read", SHARE, "--json"], 0),
    (["read", SHARE], 0),
    (["read", SHARE, "--stats"], 0),
    (["read", SHARE, "--topic", "nope"], 1),
    (["read", SHARE, "/nowhere", "--json"], 3),
    (["read", "/nowhere"], 3),
    (["read", SHARE, "--slow", "soon"], 2),
    (["read", "--nope"], 2),
    (["show", "Nope"], 1),
    (["decode", "123"], 3),
]
# A success, an error on the way and wrong use: what differs between ways to lose standard error.
FEW = [(arguments, code) for arguments, code in WHOLE if arguments[-1] in ("--json", "--nope")]


# With it Python keeps nothing that it could fail to flush at its exit.
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def run(arguments: list[str], redirect: str) -> tuple[int, bytes]:
    done = subprocess.run(
        ["bash", "-c", f'exec "$0" "$@" {redirect}', COMMAND, *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60,
        env=BUFFERED,
    )  # fmt: skip
    return done.returncode, done.stdout


@cache
def undisturbed(arguments: tuple[str, ...]) -> tuple[int, bytes]:
    return run([*arguments], "")


@pytest.mark.parametrize(
    ("redirect", "arguments", "code"),
    [
        (redirect, *case)
        for redirect, cases in {"2>&-": WHOLE, "2>/dev/full": FEW, "<&- 2>&-": FEW}.items()
        for case in cases
    ],
)
def test_the_answer_is_whole_without_standard_error(redirect: str, arguments: list[str], code: int) -> None:
    expected = undisturbed(tuple(arguments))
    assert expected[0] == code
    assert run(arguments, redirect) == expected


def test_a_reader_of_standard_error_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = '"$0" read "$1" --json 2> >(exec true) > "$2"'
    # The account comes at the end: by then nobody reads it.
    done = subprocess.run(
        ["bash", "-c", script, COMMAND, SHARE, str(out)], timeout=60, stderr=subprocess.DEVNULL, env=BUFFERED
    )
    assert (done.returncode, out.read_bytes()) == (0, undisturbed(("read", SHARE, "--json"))[1])


def test_no_output_and_no_error_to_tell_it_ends_with_3() -> None:
    assert run(["read", SHARE], ">&- 2>&-") == (3, b"")
    assert run(["read", SHARE], ">/dev/full 2>/dev/full") == (3, b"")
