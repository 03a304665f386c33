"""Writes the whole explorer as plain files into a folder. Other files in the folder are kept."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

from kafkascope.errors import InputError
from kafkascope.explorer.address import address
from kafkascope.explorer.assets import ASSETS, asset
from kafkascope.explorer.downloads import DOWNLOADS, DOWNLOADS_OF, SITEMAP, Download, public_address, sitemap
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.page import Kind
from kafkascope.explorer.render import Renderer, json_text
from kafkascope.explorer.site_folder import check, check_free, publish, staging_folder


def _silent(done: int, total: int) -> None:
    """Ignores progress."""


def site(folder: Path, progress: Callable[[int, int], None] = _silent, *, force: bool = False, public: str = "") -> int:
    """Returns the number of pages. All are made first and then replace those of an earlier site. `public` is the future
    address of the folder, for the sitemap and link previews."""
    public = public_address(public) if public else ""
    try:
        check(folder, force)
        # Resolves links and `.`.
        place = Path(os.path.realpath(folder))
        listing = list(_pages())
        check_free(place, _files(listing, public))
        with staging_folder(place) as staging:
            _write(staging, listing, progress, public)
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


def _downloads(kind: Kind, parameters: dict[str, str]) -> Iterator[tuple[str, Download]]:
    """Files that belong to a page."""
    for download in DOWNLOADS if kind.name in DOWNLOADS_OF else ():
        yield download.path.format(**parameters), download


def _files(listing: list[tuple[Kind, dict[str, str]]], public: str) -> Iterator[str]:
    """Names of all files that are written."""
    for kind, parameters in listing:
        file = _file(kind, parameters)
        yield from (file, _json_of(file))
        yield from (name for name, _ in _downloads(kind, parameters))
    yield from ASSETS
    if public:
        yield SITEMAP


def _write(
    root: Path, listing: list[tuple[Kind, dict[str, str]]], progress: Callable[[int, int], None], public: str
) -> None:
    renderer = Renderer(static=True, public=public)

    def write(name: str, content: str | bytes) -> None:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    for done, (kind, parameters) in enumerate(listing, 1):
        page = kind.make(**parameters)
        name = _file(kind, parameters)
        write(name, renderer.html(kind, parameters, page))
        write(_json_of(name), json_text(page))
        for file, download in _downloads(kind, parameters):
            write(file, download.make(**parameters))
        progress(done, len(listing))
    for name in ASSETS:
        write(name, asset(name))
    if public:
        write(SITEMAP, sitemap(public, (address(kind, parameters) for kind, parameters in listing)))
