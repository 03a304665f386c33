"""README and docs are in plain technical English: words and phrases of an earlier house dialect aren't in them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plain_words import unwanted

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests" / "captures" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their number, without code, addresses of links, and images."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "…", line)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_use_plain_words(path: Path) -> None:
    faults = [f"{path.relative_to(ROOT)}:{number}: {word}" for number, line in prose(path) for word in unwanted(line)]
    assert not faults, "\n".join(faults)


DATA = sorted((ROOT / "src" / "kafkascope" / "schema" / "data").glob("*.txt"))


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.name)
def test_comments_of_the_catalogs_files_use_plain_words(path: Path) -> None:
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    faults = [f"{path.name}:{number}: {word}" for number, line in lines if line[:1] == "#" for word in unwanted(line)]
    assert not faults, "\n".join(faults)


TEMPLATES = sorted((ROOT / "src" / "kafkascope" / "explorer" / "templates").glob("*.html"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_use_plain_words(path: Path) -> None:
    text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<[^>]*>", "…", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    faults = list(unwanted(re.sub(r"\s+", " ", text)))
    assert not faults, "\n".join(faults)
