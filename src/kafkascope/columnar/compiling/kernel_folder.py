"""Chooses the folder of compiled kernels: one per state of their sources, for one user only. Compiled kernels are code:
a folder that another user could write to is refused."""

import os
import re
import shutil
import stat
import sys
import time
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core import config

import kafkascope
from kafkascope.errors import UsageError
from kafkascope.limits import MAX_KERNEL_FOLDERS, MAX_KERNEL_IDLE_DAYS

PACKAGE = Path(__file__).parents[2]
# Kernels are written here and nowhere else, with constants from here; a test checks that.
ROOMS = ("columnar", "capture")
# Settings of numba that change the machine code, and that its own key omits.
_SETTINGS = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "DEBUGINFO_DEFAULT")
# Names the kernels of a folder that has all of them.
COMPLETE = "complete"
_DIGEST = re.compile("[0-9a-f]{32}")
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_HOUR, _DAY = 3_600, 86_400


def folder() -> Path | None:
    """Created if missing. None if no folder can be used: then every process compiles for itself."""
    base = base_folder()
    return base and _checked(base, digest())


def base_folder() -> Path | None:
    """Shared by all versions that this user has installed. Symbolic links are resolved once, here."""
    user = os.geteuid() if hasattr(os, "geteuid") else "user"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        # Often one folder for all users of a machine.
        return Path(os.path.realpath(chosen), f"kafkascope-{user}")
    try:
        home = Path.home()
    except RuntimeError:
        return None
    caches = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):  # the specification ignores relative paths
        caches = Path(named)
    return Path(os.path.realpath(caches), "kafkascope", "kernels")


@cache
def digest() -> str:
    """Digest of everything that a compiled kernel depends on: sources, limits, versions, settings and this
    processor."""
    content = sha256()
    for path in sources(PACKAGE):
        source = path.read_bytes()
        content.update(f"{path.relative_to(PACKAGE).as_posix()} {len(source)}\n".encode())
        content.update(source)
    content.update("\n".join([*versions(), *settings(), *processor()]).encode())
    return content.hexdigest()[:32]


def sources(package: Path) -> list[Path]:
    rooms = [path for room in ROOMS for path in (package / room).rglob("*.py")]
    return sorted([*rooms, package / "limits.py"])


def versions() -> list[str]:
    return [kafkascope.__version__, numba.__version__, llvmlite.__version__, np.__version__, sys.version]


def settings() -> list[str]:
    return [f"{name}={getattr(config, name, None)}" for name in _SETTINGS]


def processor() -> list[str]:
    return [binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]


def is_complete(kept: Path) -> bool:
    """Whether every kernel is there that a warm-up has left."""
    try:
        names = (kept / COMPLETE).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return False
    return bool(names) and all((kept / name).exists() for name in names)


def mark_complete(kept: Path) -> None:
    """A folder that can't be written to has its kernels without the mark."""
    own = kept / f"{COMPLETE}.{uuid4().hex}"
    try:
        own.write_text("\n".join(sorted(path.name for path in kept.glob("*.kernel"))), encoding="utf-8")
        own.replace(kept / COMPLETE)
    except OSError:
        with suppress(OSError):
            own.unlink()


def contents(kept: Path) -> tuple[int, int]:
    """The number of kernels in a folder, and their bytes."""
    sizes = [path.stat().st_size for path in kept.glob("*.kernel")]
    return len(sizes), sum(sizes)


@cache
def _checked(base: Path, name: str) -> Path | None:
    """Checks every folder from the root down, so that only its owner and root can replace what has been checked."""
    kept = base / name
    is_new = False
    try:
        for place in (*reversed(kept.parents), kept):
            try:
                status = place.lstat()
            except FileNotFoundError:
                with suppress(FileExistsError):
                    place.mkdir(0o700)
                    is_new = place == kept
                status = place.lstat()
            refuse(place, status, ours=place.is_relative_to(base))
    except OSError:
        return None
    with suppress(OSError):
        if is_new:
            clean(base, kept)
        elif status.st_mtime < time.time() - _HOUR:
            # Marks its last use: existing kernels aren't written again.
            os.utime(kept)
    return kept


def refuse(place: Path, status: os.stat_result, *, ours: bool) -> None:
    """`ours` are folders that contain only kernels; above them root may own a folder, and others may write to a sticky
    one such as /tmp."""
    if not hasattr(os, "geteuid"):
        return
    fix = "or set NUMBA_CACHE_DIR to a folder of your own"
    reason = ""
    if not stat.S_ISDIR(status.st_mode):
        if not ours and not stat.S_ISLNK(status.st_mode):
            raise NotADirectoryError(place)
        reason, fix = "is not a folder", f"remove it, {fix}"
    elif status.st_uid != os.geteuid() and (ours or status.st_uid != 0):
        reason, fix = f"belongs to another user ({status.st_uid})", f"remove it, {fix}" if ours else fix[3:]
    elif status.st_mode & _WRITABLE_BY_OTHERS and ours:
        reason, fix = "can be written to by other users", f"remove it, {fix}"
    elif status.st_mode & _WRITABLE_BY_OTHERS and not status.st_mode & stat.S_ISVTX:
        reason, fix = "can be written to by other users", f"chmod go-w {place}, {fix}"
    if reason:
        raise UsageError(f"refusing to store kernels in {place}: it {reason}, and compiled kernels are code; {fix}")


def clean(base: Path, kept: Path) -> None:
    """Deletes folders of other versions that haven't been used for long; those of the last day stay, since another
    environment of the same user may be using them."""
    used = {}
    for path in base.iterdir():
        if path != kept and _DIGEST.fullmatch(path.name):
            with suppress(FileNotFoundError):
                used[path] = path.lstat().st_mtime
    now = time.time()
    for place, path in enumerate(sorted(used, key=used.__getitem__, reverse=True), 1):
        idle = now - used[path]
        if idle > MAX_KERNEL_IDLE_DAYS * _DAY or (place >= MAX_KERNEL_FOLDERS and idle > _DAY):
            shutil.rmtree(path, ignore_errors=True)
