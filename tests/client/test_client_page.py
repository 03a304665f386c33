"""docs/client.md: its program runs against a broker and prints what the page shows; every name is on it."""

import contextlib
import inspect
import io
import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from kafkascope import client
from kafkascope.client import Answer, Cluster, Settings

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")


def test_the_program_of_the_page_prints_what_is_shown(cluster: "Lab") -> None:
    match = re.search(r"^```py\n(.*?)^```\n\n^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert match
    program, shown = match.groups()
    assert "localhost:9092" in program
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program.replace("localhost:9092", cluster.bootstrap), {"__name__": "example"})
    assert printed.getvalue() == shown


def test_every_public_name_is_told() -> None:
    for name in client.__all__:
        assert re.search(rf"\b{name}\b", PAGE), name
        assert getattr(client, name) is not None
    for kind in (Settings, Answer):
        for field in fields(kind):
            assert f"`{field.name}`" in PAGE, field.name
    public = [name for name in vars(Cluster) if not name.startswith("_") and name not in ("open", "close")]
    for name in [*public, *inspect.signature(Cluster.call).parameters]:
        assert name == "self" or re.search(rf"`?\b{name}\b", PAGE), name
