"""Publishes a site's files into a folder. Files of other origin are neither removed nor overwritten.

A mark in the folder lists the site's own files. It's written before files are moved, so that the run after an
interrupted one knows them.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from kafkascope.errors import UsageError

SITE_MARK = ".kafkascope-site"
_HEAD = "made by kafkascope site; these files are its own and are replaced or removed by the next run"


def check(folder: Path, force: bool) -> None:
    """`UsageError` for anything but a folder and, without `force`, for a folder with files that aren't ours."""
    existing = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    if existing.exists() and not existing.is_dir():
        raise UsageError(f"{existing} is a file; give a folder")
    other = None if force else next(_foreign(folder, _listed(folder)), None)
    if other is not None:
        raise UsageError(f"{folder} contains {other}, which isn't part of a site; give another folder, or use --force")


def check_free(folder: Path, names: Iterable[str]) -> None:
    """Applies with `force` too: none of our files may have the name of a file or folder that isn't ours."""
    ours = _listed(folder)
    for name in names:
        places = [folder / name, *(folder / parent for parent in Path(name).parents if parent.name)]
        taken = name not in ours and os.path.lexists(places[0])
        in_the_way = next((place for place in places[1:] if place.exists() and not place.is_dir()), None)
        if taken or places[0].is_dir() or in_the_way:
            raise UsageError(
                f"{in_the_way or places[0]} isn't part of an earlier site, but a page has its name;"
                " move it away, or give another folder"
            )


def _listed(folder: Path) -> frozenset[str]:
    """The files that the last run wrote, if there was one. Never includes a foreign file, whatever the mark lists."""
    try:
        lines = (folder / SITE_MARK).read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    except FileNotFoundError:
        return frozenset()
    root = os.path.realpath(folder)
    return frozenset(line for line in lines if _is_inside(root, line))


def _is_inside(root: str, name: str) -> bool:
    """A name may lead elsewhere through a symbolic link."""
    parts = name.split("/")
    if "\0" in name or not all(parts) or {".", "..", SITE_MARK} & set(parts):
        return False
    parent = os.path.join(root, *parts[:-1])
    return os.path.realpath(parent) == parent


def _foreign(folder: Path, ours: frozenset[str]) -> Iterator[str]:
    """Folders count by their contents."""
    for place, folders, files in os.walk(folder):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in sorted((*files, *links)):
            relative = Path(place, name).relative_to(folder).as_posix()
            if relative not in ours and relative != SITE_MARK:
                yield relative


@contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """A place to make files in: inside the folder, so that it's on the same disk and needs no other permission. If no
    file results, no new folder remains."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(mkdtemp(prefix=f"{SITE_MARK}-", dir=folder))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    finally:
        for place in missing:
            with suppress(OSError):  # usually because the site is in it
                place.rmdir()


def publish(folder: Path, staging: Path) -> None:
    """Renames each file to its place, then removes the files that are no longer part of the site."""
    new = sorted(file.relative_to(staging).as_posix() for file in staging.rglob("*") if file.is_file())
    old = _listed(folder)
    _mark(folder, staging, sorted({*new, *old}))
    for name in new:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(staging / name, target)
    for name in sorted(old - set(new)):
        _remove(folder, name)
    _mark(folder, staging, new)


def _mark(folder: Path, staging: Path, names: list[str]) -> None:
    file = staging / SITE_MARK
    file.write_text("\n".join((_HEAD, *names, "")), encoding="utf-8")
    os.replace(file, folder / SITE_MARK)


def _remove(folder: Path, name: str) -> None:
    """Also removes folders that become empty."""
    file = folder / name
    if file.is_dir() and not file.is_symlink():
        return  # someone replaced it by a folder
    with suppress(FileNotFoundError, NotADirectoryError):
        file.unlink()
    for parent in list(Path(name).parents)[:-1]:
        with suppress(OSError):
            (folder / parent).rmdir()
