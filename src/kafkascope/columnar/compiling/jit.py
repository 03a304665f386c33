"""Compiles the kernels of all rooms: the only module that asks numba to. What is compiled is kept by `kernel_files`."""

from collections.abc import Callable
from typing import Any

import numba

from kafkascope.columnar.compiling.compile_once import compiling_once
from kafkascope.columnar.compiling.interrupt import uninterrupted
from kafkascope.columnar.compiling.kernel_files import KernelFiles

# The options of every kernel. Those of `capture` work on arrays and check every index. They make none, and who calls
# them holds those that they get: nothing has to be counted. With numba's runtime every table that is handed on, and
# every row of one, would be, by atomic operations. Those of `columnar` handle plain addresses alone, where there is no
# index to check: `machine` says why none leaves its room, and guard pages in the tests prove it.
# Nobody calls them from C, and those that other kernels alone call need no way in from Python either: the code that
# unpacks forty arrays takes longer to compile than most kernels.
_ALL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_WITHIN: dict[str, Any] = {"no_cpython_wrapper": True}
_ARRAYS = _ALL | {"boundscheck": True, "_nrt": False}
_ADDRESSES = _ALL | {"boundscheck": False}
OPTIONS: dict[str, dict[str, Any]] = {
    "jit": _ARRAYS,
    "inlined": _ARRAYS | {"forceinline": True},
    "inline": _ADDRESSES | _WITHIN | {"forceinline": True},
    # Spelt out: what an inline function calls would be inline too.
    "plain": _ADDRESSES | _WITHIN | {"forceinline": False},
    "entry": _ADDRESSES,
}


def jit(function: Any) -> Any:
    """A kernel of its own: compiled when first called, and kept."""
    return _kept(function, "jit")


def inlined(function: Any) -> Any:
    """As `jit`, but never called: handing over forty arrays for each piece took longer than the piece."""
    return _kept(function, "inlined")


# Parts of the entry of `compiled`, which is kept with all of them inside.
inline: Any = numba.njit(**OPTIONS["inline"])
plain: Any = numba.njit(**OPTIONS["plain"])


def entry(signature: str) -> Callable[[Any], Any]:
    """Compiled or loaded at once, for one signature alone."""

    def compiled(function: Any) -> Any:
        made = _kept(function, "entry")
        made.compile(signature)
        made.disable_compile()
        return made

    return compiled


def _kept(function: Any, name: str) -> Any:
    """Two dispatchers: one for Python, whose kernels are kept, and within it one for other kernels, which have what it
    compiles inside them."""
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
