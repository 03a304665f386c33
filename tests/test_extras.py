"""The extras in pyproject.toml, and the line for whoever lacks one."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from kafkascope.errors import UsageError
from kafkascope.extras import EXTRAS, PACKAGES, need_extras

MODULES = {package: module for module, package in PACKAGES.items()}
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def packages(extra: str, declared: dict[str, list[str]]) -> set[str]:
    """Those that the extra brings, with the extras that it has in it."""
    names: set[str] = set()
    for requirement in declared[extra]:
        match = re.match(r"([a-z0-9-]+)(?:\[([a-z]+)\])?", requirement)
        assert match is not None
        names |= packages(match[2], declared) if match[1] == "kafkascope" else {MODULES.get(match[1], match[1])}
    return names


def test_extras_are_those_of_the_project() -> None:
    declared = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    offered = {name for name in declared if name not in ("all", "bench", "dev")}
    assert {name: set(modules) for name, modules in EXTRAS.items()} == {
        name: packages(name, declared) for name in offered
    }


def test_several_extras_are_asked_for_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("jinja2", "deltalake", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError) as caught:
        need_extras("serve --lake", "explorer", "lake")
    assert str(caught.value) == (
        "serve --lake needs jinja2, deltalake and pyarrow: pip install 'kafkascope[explorer,lake]'"
    )
