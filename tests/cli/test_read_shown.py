"""`read` on a terminal: a line fits its window and says what matters first; tables drop columns, not rows; a bar moves
while a person waits, and nothing of it is in a pipe."""

import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from unicodedata import combining, east_asian_width

import numpy as np
import pytest

from kafkascope.capture.exchanges.account import Account
from kafkascope.capture.query.stats import Stats
from kafkascope.capture.query.tallies import (
    Measure,
)
from kafkascope.cli.read.account import Progress, print_account
from kafkascope.cli.read.stats import print_stats
from kafkascope.cli.terminal import cut_middle, width
from tests.captures import HERE
from tests.cli.test_read_filters import exchange_fields, log_line
from tests.support.cli import COMMAND, Cli

SHARE = str(HERE / "share" / "capture.pcap.xz")


def shown(columns: int, *arguments: str, colours: bool = False) -> tuple[str, str]:
    """(standard output on a terminal of this width, standard error)"""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    environment |= {"TERM": "xterm"} if colours else {"NO_COLOR": "1"}
    with subprocess.Popen(
        [COMMAND, "read", *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, env=environment
    ) as child:
        os.close(theirs)
        out = all_of(ours)
        assert child.stderr is not None
        err = child.stderr.read().decode()
    assert child.returncode == 0
    return out.replace("\r\n", "\n"), err


def all_of(terminal: int) -> str:
    parts = []
    # A terminal ends with EIO.
    try:
        while part := os.read(terminal, 65_536):
            parts.append(part)
    except OSError:
        pass
    os.close(terminal)
    return b"".join(parts).decode()


@pytest.mark.parametrize("columns", [40, 80, 160, 200])
def test_a_line_fits_its_window_and_has_api_and_error(cli: Cli, columns: int) -> None:
    errors = [json.loads(line) for line in cli("read", SHARE, "--error", "any", "--json").out.splitlines()]
    assert len(errors) > 5
    head, *lines = shown(columns, SHARE, "--error", "any")[0].splitlines()
    assert len(lines) == len(errors)
    assert all(len(line) <= columns for line in (head, *lines))
    out = "\n".join(lines)
    for line, error in zip(lines if columns >= 80 else [], errors, strict=columns >= 80):
        assert f" {error['api'][:16]}" in line
        assert f" {error['error'][:17]}" in line
    assert ("→ 127.0.0.1:" in out) == (columns >= 150)
    assert ("request response" in head) == (columns >= 150)
    assert bool(re.search(r"watch 127\.0\.0\.1:\d+ +→", out)) == (columns >= 180)


def test_colours_on_a_terminal_do_not_count_as_letters() -> None:
    out, _ = shown(80, SHARE, "--error", "any", colours=True)
    assert "\033[31;1mCOORDINATOR_" in out
    plain = re.sub(r"\033\[[\d;]*m", "", out)
    assert plain == shown(80, SHARE, "--error", "any")[0]


def test_statistics_fit_their_window_and_keep_what_matters() -> None:
    out, _ = shown(80, SHARE, "--stats")
    assert max(map(len, out.splitlines())) <= 80
    heads = [line for line in out.splitlines() if " calls " in line]
    assert len(heads) == 3
    assert all("errors" in head and "p50" in head and "p99" in head for head in heads)
    assert re.search(r"^  127\.0\.0\.1:\d+ → 127\.0\.0\.1:\d+ +\d+ ", out, re.MULTILINE)


def test_statistics_of_the_narrowest_window_have_calls_and_errors() -> None:
    out, _ = shown(40, SHARE, "--stats")
    tables = out.partition("\nErrors\n")[0]
    assert max(map(len, tables.splitlines())) <= 40
    assert len(re.findall(r"^  .* calls  errors$", tables, re.MULTILINE)) == 2, "APIs and clients"
    assert re.search(r"^  127\.0\.0\.1:.*…127\.0\.0\.1:\d+ +\d+$", tables, re.MULTILINE)


# Letters of two columns, letters of none, and both beside those of one.
WIDE = ("請求処理サービス-東京-01-本番環境用", "🚀🔥-deploy-🛰", "cafe\u0301-" * 9, "plain")


def columns_of(line: str) -> int:
    return sum(2 if east_asian_width(c) in "WF" else not combining(c) for c in line)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("wide") / "request.log"
    path.write_text(
        "".join(log_line(exchange_fields(number, name)) for number, name in enumerate(WIDE)), encoding="utf-8"
    )
    return str(path)


@pytest.mark.parametrize("columns", [40, 80, 100, 160, 200])
def test_lines_with_wide_letters_fit_their_window_and_are_aligned(
    cli: Cli, wide: str, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    head, *lines = cli("read", wide, COLUMNS=str(columns), NO_COLOR="1").out.splitlines()
    assert len(lines) == len(WIDE)
    assert max(map(columns_of, lines)) <= columns
    assert {columns_of(line[: line.index("Heart")]) for line in lines} == {columns_of(head[: head.index("API")])}


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_statistics_with_wide_letters_fit_their_window_and_are_aligned(cli: Cli, wide: str, columns: int) -> None:
    out = cli("read", wide, "--stats", COLUMNS=str(columns)).out
    assert max(map(columns_of, out.splitlines())) <= columns
    _, clients = out.split("client id", 1)
    rows = clients.split("\n\n")[0].splitlines()[1:]
    assert len(rows) == len(WIDE)
    assert len({columns_of(row) for row in rows}) == 1


def test_one_exchange_fits_its_window(cli: Cli) -> None:
    lines = cli("read", SHARE, "--api", "ShareFetch").out.splitlines()
    name = lines[1].split()[0]
    out, err = shown(80, SHARE, "--exchange", name)
    assert err == ""
    tree = [line for line in out.splitlines() if re.match(r"[0-9a-f]{6}  | {6}", line)]
    assert len(tree) > 30 and max(map(len, tree)) <= 80
    assert re.search(r"^000004  00 4e +requestApiKey = 78 \(ShareFetch\)$", out, re.MULTILINE)


def test_many_connections_are_summed_behind_the_busiest(capsys: pytest.CaptureFixture[str]) -> None:
    stats = Stats()
    ends = [(f"10.0.0.7:{40_000 + number}", "10.0.0.1:9092", str(number)) for number in range(30)]
    codes = np.repeat(np.arange(30), 100 - np.arange(30))
    numbers = np.zeros((len(codes), len(Measure)), np.int64)
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    numbers[first, Measure.REQUEST_BYTES], numbers[first, Measure.FAILED] = 1_000, 1
    numbers[:, Measure.LATENCY] = -1
    stats.connections.add(codes, ends, numbers, None)
    stats.apis.add(codes[:1], [("Fetch", False)], numbers[:1], None)
    stats.clients.add(codes[:5], ["app"], numbers[:5], None)
    print_stats(stats)
    out = capsys.readouterr().out
    assert out.count(" → 10.0.0.1:9092") == 20
    assert re.search(r"^  10 others \(--json has all\) +755 +10\.0 kB +10$", out, re.MULTILINE), out


def test_long_client_ids_keep_both_ends() -> None:
    assert cut_middle("consumer-billing-17", 30) == "consumer-billing-17"
    assert cut_middle("consumer-billing-17", 12) == "consu…ing-17"
    assert len(cut_middle("x" * 99, 13)) == 13
    assert cut_middle("\033]0;own\007" * 9, 12).isprintable()
    assert cut_middle("請求処理サービス", 12) == "請求…ービス"


def test_a_bar_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    bar = Progress(Account(exchanges=1_234), 1_000_000_000, quiet=False)
    bar.step(1)
    assert capsys.readouterr().err == "", "too soon to be worth a line"
    clock[0] += 2
    bar.step(500_000_000)
    (drawn,) = capsys.readouterr().err.split("\r\033[K")[1:]
    assert drawn == "[##########..........]  50% of 1.0 GB, 250 MB/s, 2 s left, 1,234 exchanges"
    bar.clear()
    bar.clear()
    assert capsys.readouterr().err == "\r\033[K"


def test_remarks_fit_the_terminal_of_standard_error_where_the_answer_goes_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bar of two lines would leave one behind each time that it moves."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 60, 0, 0))
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setenv("TERM", "xterm")
    width.cache_clear()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        bar = Progress(Account(exchanges=1_234), 1_000_000_000, quiet=False)
        clock[0] += 2
        bar.step(500_000_000)
        bar.clear()
        print_account(Account(packets=10**9, log_lines=10**9, files=3, exchanges=10**9), 10**9)
    written = all_of(ours)
    _, drawn, account = written.split("\r\033[K")
    assert drawn.startswith("[##########..........]  50% of 1.0 GB") and len(drawn) < 60
    assert max(map(len, account.splitlines())) <= 60


@pytest.mark.parametrize("terminal", [False, True], ids=["no terminal", "one that knows no commands"])
def test_without_a_bar_progress_is_a_plain_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    progress = Progress(Account(exchanges=7), 1_000, quiet=False)
    for _ in range(70):
        clock[0] += 1
        progress.step(100)
    progress.clear()
    output = capsys.readouterr().err
    assert output.count("\n") == 2 and "\r" not in output and "\033" not in output and "7 exchanges" in output


def test_there_is_no_bar_between_lines_in_a_pipe(cli: Cli) -> None:
    result = cli("read", SHARE)
    assert "\r" not in result.err and "[#" not in result.err


def test_the_help_is_short(cli: Cli) -> None:
    text = cli.out("read", "--help", COLUMNS="80")
    width.cache_clear()
    assert len(text.splitlines()) <= 45


def test_a_recording_larger_than_a_piece_shows_its_first_line_before_its_last_is_read(tmp_path: Path) -> None:
    """A pipe as second file, which nobody has written to yet: the account of the first is printed already."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [COMMAND, "read", str(HERE / "share" / "request-1.log.xz"), str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        with pipe.open("wb"):
            assert child.stdout is not None
            assert b"latency" in child.stdout.readline()
        child.stdout.read()
    assert child.returncode == 3
