"""Defines a page as its facts, and the kind that makes it. A template sees only these facts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Page:
    """`facts` are everything that the page shows, and can be written as JSON."""

    title: str
    facts: dict[str, Any]
    description: str = ""


def _none() -> Iterable[dict[str, str]]:
    """For kinds that only the server has."""
    return ()


@dataclass(frozen=True, slots=True)
class Kind:
    """`path` is the address, with `{name}` for each parameter: `message/{name}/{version}.html`.

    `make` takes the parameters by name and raises NotFoundError or UsageError if the page doesn't exist. `every`
    lists the parameters of all pages of the static site. `query` names the arguments that `make` takes from the query
    of an address; a missing one is "". `lasting` means that the same parameters always make the same page. `gate`
    names the limit on how many of these pages the server makes at once, if there is one.
    """

    name: str
    path: str
    template: str
    make: Callable[..., Page]
    every: Callable[[], Iterable[dict[str, str]]] = _none
    query: tuple[str, ...] = field(default=())
    lasting: bool = True
    gate: str = ""
