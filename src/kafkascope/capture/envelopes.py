"""Envelopes in, the requests and answers inside them out, as rows like any other (GOTCHAS 9a, KIP-590): so that one
kernel reads what is inside, too."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.flow import FRAME
from kafkascope.capture.headers import (
    ADDRESS,
    BODY_AT,
    KIND,
    RESPONSE,
    SIZE,
    WIDTH,
    Rows,
    flexible_from,
    parse_headers,
    uvarint,
)
from kafkascope.capture.numbers import jit


@dataclass(slots=True)
class Inner:
    """What is inside of the exchanges `outer`, one each: `request` and `response` are of `rows`, the latter -1 where
    the answer holds none. The memory is the outer frames'."""

    outer: npt.NDArray[np.int64]
    rows: Rows
    request: npt.NDArray[np.int64]
    response: npt.NDArray[np.int64]

    def only(self, wanted: npt.NDArray[np.bool_]) -> "Inner":
        return Inner(self.outer[wanted], self.rows, self.request[wanted], self.response[wanted])


def open_envelopes(
    rows: Rows,
    request: npt.NDArray[np.int64],
    response: npt.NDArray[np.int64],
    body_at: npt.NDArray[np.int64],
    outer: npt.NDArray[np.int64],
) -> Inner:
    """Of exchanges whose two bodies were read; `body_at` is the answer's."""
    count = len(outer)
    made = np.zeros((2 * count, WIDTH), dtype=np.int64)
    made[:, KIND] = FRAME
    made[count:, RESPONSE] = 1
    _find(rows, request[outer], response[outer], body_at[outer], made)
    parse_headers(made, flexible_from())
    asked = np.arange(count)
    return Inner(outer, made, asked, np.where(made[count:, SIZE] > 0, count + asked, -1))


@jit
def _find(rows: Any, request: Any, response: Any, body_at: Any, made: Any) -> None:
    """The inner frame is the first field of either body, bytes behind their length."""
    count = len(request)
    for index in range(count):
        for answer in range(2):
            which = response[index] if answer else request[index]
            if which < 0:
                continue
            row = rows[which]
            end = row[ADDRESS] + row[SIZE]
            start = row[ADDRESS] + (body_at[index] if answer else row[BODY_AT])
            length, position = uvarint(start, end)
            made[index + answer * count, ADDRESS] = position
            made[index + answer * count, SIZE] = min(max(length - 1, 0), end - position)
