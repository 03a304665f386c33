"""README and docs name every command, flag, limit, error, exported name and property, and what they show is so."""

import doctest
import inspect
import json
import re
import shlex
import sys
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import kafkascope
from kafkascope import errors, limits
from kafkascope.cli import terminal
from kafkascope.cli.live.options import live_options
from kafkascope.cli.main import commands, main
from kafkascope.schema.catalog import apis, index
from kafkascope.schema.errors.error_codes import error_codes
from kafkascope.schema.files import text as data_text
from kafkascope.schema.releases import releases
from tests.logs.recorded import unpack_disks

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXITS = re.compile(r"  # exits with (\d+)$")
LEFT_OUT = "…"
WIDTH = 100


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """What stands under a heading, up to the next of its level."""
    match = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{2,}} (?!#)|\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"no heading {title}"
    return match[2]


def blocks(path: Path, language: str) -> list[str]:
    return [content for kind, content in BLOCK.findall(path.read_text(encoding="utf-8")) if kind == language]


class Shown(NamedTuple):
    """A command of a console block, the exit code that it should have, and the lines it is said to print."""

    command: str
    code: int
    lines: list[str]


def shown_commands(path: Path) -> Iterator[Shown]:
    for block in blocks(path, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            exits = EXITS.search(command)
            yield Shown(EXITS.sub("", command), int(exits[1]) if exits else 0, lines)


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """As a shell would, with pipes and `>` between our own commands: the last exit code, and what was printed."""
    line, _, file = command.partition(" > ")
    stdin, code, printed_text = b"", 0, ""
    for stage in line.split(" | "):
        program, *arguments = shlex.split(stage)
        assert program == "kafkascope", command
        out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin), encoding="utf-8"))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = main(arguments)
        stdin = out.buffer.getvalue()
        printed_text += err.buffer.getvalue().decode()
    if file:
        Path(file).write_bytes(stdin)
        return code, printed_text
    return code, stdin.decode() + printed_text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_shown_runs_and_prints_what_is_shown(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    # The recordings that the examples of `read` name.
    recorded = ROOT / "tests" / "captures" / "share"
    (tmp_path / "share.pcap.xz").symlink_to(recorded / "capture.pcap.xz")
    (tmp_path / "request.log.xz").symlink_to(recorded / "request-1.log.xz")
    if any(shown.command.startswith("kafkascope log ") for shown in shown_commands(path)):
        unpack_disks(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.width.cache_clear()
    terminal.colours.cache_clear()
    wrong = []
    for shown in shown_commands(path):
        code, printed = run(shown.command, monkeypatch)
        if code != shown.code:
            wrong.append(f"{shown.command}: exits with {code}, {shown.code} is written")
        missing = first_missing(shown.lines, printed.splitlines())
        if missing is not None:
            wrong.append(f"{shown.command}: does not print {missing!r} there")
    terminal.width.cache_clear()
    terminal.colours.cache_clear()
    assert not wrong, "\n".join(wrong)


def first_missing(shown: list[str], printed: list[str]) -> str | None:
    """Shown lines follow one another in what is printed, but for the `…` between them."""
    at, gap = 0, False
    for line in shown:
        if line == LEFT_OUT:
            gap = True
            continue
        places = range(at, len(printed)) if gap else range(at, min(at + 1, len(printed)))
        place_found = next((place for place in places if printed[place].rstrip() == line.rstrip()), None)
        if place_found is None:
            return line
        at, gap = place_found + 1, False
    return None if gap or at == len(printed) else f"the end; {printed[at]!r} follows"


def test_shown_output_is_compared() -> None:
    assert first_missing(["a", "…", "c"], ["a", "b", "c"]) is None
    assert first_missing(["a", "c"], ["a", "b", "c"]) == "c"
    assert first_missing(["a", "…"], ["a", "b"]) is None
    assert first_missing(["a"], ["a", "b"]) == "the end; 'b' follows"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_python_block_gives_what_it_shows(path: Path) -> None:
    names: dict[str, object] = {}
    reports: list[str] = []
    for number, block in enumerate(blocks(path, "python")):
        example = doctest.DocTestParser().get_doctest(block, names, f"{path.name} block {number}", path.name, 0)
        assert example.examples, f"{path.name}: a Python block without >>>"
        doctest.DocTestRunner(verbose=False).run(example, out=reports.append, clear_globs=False)
        names = example.globs
    assert not reports, "".join(reports)


def options_of(command: click.Command) -> list[str]:
    return [option for p in command.params if isinstance(p, click.Option) for option in (*p.opts, *p.secondary_opts)]


def connection_flags() -> list[str]:
    """Those of every command that talks to a cluster: told once, in connecting.md."""
    return options_of(live_options(click.command(lambda: None)))


def the_commands() -> dict[str, click.Command]:
    context = click.Context(commands)
    by_name = {name: commands.get_command(context, name) for name in commands.list_commands(context)}
    return {name: command for name, command in by_name.items() if command is not None}


def test_every_command_has_a_section_with_every_flag_and_choice_an_example_and_its_exit_codes() -> None:
    text = page("commands.md")
    names = the_commands()
    assert len(names) >= 12
    for name, command in names.items():
        about = section(text, name)
        own = options_of(command)
        if set(connection_flags()) <= set(own):
            assert "](connecting.md)" in about, name
            own = [option for option in own if option not in connection_flags()]
        for option in own:
            assert re.search(rf"^\| `{re.escape(option)}[ `\[]", about, re.MULTILINE), f"{name} {option}"
        for parameter in command.params:
            if isinstance(parameter.type, click.Choice):
                choices = "\\|".join(parameter.type.choices)
                assert f"[{choices}]" in about, f"{name}: {choices}"
        assert re.search(r"^Exit codes: 0", about, re.MULTILINE), name
        used = " ".join(shown.command for shown in shown_commands(ROOT / "docs" / "commands.md"))
        assert f"kafkascope {name} " in f"{used} ", name
        for option in own:
            assert option in used, f"{name} {option} is in no example"


def test_every_flag_about_connections_is_told_once() -> None:
    text = page("connecting.md")
    assert len(connection_flags()) >= 20
    for option in connection_flags():
        assert re.search(rf"^\| (?:`--[\w-]+`, )?`{option}[ `]", text, re.MULTILINE), option


def test_every_help_flag_is_told() -> None:
    text = page("commands.md")
    for option in (
        "--version",
        "--help",
        "`-h`",
        "NO_COLOR",
        "FORCE_COLOR",
        "COLUMNS",
    ):
        assert option in text, option


def constants() -> dict[str, int]:
    return {name: value for name, value in vars(limits).items() if name.isupper()}


def test_every_limit_is_told_with_its_value_and_precedent() -> None:
    rows = [line.split(" | ") for line in page("limits.md").splitlines() if line.startswith("| `")]
    assert {row[0]: row[1] for row in rows} == {f"| `{name}`": f"{value:,}" for name, value in constants().items()}
    assert all(len(row) == 4 and row[3].strip(" |") for row in rows)


def test_every_error_class_is_told_with_its_exit_code() -> None:
    text = page("errors.md")
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.KafkascopeError)]
    assert len(classes) >= 6
    for error_class in classes:
        row = next((line for line in text.splitlines() if line.startswith(f"| `{error_class.__name__}` |")), "")
        assert f" | {error_class.exit_code} | " in row, error_class.__name__


def test_every_exported_name_is_told() -> None:
    text = page("python.md")
    for name in kafkascope.__all__:
        assert re.search(rf"`{re.escape(name)}[`(]", text), name


def test_every_property_of_the_catalog_json_is_told_under_its_object() -> None:
    text = page("catalog.md")
    schema = json.loads(data_text("catalog.schema.json"))
    objects = {name: part for name, part in schema["$defs"].items() if "properties" in part} | {"catalog": schema}
    for name, part in objects.items():
        properties = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", section(text, name), re.MULTILINE)))
        assert properties == [*part["properties"]], name


def test_counts_are_those_of_the_catalog() -> None:
    known = releases()
    for path in (ROOT / "README.md", ROOT / "CHANGELOG.md"):
        text = " ".join(path.read_text(encoding="utf-8").split())
        assert f"{known[0].name} to {known[-1].name}: {len(apis())} APIs" in text, path.name
        assert f" {len(index())} messages, {len(error_codes())} error codes" in text, path.name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    prose = BLOCK.sub("", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        assert linked.is_file(), target
        if anchor:
            assert anchor in anchors(linked), target


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_every_page_is_linked_from_the_readme(path: Path) -> None:
    assert f"](docs/{path.name})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_extra_is_told_in_the_readme() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for extra in project["optional-dependencies"]:
        assert f"| `{extra}` |" in readme, extra
    described = page("dependencies.md")
    for group in (project["dependencies"], *project["optional-dependencies"].values()):
        for requirement in group:
            name = re.split(r"[\[<>=]", requirement)[0]
            assert name == "kafkascope" or name in described, name


MADE = {".git", ".venv", ".cache", "build", "dist", "__pycache__"}
# Letters in brackets keep the patterns from finding themselves.
ELSEWHERE = re.compile(
    r"/(?:wor[k]|roo[t]|hom[e]|User[s])/|/tm[p]/|pyp[i]\.org|pythonhoste[d]|repo1?\.mave[n]|artifactor[y]|index-ur[l]"
)


def texts() -> Iterator[tuple[Path, str]]:
    for path in ROOT.rglob("*"):
        places = path.relative_to(ROOT).parts
        if (
            any(place in MADE or place.endswith(("_cache", ".egg-info", ".so")) for place in places)
            or not path.is_file()
        ):
            continue
        yield path, path.read_text(encoding="utf-8", errors="replace")


def test_nothing_names_a_machine_or_a_registry() -> None:
    matches = [
        f"{path.relative_to(ROOT)}:{number}"
        for path, text in texts()
        if ELSEWHERE.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if ELSEWHERE.search(line)
    ]
    assert not matches, matches[:10]
