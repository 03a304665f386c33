"""Stores compiled kernels in files. Each is found by the content of what it was compiled from, and read only if it is
whole. numba's own files are named after one source file, and have an index that two processes can corrupt."""

import os
import pickle
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any
from uuid import uuid4

import numpy as np
from numba.core import compiler, serialize, sigutils
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

from kafkascope.columnar.compiling.kernel_folder import folder

_CHECKSUM = 32
# Untyped in numba, as is everything that passes through them.
_rebuild: Any = compiler.CompileResult._rebuild
_dumps: Any = serialize.dumps
_normalize: Any = sigutils.normalize_signature
_O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)


class KernelFiles(NullCache):  # type: ignore[misc]
    """The cache that numba's dispatcher asks for a compiled function before it compiles, and passes it to
    afterwards."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        self._function = function
        self._options = options

    @property
    def cache_path(self) -> str | None:
        kept = folder()
        return None if kept is None else str(kept)

    def load_overload(self, signature: Any, context: Any) -> Any:
        # Refuse a folder that others can write to, whether it has the file or not.
        path = self.path(signature, context.codegen())
        payload = None if path is None else read(path)
        if payload is None:
            return None
        context.refresh()
        made = _rebuild(context, *pickle.loads(payload))  # noqa: S301 - of this user's own folder
        # Two named tuples can share a name.
        return made if tuple(made.signature.args) == tuple(_normalize(signature)[0]) else None

    def save_overload(self, signature: Any, made: Any) -> None:
        if made.library.has_dynamic_globals or made.lifted:
            return
        path = self.path(signature, made.codegen)
        if path is not None:
            write(path, _dumps(made._reduce()))

    def path(self, signature: Any, codegen: Any) -> Path | None:
        """Of the file for these argument types, whether it exists or not."""
        kept = folder()
        if kept is None:
            return None
        types, _ = _normalize(signature)
        key = [content(self._function), sorted(self._options.items()), _spelt(types), codegen.magic_tuple()]
        name = f"{self._function.__module__}.{self._function.__qualname__}".replace("<locals>.", "")
        return kept / f"{name}-{sha256(repr(key).encode()).hexdigest()[:32]}.kernel"


def read(path: Path) -> bytes | None:
    """None if the file is missing, cut, damaged, or another user's."""
    try:
        number = os.open(path, os.O_RDONLY | _O_NOFOLLOW)
    except OSError:
        return None
    with open(number, "rb") as file:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or (hasattr(os, "geteuid") and status.st_uid != os.geteuid()):
            return None
        whole = file.read()
    payload = whole[_CHECKSUM:]
    return payload if payload and sha256(payload).digest() == whole[:_CHECKSUM] else None


def write(path: Path, payload: bytes) -> None:
    """Atomic: writes under a temporary name, then renames. A full disk isn't an error."""
    own = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        with open(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _O_NOFOLLOW, 0o600), "wb") as file:
            file.write(sha256(payload).digest() + payload)
        own.replace(path)
    except OSError:
        with suppress(OSError):
            own.unlink()


_known: dict[Any, str] = {}


def content(function: FunctionType) -> str:
    """Digest input of a function and everything that is compiled into it, as it is in memory: code, constants, the
    values of globals and of enclosing functions. So a process that outlives an upgrade of its files can't store an old
    kernel under the new digest."""
    if function not in _known:
        _known[function] = function.__qualname__  # if it calls itself
        names = function.__globals__
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        values = [(name, names[name]) for name in _names(function.__code__) if name in names]
        spelt = repr([_code(function.__code__), _value(tuple(cells)), _value(tuple(values))])
        _known[function] = sha256(spelt.encode()).hexdigest()
    return _known[function]


def _names(code: CodeType) -> list[str]:
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names(part)]
    return [*code.co_names, *inner]


def _code(code: CodeType) -> list[Any]:
    constants = [_code(part) if isinstance(part, CodeType) else _value(part) for part in code.co_consts]
    return [code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars]


def _value(value: Any) -> Any:
    if isinstance(value, Dispatcher):
        return content(value.py_func), sorted(value.targetoptions.items())
    if isinstance(value, _Intrinsic):
        return content(value._defn)
    if isinstance(value, tuple):
        return type(value).__qualname__, [_value(part) for part in value]
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, (bool, int, float, complex, str, bytes, np.generic, type(None))):
        return repr(value)
    if isinstance(value, FunctionType) and value.__module__.startswith("kafkascope."):
        return content(value)
    # Modules, types and the functions of numba are covered by the versions and sources that name the folder.
    return getattr(value, "__name__", type(value).__name__), getattr(value, "_fields", None)


def _spelt(types: Any) -> Any:
    return [(str(part), getattr(part, "fields", None), _spelt(getattr(part, "types", ()))) for part in types]
