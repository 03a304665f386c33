"""`report`: the verdict on the terminal, page and JSON as files, exit codes that a script can use."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from kafkascope.cli import main
from kafkascope.cli.commands.report import run
from kafkascope.lake.home import SIGN, Lake, make_lake
from kafkascope.report.json_form import schema
from tests.report.build import HOSTILE, NOON, delivery, finding, incident, lake_of
from tests.support.cli import Cli, is_one_line_error

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    if "report" not in main.COMMANDS:
        monkeypatch.setattr(main, "COMMANDS", [*main.COMMANDS, "report"])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_of(tmp_path / "lake", incident("share"))


def test_the_terminal_has_verdict_findings_and_a_line_for_each_part(cli: Cli, lake: Lake) -> None:
    output = cli.out("report", lake.uri)
    first = r"▲ Needs attention\nOffset `3` of `\S+-0` was archived after 5 deliveries: no member of\s"
    assert re.match(first, output)
    assert "Incidents: 3\n" in output and "Notes: 1\n" in output
    assert "            4 records late; member crashed, certain\n" in output
    assert "            → records near the delivery limit: Share group `processors` had " in output
    assert "  processors  136 records acquired, 14 redelivered, 4 lock expired" in output
    assert all(len(line) <= 100 for line in output.splitlines() if lake.uri not in line)


def test_colours_say_how_bad_it_is(cli: Cli, lake: Lake) -> None:
    assert cli.out("report", lake.uri, FORCE_COLOR="1").startswith("\033[1;33m▲ Needs attention\033[0m")


def test_page_and_json_are_written_and_named(cli: Cli, lake: Lake, tmp_path: Path) -> None:
    html, document = tmp_path / "out" / "r.html", tmp_path / "r.json"
    output = cli.out("report", lake.uri, "--html", str(html), "--json", str(document))
    assert f"page written to {html}" in output and f"JSON written to {document}" in output
    assert html.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    jsonschema.validate(json.loads(document.read_text(encoding="utf-8")), schema())


@pytest.mark.parametrize("arguments", [["--json"], ["--json", "-"]])
def test_json_alone_goes_to_standard_output(cli: Cli, lake: Lake, arguments: list[str]) -> None:
    assert json.loads(cli.out("report", lake.uri, *arguments))["verdict"]["state"] == "attention"


def test_the_page_can_go_to_standard_output(cli: Cli, lake: Lake) -> None:
    assert cli.out("report", lake.uri, "--html", "-").endswith("</html>\n")


@pytest.mark.parametrize(("severity", "code"), [("critical", 1), ("warning", 0), ("info", 0)])
def test_exits_with_1_where_a_finding_is_critical(cli: Cli, tmp_path: Path, severity: str, code: int) -> None:
    lake = lake_of(tmp_path / "lake", {"findings": [finding(severity)]})
    assert cli("report", lake.uri).code == code
    assert cli("report", lake.uri, "--json").code == code


def test_exits_with_3_where_nothing_is_recorded(cli: Cli, tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", {"findings": [], "exchanges": [{"exchange_id": "a", "request_at": NOON}]})
    assert cli("report", lake.uri).code == 0
    later = ("report", lake.uri, "--between", "2027-01-01", "-")
    answer = cli(*later)
    assert answer.code == 3
    assert answer.out.startswith(
        "? Not judged\nNo exchange was recorded in this time, so there was nothing to judge.\n"
    )
    document = json.loads(cli(*later, "--json").out)
    assert (document["verdict"]["state"], document["exchanges"]) == ("unknown", 0)
    assert cli(*later, "--html", "-").out.count("No exchange was recorded in this time") == 2


def test_a_lake_is_not_said_to_stand_before_a_flag_that_is_not_there(cli: Cli) -> None:
    assert "--json" not in cli("report").err


def test_an_error_steers_no_terminal(cli: Cli, tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", {"share_deliveries": [delivery(group_id=HOSTILE)], "findings": []})
    answer = cli("report", lake.uri, "--group", "nope")
    assert answer.code == 2 and "it has <script>" in answer.err
    assert "\x1b" not in answer.err and "\u202e" not in answer.err


def test_group_and_between_limit_what_is_told(cli: Cli, tmp_path: Path) -> None:
    marts: dict[str, Any] = {
        "share_deliveries": [delivery(group_id="a"), delivery(group_id="b")],
        "findings": [finding("critical", subject="a"), finding("info", subject="b")],
    }
    lake = lake_of(tmp_path / "lake", marts)
    assert cli("report", lake.uri, "--group", "b").code == 0
    document = json.loads(cli("report", lake.uri, "--group", "a", "--json").out)
    assert [group["group_id"] for group in document["share_groups"]["shown"]] == ["a"]
    document = json.loads(cli("report", lake.uri, "--between", "2026-11-15T12:00:30", "-", "--json").out)
    assert document["share_groups"]["shown"] == [] and document["scope"]["since"] == "2026-11-15T12:00:30.000000Z"


def test_a_terminal_obeys_no_name(cli: Cli, tmp_path: Path) -> None:
    marts: dict[str, Any] = {
        "share_deliveries": [delivery(group_id=HOSTILE)],
        "findings": [finding("critical", summary=HOSTILE)],
    }
    output = cli("report", lake_of(tmp_path / "lake", marts).uri).out
    assert "<script>alert(1)</script>" in output and "\x1b" not in output and "\u202e" not in output


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "LAKE is missing"),
        (["--json", "lake"], 2, "LAKE is missing; put it before --json"),
        (["none"], 3, "there is no lake here"),
        (["."], 3, "isn't a kafkascope lake"),
        (["newer"], 3, "a lake of format 99"),
        (["new"], 3, "no marts yet; run kafkascope marts"),
        (["gopher://x"], 2, "can't be opened"),
        (["lake", "--group", "nobody"], 2, "group nobody; it has processors"),
        (["lake", "--between", "soon", "-"], 2, "'soon' isn't a time"),
        (["lake", "--between", "2026-11-15", "2026-11-14"], 2, "isn't after the start"),
        (["lake", "--between", "2026-11-15"], 2, "requires 2 arguments"),
        (["lake", "--html", "-", "--json"], 2, "both write to -"),
        (["lake", "--html", "new"], 3, "is a directory"),
        (["lake", "--pdf", "x"], 2, "unknown option --pdf"),
    ],
)
def test_wrong_use_and_bad_input_are_one_line(
    cli: Cli, lake: Lake, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    folder = Path(lake.uri).parent
    monkeypatch.chdir(folder)
    make_lake(folder / "new")
    Path("newer").mkdir()
    Path("newer", SIGN).write_text('{"format": 99, "id": "x"}')
    answer = cli("report", *arguments)
    assert answer.code == code, answer
    assert is_one_line_error(answer.err) and words in answer.err
    assert answer.out == ""


def test_it_starts_no_jvm(lake: Lake, tmp_path: Path) -> None:
    script = (
        "import sys\nfrom kafkascope.cli import main\nmain.COMMANDS.append('report')\n"
        f"code = main.main(['report', {lake.uri!r}, '--html', {str(tmp_path / 'r.html')!r}])\n"
        "print(code, sorted({'pyspark', 'py4j'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_every_flag_and_exit_code_is_told() -> None:
    about = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    for parameter in run.params:
        if isinstance(parameter, click.Option):
            for option in parameter.opts:
                assert re.search(rf"^\| `{re.escape(option)}[ `\[]", about, re.MULTILINE), option
    assert re.search(r"^Exit codes: 0", about, re.MULTILINE)


def test_every_property_of_the_json_document_is_told() -> None:
    about = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    for name in schema()["properties"]:
        assert f"`{name}`" in about, name
