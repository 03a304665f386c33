"""Builds the address of a page, relative to the page that links to it."""

from typing import Any
from urllib.parse import quote

from kafkascope.explorer.page import Kind
from kafkascope.schema.catalog import index


def address(kind: Kind, parameters: dict[str, str]) -> str:
    """The address from the root of the site, escaped: `message/ShareFetchRequest/2.html`."""
    return kind.path.format(**{name: quote(str(value), safe="@") for name, value in parameters.items()})


def relative(here: str, target: str) -> str:
    """The link from one address of the site to another; it works in any folder."""
    return "../" * here.count("/") + target


def message_page(name: str, version: int | str) -> tuple[str, dict[str, Any]]:
    """Kind and parameters of a message's page. Records have another kind of page."""
    wire = name in index() and index()[name].kind in ("request", "response", "header")
    return "message" if wire else "record", {"name": name, "version": version}


def schema_file(facts: dict[str, Any], form: str) -> str:
    """Address of a message's schema as typed JSON (`txt`) or JSON Schema (`json`)."""
    release = f"@{facts['release']}" if facts["release"] else ""
    return f"schema/{quote(facts['message'])}/{facts['version']}{release}.{form}"
