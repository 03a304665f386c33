"""Writes the whole explorer as plain files into a folder. Other files in the folder stay."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

from kafkascope.errors import InputError
from kafkascope.explorer.address import address
from kafkascope.explorer.assets import ASSETS, asset
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.page import Kind
from kafkascope.explorer.render import Renderer, json_text
from kafkascope.explorer.site_folder import check, check_free, publish, staging_folder


def _silent(done: int, total: int) -> None:
    """Progress that nobody watches."""


def site(folder: Path, progress: Callable[[int, int], None] = _silent, *, force: bool = False) -> int:
    """How many pages were written. All of them are made first, then take the place of a former site's."""
    try:
        check(folder, force)
        # Of a link and of `.` what they stand for.
        place = Path(os.path.realpath(folder))
        listing = list(_pages())
        check_free(place, _files(listing))
        with staging_folder(place) as staging:
            _write(staging, listing, progress)
            publish(place, staging)
    except OSError as error:
        raise InputError(f"{folder}: {(error.strerror or str(error)).lower()}") from None
    return len(listing)


def _pages() -> Iterator[tuple[Kind, dict[str, str]]]:
    for kind in KINDS:
        for parameters in kind.every():
            yield kind, parameters


def _file(kind: Kind, parameters: dict[str, str]) -> str:
    return unquote(address(kind, parameters))


def _json_of(file: str) -> str:
    return file.removesuffix(".html") + ".json"


def _files(listing: list[tuple[Kind, dict[str, str]]]) -> Iterator[str]:
    """Names of all that is written."""
    for kind, parameters in listing:
        file = _file(kind, parameters)
        yield from (file, _json_of(file))
    yield from ASSETS


def _write(root: Path, listing: list[tuple[Kind, dict[str, str]]], progress: Callable[[int, int], None]) -> None:
    renderer = Renderer(static=True)
    for done, (kind, parameters) in enumerate(listing, 1):
        page = kind.make(**parameters)
        name = _file(kind, parameters)
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(renderer.html(kind, parameters, page), encoding="utf-8")
        (root / _json_of(name)).write_text(json_text(page), encoding="utf-8")
        progress(done, len(listing))
    for name in ASSETS:
        (root / name).write_bytes(asset(name))
