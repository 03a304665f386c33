"""Names that the lake's own files hold, turned into places. A lake is input: a name in a log, a mark or a listing never
leads out of the folder that it belongs to, be it by `..`, as a whole path or URI, escaped, or over a link."""

import os
import stat
from collections.abc import Iterable
from urllib.parse import unquote

from kafkascope.errors import InputError
from kafkascope.lake.place import Place

# Of a name that is refused: enough to find it.
_SHOWN = 200


def inside(folder: Place, name: str) -> Place:
    """The place of that name below the folder; `InputError` where it would be elsewhere."""
    place = folder.child(*_parts(folder, name))
    if folder.local:
        _check_real(folder, os.path.realpath(folder.path), os.path.realpath(place.path), name)
    return place


def check_files(folder: Place, names: Iterable[str]) -> None:
    """That all of these are inside, and none is a folder, a pipe or a device. One that is missing is found when it is
    read."""
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
    """Delta's library opens what a log's folder holds by itself: it must all be files in there."""
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
    """Delta allows whole URIs too, and escapes in them: what is one after either reading is refused."""
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
        raise InputError(f"{folder.uri}/{name[:_SHOWN]}: this is not a file; a lake has files here")


def _refused(folder: Place, name: str) -> InputError:
    return InputError(f"{folder.uri}: it names {name[:_SHOWN]!r}, which is outside of its folder")
