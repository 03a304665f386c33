"""Docstrings, comments and texts of the sources, descriptions in JSON Schemas and cells of the notebook are in plain
technical English, as the docs are."""

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plain_words import unwanted

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "kafkascope"
TOP = "top-level modules"
ROOMS = (TOP, *sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()))
BESIDE = ("bench", "lab", "tools")


def modules(room: str) -> list[Path]:
    if room in BESIDE:
        return sorted((ROOT / room).rglob("*.py"))
    return sorted(SOURCE.glob("*.py") if room == TOP else (SOURCE / room).rglob("*.py"))


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Neighbouring lines of comment are one text: a phrase may run over the end of a line."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if block and token.start[0] != last + 1:
                yield last - len(block) + 1, " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    if block:
        yield last - len(block) + 1, " ".join(block)


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Strings with a blank, so docstrings and sentences, and no names or keys. What an f-string fills in is `…`."""
    parts: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            text = node.value
        else:
            continue
        words = text.split()
        # Capitals alone are names of classes, not a sentence.
        if len(words) > 1 and not all(word[0].isupper() for word in words):
            yield node.lineno, text


def faults_in(path: Path) -> list[str]:
    source = path.read_text(encoding="utf-8")
    return [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for number, text in sorted([*comments(source), *literals(source)])
        for word in unwanted(re.sub(r"`[^`]*`|'\w+'", "…", re.sub(r"\s+", " ", text)))
    ]


@pytest.mark.parametrize("room", [*ROOMS, *BESIDE])
def test_sources_use_plain_words(room: str) -> None:
    faults = [line for path in modules(room) for line in faults_in(path)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.schema.json")), ids=lambda path: path.name)
def test_descriptions_of_schemas_use_plain_words(path: Path) -> None:
    texts = re.findall(r'"(?:description|title)": "((?:[^"\\]|\\.)*)"', path.read_text(encoding="utf-8"))
    faults = [f"{text}: {word}" for text in texts for word in unwanted(re.sub(r"`[^`]*`", "…", text))]
    assert texts
    assert not faults, "\n".join(faults)


def test_the_notebook_uses_plain_words() -> None:
    cells = json.loads((ROOT / "docs" / "explore.ipynb").read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    faults = [word for text in texts for word in unwanted(re.sub(r"`[^`]*`", "…", text))]
    assert texts
    assert not faults, "\n".join(faults)


def test_scripts_of_the_pages_use_plain_words() -> None:
    faults = []
    for path in sorted(SOURCE.rglob("*.js")):
        for text in re.findall(
            r"//[^\n]*|/\*.*?\*/|\"[^\"\n]* [^\"\n]*\"", path.read_text(encoding="utf-8"), re.DOTALL
        ):
            faults += [f"{path.name}: {text}: {word}" for word in unwanted(text)]
    assert not faults, "\n".join(faults)


def test_a_comment_a_docstring_and_an_f_string_are_read() -> None:
    lines = '"""It stands\nthere."""\n# what there\n# is\nx = f"{1} simply"\ny = "answer"\nz = "`stands` is a name"\n'
    words = [
        word
        for _, text in sorted([*comments(lines), *literals(lines)])
        for word in unwanted(text.replace("`stands`", "…"))
    ]
    assert [word.split(";")[0] for word in words] == ["'stands'", "'what there is'", "'simply'"]
