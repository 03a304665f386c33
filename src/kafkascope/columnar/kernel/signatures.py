"""Names the types that kernel functions of this room take and return, for readers of their signatures."""

from typing import Any

# To numba: an int64, most often an address; a bool; two int64; three. numpy's and Python's own types are the same
# there.
Int = Any
Bool = Any
Pair = Any
Triple = Any
