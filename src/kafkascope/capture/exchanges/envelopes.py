"""Envelopes in, the requests and answers inside them out, as rows like any other (protocol note 11, KIP-590): so that
one kernel reads what is inside, too."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.checked import place
from kafkascope.capture.base.flow import (
    FrameKind,
)
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.frames.headers import (
    Frame,
    FrameRows,
    flexible_from,
    parse_headers,
    uvarint,
)
from kafkascope.columnar.compiling.jit import jit


@dataclass(slots=True)
class Inner:
    """What is inside of the exchanges `outer`, one each: `request` and `response` are of `rows`, the latter -1 where
    the answer holds none. The memory is the outer frames'."""

    outer: npt.NDArray[np.int64]
    rows: FrameRows
    request: npt.NDArray[np.int64]
    response: npt.NDArray[np.int64]

    def only(self, wanted: npt.NDArray[np.bool_]) -> "Inner":
        return Inner(self.outer[wanted], self.rows, self.request[wanted], self.response[wanted])


def open_envelopes(
    content: Content,
    rows: FrameRows,
    request: npt.NDArray[np.int64],
    response: npt.NDArray[np.int64],
    body_at: npt.NDArray[np.int64],
    outer: npt.NDArray[np.int64],
) -> Inner:
    """Of exchanges whose two bodies were read; `body_at` is the answer's."""
    count = len(outer)
    made = np.zeros((2 * count, len(Frame)), dtype=np.int64)
    answered = np.empty(count, dtype=np.int64)
    _open(*content, rows, request, response, body_at, outer, made, answered, flexible_from())
    return Inner(outer, made, np.arange(count), answered)


@jit
def _open(
    waited: Any, body: Any, rows: Any, request: Any, response: Any, body_at: Any, outer: Any, made: Any, answered: Any,
    first_flexible: Any,
) -> None:  # fmt: skip
    """The inner frame is the first field of either body, bytes behind their length."""
    count = len(outer)
    for index in range(count):
        for answer in range(2):
            inner = made[index + answer * count]
            inner[Frame.KIND] = FrameKind.FRAME
            inner[Frame.RESPONSE] = answer
            which = response[outer[index]] if answer else request[outer[index]]
            if which < 0:
                continue
            row = rows[which]
            data, start = place(waited, body, row[Frame.FRAME_AT])
            before = row[Frame.FRAME_AT] - start
            end = start + row[Frame.SIZE]
            start += body_at[outer[index]] if answer else row[Frame.BODY_AT]
            length, position = uvarint(data, start, end)
            inner[Frame.FRAME_AT] = before + position
            inner[Frame.SIZE] = min(max(length - 1, 0), end - position)
        answered[index] = count + index if made[count + index, Frame.SIZE] > 0 else -1
    parse_headers(waited, body, made, 0, first_flexible)
