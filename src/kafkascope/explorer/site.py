"""A folder in, the whole explorer in it as plain files out; a folder that holds something else is left alone."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import unquote

from kafkascope.errors import InputError, UsageError
from kafkascope.explorer.address import address
from kafkascope.explorer.assets import ASSETS, asset
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.page import Kind
from kafkascope.explorer.render import Renderer, json_text

# Lies in a folder that was made by us, so that it can be replaced.
MARK = ".kafkascope-site"


def silent(done: int, total: int) -> None:
    """Progress that nobody watches."""


def site(folder: Path, progress: Callable[[int, int], None] = silent, *, force: bool = False) -> int:
    """How many pages were written. All of them are made beside the folder first, then take its place."""
    try:
        check(folder, force)
        return _site(folder, progress, force)
    except OSError as error:
        raise InputError(f"{folder}: {(error.strerror or str(error)).lower()}") from None


def _site(folder: Path, progress: Callable[[int, int], None], force: bool) -> int:
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        count = _write(made, progress)
        (made / MARK).write_text("made by kafkascope site; what is in this folder is replaced when it is made again\n")
        made.chmod(0o755)
        _replace(folder, made, force)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return count


def check(folder: Path, force: bool) -> None:
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    if there.exists() and not there.is_dir():
        raise UsageError(f"{there} is a file; name a folder")
    if force or not folder.exists() or (folder / MARK).exists():
        return
    if any(folder.iterdir()):
        raise UsageError(f"{folder} holds files that are not a site of ours; name another folder, or use --force")


def pages() -> Iterator[tuple[Kind, dict[str, str]]]:
    for kind in KINDS:
        for parameters in kind.every():
            yield kind, parameters


def _write(root: Path, progress: Callable[[int, int], None]) -> int:
    renderer = Renderer(static=True)
    wanted = list(pages())
    for done, (kind, parameters) in enumerate(wanted, 1):
        page = kind.make(**parameters)
        file = root / unquote(address(kind, parameters))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(renderer.html(kind, parameters, page), encoding="utf-8")
        file.with_name(file.name.removesuffix(".html") + ".json").write_text(json_text(page), encoding="utf-8")
        progress(done, len(wanted))
    for name in ASSETS:
        (root / name).write_bytes(asset(name))
    return len(wanted)


def _replace(folder: Path, made: Path, force: bool) -> None:
    """Into place by renaming. Into a folder with other things in it, file by file."""
    if force and folder.exists() and not (folder / MARK).exists() and any(folder.iterdir()):
        for file in made.rglob("*"):
            if file.is_file():
                target = folder / file.relative_to(made)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)
        return
    old = None
    if folder.exists():
        old = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        os.replace(folder, old)
    os.rename(made, folder)
    if old:
        shutil.rmtree(old)
