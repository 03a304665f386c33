"""Unpacks the requests and responses inside Envelopes as rows like any other (protocol note 11, KIP-590), so that the
same kernel reads them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.checked import place
from kafkascope.capture.base.flow import FrameKind
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.frames.headers import Frame, FrameRows, flexible_from, parse_headers, uvarint
from kafkascope.columnar.compiling.jit import jit


@dataclass(slots=True)
class InnerExchanges:
    """The exchanges inside the exchanges `outer`, one each. `request` and `response` are indexes into `rows`, the
    latter -1 if the outer response contains none. The bytes are those of the outer frames."""

    outer: npt.NDArray[np.int64]
    rows: FrameRows
    request: npt.NDArray[np.int64]
    response: npt.NDArray[np.int64]

    def only(self, chosen: npt.NDArray[np.bool_]) -> "InnerExchanges":
        return InnerExchanges(self.outer[chosen], self.rows, self.request[chosen], self.response[chosen])


def open_envelopes(
    content: Content,
    rows: FrameRows,
    request: npt.NDArray[np.int64],
    response: npt.NDArray[np.int64],
    body_at: npt.NDArray[np.int64],
    outer: npt.NDArray[np.int64],
) -> InnerExchanges:
    """The exchanges inside `outer`, whose two bodies were read; `body_at` is that of the responses."""
    count = len(outer)
    made = np.zeros((2 * count, len(Frame)), dtype=np.int64)
    inner_response = np.empty(count, dtype=np.int64)
    _open(*content, rows, request, response, body_at, outer, made, inner_response, flexible_from())
    return InnerExchanges(outer, made, np.arange(count), inner_response)


@jit
def _open(
    waited: Any, body: Any, rows: Any, request: Any, response: Any, body_at: Any, outer: Any, made: Any,
    inner_response: Any, first_flexible: Any,
) -> None:  # fmt: skip
    """The inner frame is the first field of either body: a length and bytes."""
    count = len(outer)
    for index in range(count):
        for is_response in range(2):
            inner = made[index + is_response * count]
            inner[Frame.KIND] = FrameKind.FRAME
            inner[Frame.RESPONSE] = is_response
            which = response[outer[index]] if is_response else request[outer[index]]
            if which < 0:
                continue
            row = rows[which]
            data, start = place(waited, body, row[Frame.FRAME_AT])
            before = row[Frame.FRAME_AT] - start
            end = start + row[Frame.SIZE]
            start += body_at[outer[index]] if is_response else row[Frame.BODY_AT]
            length, position = uvarint(data, start, end)
            inner[Frame.FRAME_AT] = before + position
            inner[Frame.SIZE] = min(max(length - 1, 0), end - position)
        inner_response[index] = count + index if made[count + index, Frame.SIZE] > 0 else -1
    parse_headers(waited, body, made, 0, first_flexible)
