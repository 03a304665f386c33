"""docs/describe.md tells every key that `--json` prints, under the object that has it."""

import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from kafkascope.client import describe

PAGE = (Path(__file__).parents[3] / "docs" / "describe.md").read_text(encoding="utf-8")
# Not printed: what a view is made from.
INNER = {"Resource", "Offset", "TopicLeaders"}


def views() -> dict[str, type]:
    modules = [import_module(module.name) for module in iter_modules(describe.__path__, f"{describe.__name__}.")]
    values = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    ours = [value for value in values if is_dataclass(value) and value.__module__.startswith(describe.__name__)]
    return {value.__name__: value for value in ours if value.__name__ not in INNER}


@pytest.mark.parametrize("name", sorted(views()))
def test_every_key_is_told_under_its_object(name: str) -> None:
    section = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section, f"no heading {name}"
    keys = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", section[1], re.MULTILINE)))
    assert sorted(keys) == sorted(field.name for field in fields(views()[name]))
