"""docs/connecting.md names every flag, variable and key of a file, and none that there is not."""

import re
from pathlib import Path
from typing import Any

import click
import pytest

from kafkascope.cli.live.options import live_options
from kafkascope.client.config import java as java_settings
from kafkascope.client.config import librdkafka as librdkafka_settings
from kafkascope.client.config.environment import VARIABLE_PREFIX, variables

PAGE = (Path(__file__).parents[2] / "docs" / "connecting.md").read_text(encoding="utf-8")


def table(heading: str, column: int) -> set[str]:
    """The words in code of one column under a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.replace("| | ", "|  | ").splitlines() if line.startswith("|")]
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row[column] if len(row) > column else "")}


def test_every_flag_is_there() -> None:
    @click.command
    @live_options
    def command(**_: Any) -> None: ...

    flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    assert {words.split()[0] for words in table("Flags and variables", 0)} == flags


def test_every_variable_is_there() -> None:
    assert table("Flags and variables", 1) == set(variables())


def test_a_variable_stands_beside_its_flag() -> None:
    for line in PAGE.splitlines():
        match = re.match(r"\| `--([a-z-]+)", line)
        if match:
            assert f"`{VARIABLE_PREFIX}{match[1].replace('-', '_').upper()}`" in line


@pytest.mark.parametrize(
    ("heading", "read"),
    [("Java's client.properties", java_settings.READ), ("librdkafka's config", librdkafka_settings.READ)],
)
def test_every_key_of_a_file_is_there(heading: str, read: tuple[str, ...]) -> None:
    assert {word for word in table(heading, 0) if "." in word} == set(read)
