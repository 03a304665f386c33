"""Builds the address of a page, relative to the page that links to it."""

from typing import Any
from urllib.parse import quote

from kafkascope.explorer.page import Kind
from kafkascope.schema.catalog import index


def address(kind: Kind, parameters: dict[str, str]) -> str:
    """From the root of the site, escaped: `message/ShareFetchRequest/2.html`."""
    return kind.path.format(**{name: quote(str(value), safe="@") for name, value in parameters.items()})


def relative(here: str, target: str) -> str:
    """From one address of the site to another, so that it works from any folder."""
    return "../" * here.count("/") + target


def message_page(name: str, version: int | str) -> tuple[str, dict[str, Any]]:
    """Kind and parameters of the page of a message: records have pages of their own."""
    wire = name in index() and index()[name].kind in ("request", "response", "header")
    return "message" if wire else "record", {"name": name, "version": version}


def schema_file(facts: dict[str, Any], form: str) -> str:
    """Of a message's page: its schema as typed JSON (`txt`) or JSON Schema (`json`)."""
    release = f"@{facts['release']}" if facts["release"] else ""
    return f"schema/{quote(facts['message'])}/{facts['version']}{release}.{form}"
