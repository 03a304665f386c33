"""Files and modules that the docs name exist, and the protocol notes that code cites; files and folders stay small."""

import re
import tomllib
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "kafkascope"
HOMES = [PACKAGE, PACKAGE.parent, ROOT]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE = [path for folder in ("src", "tests", "tools", "bench", "lab") for path in sorted((ROOT / folder).rglob("*.py"))]
FILE = re.compile(r"(?<![\w/.])((?:[a-z_]+/)+[a-z_]+\.(?:py|c))\b")
DOTTED = re.compile(r"\bkafkascope(?:\.[a-z_][a-z0-9_]*)+(?:\.[A-Z]\w*)?")
CITED = re.compile(r"protocol notes? (\d+(?:(?:, | and )\d+)*)")
# A completion script.
NOT_OURS = {"kafkascope.fish"}


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = set(FILE.findall(read(page)))
    assert [name for name in sorted(named) if not any((home / name).exists() for home in HOMES)] == []


def exists(name: str) -> bool:
    """A module, or what the longest module of the name has."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        module = ".".join(parts[:end])
        try:
            exists_ = find_spec(module) is not None
        except ModuleNotFoundError:
            exists_ = False
        if exists_:
            imported = import_module(module)
            return end == len(parts) or (end == len(parts) - 1 and hasattr(imported, parts[-1]))
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_modules_that_a_page_names_exist(page: Path) -> None:
    named = set(DOTTED.findall(read(page))) - NOT_OURS
    assert [name for name in sorted(named) if not exists(name)] == []


def test_notes_that_code_cites_exist() -> None:
    notes = [
        int(number) for number in re.findall(r"^(\d+)\. ", read(ROOT / "docs" / "protocol-notes.md"), re.MULTILINE)
    ]
    assert notes == list(range(1, len(notes) + 1))
    cited = {int(number) for path in CODE for some in CITED.findall(read(path)) for number in re.findall(r"\d+", some)}
    assert len(cited) > 30 and cited <= set(notes)


def test_no_module_hides_beside_a_package_of_its_name() -> None:
    """Python imports the package, so the module would be dead code."""
    assert [path for path in PACKAGE.rglob("*.py") if path.with_suffix("").is_dir()] == []


def test_each_contract_of_layers_has_every_module() -> None:
    """import-linter then fails for a module in no layer."""
    settings = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]
    layered = [contract for contract in settings["contracts"] if contract["type"] == "layers"]
    assert len(layered) > 10
    assert [contract["name"] for contract in layered if not contract.get("exhaustive")] == []


def test_no_folder_has_more_than_twenty_modules() -> None:
    counts = Counter(path.parent for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    assert [f"{folder}: {count}" for folder, count in counts.items() if count > 20] == []


def test_no_file_has_more_than_five_hundred_lines() -> None:
    lengths = {path.relative_to(ROOT).as_posix(): read(path).count("\n") for path in CODE}
    assert {name: length for name, length in lengths.items() if length > 500} == {}
