"""How kernel functions are compiled: into the one entry that is kept on disk (see `compiled`)."""

from typing import Any

import numba

# To numba an int64, most often an address; a bool; two int64. numpy's and Python's own are the same there.
Int = Any
Bool = Any
Pair = Any

# No exceptions, no reference counts, no checks of indices: the functions handle plain addresses alone.
inline: Any = numba.njit(nogil=True, error_model="numpy", boundscheck=False, forceinline=True)
# Said aloud: what an inline function calls would be inline too.
plain: Any = numba.njit(nogil=True, error_model="numpy", boundscheck=False, forceinline=False)
