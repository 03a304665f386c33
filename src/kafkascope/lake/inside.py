"""Resolves names in the lake's own files to places. A lake is untrusted input: a name in a log, a mark or a listing
never leads out of its folder, be it by `..`, as an absolute path or URI, escaped, or through a link."""

import os
import stat
from collections.abc import Iterable
from urllib.parse import unquote

from kafkascope.errors import InputError
from kafkascope.lake.place import Place

# Characters of a refused name to show: enough to find it.
_SHOWN = 200


def inside(folder: Place, name: str) -> Place:
    """The place of that name below the folder; raises `InputError` if it would be elsewhere."""
    place = folder.child(*_parts(folder, name))
    if folder.local:
        _check_real(folder, os.path.realpath(folder.path), os.path.realpath(place.path), name)
    return place


def check_files(folder: Place, names: Iterable[str]) -> None:
    """Checks that all of these are inside, and that none is a folder, a pipe or a device. A missing one is detected
    when it is read."""
    real_folder = os.path.realpath(folder.path) if folder.local else ""
    checked: set[str] = set()
    for name in names:
        parts = _parts(folder, name)
        if not folder.local:
            continue
        above = "/".join(parts[:-1])
        if above not in checked:
            _check_real(folder, real_folder, os.path.realpath(f"{folder.path}/{above}"), name)
            checked.add(above)
        _check_file(folder, real_folder, f"{folder.path}/{'/'.join(parts)}", name)


def check_log(folder: Place) -> None:
    """Delta's library opens whatever a log's folder contains: all of it must be files in there."""
    if not folder.local or not os.path.isdir(folder.path):
        return
    real = os.path.realpath(folder.path)
    try:
        with os.scandir(folder.path) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
                    _check_file(folder, real, entry.path, entry.name)
    except OSError as error:
        raise InputError(f"{folder.uri}: {(error.strerror or str(error)).lower()}") from None


def _parts(folder: Place, name: str) -> list[str]:
    """Delta also allows absolute URIs, and escapes in them: a name that is absolute after either reading is refused."""
    for read in {name, unquote(name), unquote(unquote(name))}:
        parts = read.replace("\\", "/").split("/")
        if any(part in ("", ".", "..") for part in parts) or ":" in parts[0] or "\0" in read:
            raise _refused(folder, name)
    return name.split("/")


def _check_real(folder: Place, real_folder: str, real: str, name: str) -> None:
    if real != real_folder and not real.startswith(f"{real_folder.rstrip('/')}/"):
        raise _refused(folder, name)


def _check_file(folder: Place, real_folder: str, path: str, name: str) -> None:
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            _check_real(folder, real_folder, os.path.realpath(path), name)
            mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{folder.uri}/{name[:_SHOWN]}: {(error.strerror or str(error)).lower()}") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{folder.uri}/{name[:_SHOWN]}: this isn't a file; a lake has files here")


def _refused(folder: Place, name: str) -> InputError:
    return InputError(f"{folder.uri}: it names {name[:_SHOWN]!r}, which is outside its folder")
