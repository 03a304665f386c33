"""Variables are called after what they hold."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "tools", "bench", "lab")
EMPTY_NAMES = {"one", "found", "said", "told", "given"}


def names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names of variables, parameters, attributes, functions and classes, each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield name, node.lineno
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name, node.lineno


def test_no_name_says_nothing() -> None:
    empty = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, line in names(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_").lower() in EMPTY_NAMES
    ]
    assert empty == []
