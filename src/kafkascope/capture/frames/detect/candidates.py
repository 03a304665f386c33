"""Lists the places in a buffer where a Kafka frame may begin, judged by its header alone.

One pass, with one comparison per byte nearly everywhere; whether a frame decodes there is for `resync` to check."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.numbers import Number
from kafkascope.capture.frames.detect.grade import (
    MOST_CLIENT_ID,
    MOST_KEYS,
    SMALLEST_REQUEST,
    SMALLEST_RESPONSE,
    is_known,
)
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_FRAME_BYTES
from kafkascope.schema.catalog import apis

# Length, key, version, correlation id and the client id's length; length and correlation id.
REQUEST_HEAD = 14
RESPONSE_HEAD = 8
# The most places that one call lists; and how many of those that may still be frames are kept.
MOST_CANDIDATES = 256


@cache
def known_versions() -> npt.NDArray[np.int64]:
    """API key to the versions that the catalog has, one bit per version."""
    bits = np.zeros(MOST_KEYS, np.int64)
    for key in apis():
        bits[key] = sum(1 << version for version in range(63) if is_known(key, version))
    return bits


def request_candidates(buffer: bytearray, start: int) -> tuple[list[int], int]:
    """(places from `start` on, where to go on): the end of the buffer, or where there were too many places."""
    if len(buffer) - start < REQUEST_HEAD:
        return [], start
    places = np.empty(MOST_CANDIDATES, np.int64)
    view = np.frombuffer(buffer, np.uint8)
    count, stop = _requests(view, start, known_versions(), places)
    return places[:count].tolist(), int(stop)


def response_candidates(buffer: bytearray, start: int, correlation_ids: npt.NDArray[np.int64]) -> tuple[list[int], int]:
    """The same for responses to requests with these ids, which are sorted."""
    if len(buffer) - start < RESPONSE_HEAD or not len(correlation_ids):
        return [], start
    places = np.empty(MOST_CANDIDATES, np.int64)
    view = np.frombuffer(buffer, np.uint8)
    count, stop = _responses(view, start, correlation_ids, places)
    return places[:count].tolist(), int(stop)


@jit
def word(data: Any, at: int) -> Number:
    return (
        (np.int64(data[at]) << 24)
        | (np.int64(data[at + 1]) << 16)
        | (np.int64(data[at + 2]) << 8)
        | np.int64(data[at + 3])
    )


@jit
def _requests(data: Any, start: Number, known: Any, places: Any) -> Number:
    count = 0
    stop = max(start, len(data) - REQUEST_HEAD + 1)
    for at in range(start, stop):
        # Nearly every place is rejected here: not a length, or not an API key below 256.
        if data[at] > MAX_FRAME_BYTES >> 24 or data[at + 4] != 0 or data[at + 6] != 0:
            continue
        length = word(data, at)
        version = np.int64(data[at + 7])
        if (
            not SMALLEST_REQUEST + 2 <= length <= MAX_FRAME_BYTES
            or version > 62
            or not (known[data[at + 5]] >> version) & 1
        ):
            continue
        size = (np.int64(data[at + 12]) << 8) | np.int64(data[at + 13])
        if size != 0xFFFF:
            if size > length - 10 or size > MOST_CLIENT_ID:
                continue
            plain = True
            last: Number = min(at + REQUEST_HEAD + size, len(data))
            for place in range(at + REQUEST_HEAD, last):
                if data[place] < 0x20 or data[place] == 0x7F:
                    plain = False
                    break
            if not plain:
                continue
        places[count] = at
        count += 1
        if count == len(places):
            return count, at + 1
    return count, stop


@jit
def _responses(data: Any, start: Number, correlation_ids: Any, places: Any) -> Number:
    count = 0
    least = correlation_ids[0]
    most = correlation_ids[-1]
    stop = max(start, len(data) - RESPONSE_HEAD + 1)
    for at in range(start, stop):
        if data[at] > MAX_FRAME_BYTES >> 24:
            continue
        identity = word(data, at + 4)
        identity = identity - (1 << 32) if identity >= 1 << 31 else identity
        if identity < least or identity > most:
            continue
        if not SMALLEST_RESPONSE <= word(data, at) <= MAX_FRAME_BYTES:
            continue
        place = np.searchsorted(correlation_ids, identity)
        if correlation_ids[place] != identity:
            continue
        places[count] = at
        count += 1
        if count == len(places):
            return count, at + 1
    return count, stop
