"""How it looks: colours where they are wanted, lines that fit the window, pipes that close early, any encoding."""

import os
import pty
import re
import subprocess

import pytest

from kafkascope.cli.tables import grid, table
from kafkascope.cli.terminal import cells, wrap
from tests.support.cli import COMMAND, Cli, process

ESCAPE = "\033["
PAGES = [
    ["apis"],
    ["apis", "--all"],
    ["show", "ShareFetch"],
    ["show", "ShareFetchRequest:2"],
    ["show", "DescribeQuorumResponse:2"],
    ["diff", "3.9", "4.4"],
    ["diff", "ShareFetch:1", "ShareFetch:2"],
    ["changelog", "Fetch"],
    ["errors"],
    ["errors", "--api", "ShareFetch"],
    ["error", "121"],
    ["catalog"],
    ["doctor"],
    ["example", "FetchResponse:17", "--annotated"],
    ["decode", "0000001d000c0000000000070003617070000568656c6c6f0000000c00036d2d31"],
]


def test_a_pipe_gets_no_colours(cli: Cli) -> None:
    assert ESCAPE not in cli.out("show", "ShareFetchRequest:2")


def test_force_color_paints_and_no_color_wins(cli: Cli) -> None:
    assert ESCAPE in cli.out("show", "ShareFetchRequest:2", FORCE_COLOR="1")
    assert ESCAPE not in cli.out("show", "ShareFetchRequest:2", FORCE_COLOR="1", NO_COLOR="1")


def test_an_empty_no_color_is_none(cli: Cli) -> None:
    # as https://no-color.org has it: present and not empty
    assert ESCAPE in cli.out("show", "ShareFetchRequest:2", FORCE_COLOR="1", NO_COLOR="")


@pytest.mark.parametrize("off", ["0", "false"])
def test_force_color_turns_them_off_too(cli: Cli, off: str) -> None:
    assert ESCAPE not in cli.out("show", "ShareFetchRequest:2", FORCE_COLOR=off)


@pytest.mark.parametrize("page", PAGES, ids=" ".join)
def test_colours_change_nothing_but_colours(cli: Cli, page: list[str]) -> None:
    plain = cli(*page).out
    painted = cli(*page, FORCE_COLOR="1").out
    # How long the kernel took to load is said, and differs from one run to the next.
    same = (re.sub(r"\033\[[0-9;]*m|\d+\.\d+ s", "", text) for text in (painted, plain))
    assert len(set(same)) == 1


def test_json_is_never_painted(cli: Cli) -> None:
    assert ESCAPE not in cli.out("show", "ShareFetch", "--json", FORCE_COLOR="1")


@pytest.mark.parametrize(
    ("variables", "painted"), [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"FORCE_COLOR": "0"}, False)]
)
def test_a_person_at_a_terminal_gets_colours(variables: dict[str, str], painted: bool) -> None:
    ours, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    environment = clean | {"TERM": "xterm"} | variables
    with subprocess.Popen([COMMAND, "error", "121"], stdout=theirs, env=environment) as running:
        os.close(theirs)
        out = b""
        try:
            while piece := os.read(ours, 65536):
                out += piece
        except OSError:  # Linux says so when the other end is closed
            pass
    os.close(ours)
    assert running.returncode == 0
    assert (ESCAPE.encode() in out) is painted


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("page", PAGES, ids=" ".join)
def test_lines_fit_the_window(cli: Cli, page: list[str], columns: int) -> None:
    """No line is wider than the window but for JSON, which is to be copied, and words of more than half its width."""
    out = cli(*page, COLUMNS=str(columns)).out
    for title in ("Schema", "Example", "JSON"):
        out = re.sub(rf"\n{title}\n.*?(?=\n\n|\Z)", "", out, flags=re.DOTALL)
    wide = [line for line in out.splitlines() if len(line) > columns and len(line.split()[-1]) <= columns // 2]
    assert wide == [], f"{len(wide)} lines, the widest {max(map(len, wide))}"


@pytest.mark.parametrize("columns", ["0", "-5", "x", "1", "100000"])
def test_a_strange_width_does_no_harm(cli: Cli, columns: str) -> None:
    assert cli("show", "ShareFetchRequest:2", COLUMNS=columns).code == 0


def test_a_table_whose_last_column_is_empty_may_fill_the_window(cli: Cli) -> None:
    for columns in range(40, 64):
        assert cli("diff", "4.3", "4.1", COLUMNS=str(columns)).err == "", columns


def test_no_line_ends_in_blanks(cli: Cli) -> None:
    for page in PAGES:
        assert [line for line in cli(*page).out.splitlines() if line != line.rstrip()] == [], page


@pytest.mark.parametrize(
    "arguments", [["apis"], ["show", "Fetch"], ["catalog", "--json"], ["show", "ShareFetchRequest:2"]], ids=" ".join
)
def test_a_reader_that_has_seen_enough_is_no_error(arguments: list[str]) -> None:
    with subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        err = running.stderr.read()
    assert (running.returncode, err) == (0, b"")


def test_the_first_line_is_enough_for_head() -> None:
    script = 'set -o pipefail; "$0" show Fetch | head -1'
    done = subprocess.run(["bash", "-c", script, COMMAND], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Fetch ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_that_is_not_unicode_is_no_traceback(encoding: str) -> None:
    for arguments in (["show", "ShareFetchRequest:2"], ["diff", "4.3", "4.4"], ["errors"]):
        done = process(*arguments, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
        assert b"Traceback" not in done.stderr, arguments
        assert done.stdout


NAMES = ["orders", "注文", "e\u0301te\u0301", "🚚 trucks", "naïve"]


@pytest.mark.parametrize("right", [(), (0,)], ids=["left", "right"])
def test_columns_line_up_behind_wide_and_combining_letters(
    right: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    table([(name, "end") for name in NAMES], ("name", "last"), right=right)
    grid(("name", "last"), [(name, "end") for name in NAMES], "name" if right else "")
    starts = {cells(line[: re.search("end|last", line).start()]) for line in capsys.readouterr().out.splitlines()}  # type: ignore[union-attr]
    assert starts == {2 + max(map(cells, NAMES)) + 2}


def test_lines_of_wide_letters_fit_their_columns() -> None:
    text = "東京 から 大阪 まで の 注文"
    assert all(cells(line) <= 12 for line in wrap(text, 12))
    assert " ".join(wrap(text, 12)) == text


def test_letters_take_the_columns_that_rich_gives_them() -> None:
    rich = pytest.importorskip("rich.cells")
    assert [cells(name) for name in NAMES] == [rich.cell_len(name) for name in NAMES]
