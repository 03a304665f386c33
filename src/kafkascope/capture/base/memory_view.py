"""Addresses two byte arrays as one: frames that waited from earlier batches, then the batch's own. A place counts
through both arrays; a place outside them is a `KernelError`."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.checked import copy, place
from kafkascope.capture.base.flow import Bytes
from kafkascope.columnar.compiling.jit import jit
from kafkascope.errors import KernelError

NO_BYTES: Bytes = np.empty(0, dtype=np.uint8)


class Content(NamedTuple):
    first: Bytes
    second: Bytes

    def bytes(self, at: int, count: int) -> bytes:
        data, at = (self.first, at) if at < len(self.first) else (self.second, at - len(self.first))
        if at < 0 or count < 0 or count > len(data) - at:
            raise KernelError.at(f"bytes {at} to {at + count} of {len(data)}")
        return data[at : at + count].tobytes()

    def view(self, at: int, count: int) -> Bytes:
        """The same bytes without a copy: the view keeps its array alive."""
        data, at = (self.first, at) if at < len(self.first) else (self.second, at - len(self.first))
        if at < 0 or count < 0 or count > len(data) - at:
            raise KernelError.at(f"bytes {at} to {at + count} of {len(data)}")
        return data[at : at + count]

    def gathered(self, places: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> Bytes:
        """The bytes at each of the places, concatenated."""
        joined = np.empty(int(sizes.sum()), dtype=np.uint8)
        try:
            _gather(self.first, self.second, places, sizes, joined)
        except IndexError as error:
            raise KernelError.at("frames of a batch") from error
        return joined


@jit
def _gather(first: Any, second: Any, places: Any, sizes: Any, joined: Any) -> None:
    to = np.int64(0)
    for index in range(len(places)):
        data, at = place(first, second, places[index])
        copy(joined, to, data, at, sizes[index])
        to += sizes[index]
