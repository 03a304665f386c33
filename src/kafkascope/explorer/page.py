"""Defines a page as its facts, and the kind that makes it. A template sees these facts and nothing else."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Page:
    """`facts` can be written as JSON and hold all that the page shows."""

    title: str
    facts: dict[str, Any]
    description: str = ""


def _none() -> Iterable[dict[str, str]]:
    """For kinds that the server alone has."""
    return ()


@dataclass(frozen=True, slots=True)
class Kind:
    """`path` is the address, with `{name}` for each parameter: `message/{name}/{version}.html`.

    `make` takes the parameters by name and raises NotFoundError or UsageError where there is no such page. `every`
    lists the parameters of all pages that the static site has. `query` names what `make` takes from behind the `?`
    of an address besides: "" where it is missing. `lasting` says that the same parameters always make the same page.
    `gate` names what bounds how many of these pages the server makes at once, if anything does.
    """

    name: str
    path: str
    template: str
    make: Callable[..., Page]
    every: Callable[[], Iterable[dict[str, str]]] = _none
    query: tuple[str, ...] = field(default=())
    lasting: bool = True
    gate: str = ""
