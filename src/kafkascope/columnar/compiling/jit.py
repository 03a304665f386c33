"""Compiles the kernels of all rooms: the only module that calls numba's compiler. `kernel_files` stores the results."""

from collections.abc import Callable
from typing import Any

import numba

from kafkascope.columnar.compiling.compile_once import compiling_once
from kafkascope.columnar.compiling.interrupt import uninterrupted
from kafkascope.columnar.compiling.kernel_files import KernelFiles

# The options of every kernel. Those of `capture` work on arrays and check every index. They create no arrays, and their
# callers keep those that they pass alive, so reference counts aren't needed. With numba's runtime every table that is
# passed on, and every row of one, would be counted with atomic operations. Those of `columnar` work on plain addresses,
# where there is no index to check: `machine` explains why none leaves its room, and guard pages in the tests prove it.
# Nothing calls them from C, and those that only other kernels call need no entry from Python either: the code that
# unpacks forty arrays takes longer to compile than most kernels.
_ALL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_WITHIN: dict[str, Any] = {"no_cpython_wrapper": True}
_ARRAYS = _ALL | {"boundscheck": True, "_nrt": False}
_ADDRESSES = _ALL | {"boundscheck": False}
OPTIONS: dict[str, dict[str, Any]] = {
    "jit": _ARRAYS,
    "inlined": _ARRAYS | {"forceinline": True},
    "inline": _ADDRESSES | _WITHIN | {"forceinline": True},
    # Listed explicitly: functions called by an inlined function would be inlined too.
    "plain": _ADDRESSES | _WITHIN | {"forceinline": False},
    "entry": _ADDRESSES,
}


def jit(function: Any) -> Any:
    """A separate kernel: compiled when first called, and stored."""
    return _kept(function, "jit")


def inlined(function: Any) -> Any:
    """Like `jit`, but always inlined: passing forty arrays for each piece took longer than the piece."""
    return _kept(function, "inlined")


# Parts of the entry of `compiled`, which is stored with all of them inside.
inline: Any = numba.njit(**OPTIONS["inline"])
plain: Any = numba.njit(**OPTIONS["plain"])


def entry(signature: str) -> Callable[[Any], Any]:
    """Compiled or loaded at once, for this signature only."""

    def compiled(function: Any) -> Any:
        made = _kept(function, "entry")
        made.compile(signature)
        made.disable_compile()
        return made

    return compiled


def _kept(function: Any, name: str) -> Any:
    """Two dispatchers: one for Python, whose kernels are stored, and within it one for other kernels, which include
    what it compiles."""
    made = numba.njit(**OPTIONS[name])(function)
    made._cache = files = KernelFiles(function, OPTIONS[name])
    compile_now = made.compile

    def compile_whole(signature: Any) -> Any:
        # Waiting for another process can be interrupted, compiling can't.
        with compiling_once(files.path(signature, made.targetctx.codegen())), uninterrupted():
            return compile_now(signature)

    made.compile = compile_whole
    within = numba.njit(**OPTIONS[name], **_WITHIN)(function)
    made.get_call_template, made.get_overload = within.get_call_template, within.get_overload
    return made
