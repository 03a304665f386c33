"""How kernel functions are compiled: one entry is kept on disk, everything else is compiled into it."""

import numba

# No exceptions, no reference counts, no checks of indices: the functions handle plain addresses alone.
inline = numba.njit(nogil=True, error_model="numpy", boundscheck=False, forceinline=True)
plain = numba.njit(nogil=True, error_model="numpy", boundscheck=False)
