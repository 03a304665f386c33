"""The first pieces of a connection whose start is there: in, whether it is Kafka or TLS for sure, in a kernel. What it
is not sure of is for `undecided` to say, which comes to the same answer at the same piece.

Sure are two requests with a client id, or one with its answer, known to the catalog and plain to their last byte."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kafkascope.capture.body_scan import READ, make_stack, scan
from kafkascope.capture.flow import BYTES, CLOSE, RESET, Bytes, Int64s, Uint8s
from kafkascope.capture.headers import API_VERSIONS, NEVER, flexible_from
from kafkascope.capture.numbers import Number, jit
from kafkascope.capture.recognise import (
    CLIENT_HELLO,
    CONTROLLED_SHUTDOWN,
    MOST_CLIENT_ID,
    MOST_KEYS,
    MOST_TLS_RECORD,
    MOST_VERSIONS,
    SERVER_HELLO,
    SMALLEST_REQUEST,
    SMALLEST_RESPONSE,
    TLS_HANDSHAKE,
    TLS_MAJOR,
    TLS_MINOR,
)
from kafkascope.capture.scan_program import FACTS, NOT_COMPILED, ScanPrograms
from kafkascope.capture.stream_table import copy
from kafkascope.columnar.memory import load_i16, load_i32, load_u8
from kafkascope.limits import MAX_FRAME_BYTES

# The columns of `first`, a row a connection; zeros where nothing waits.
(
    PIECES,  # that wait
    HEAD,  # first and last of them
    TAIL,
    CLIENT,  # the direction that requests come from
    HAVE,  # bytes of either direction
    HAVE_OTHER,
    AT,  # where the next request begins
    ASKED,  # requests that are sure
    KEY,
    VERSION,
    IDENTITY,
    ENDED,
    SURE,  # IS_KAFKA or IS_TLS
) = range(13)
FIRST_WIDTH = 13
IS_KAFKA, IS_TLS = 1, 2

# What `starters` says of a connection: nobody knows who began it, or direction 0 or 1 did; with HINTED one request is
# enough.
UNKNOWN, HINTED = -1, 2

# The longest frame that is looked at here, and the most pieces: first frames are short.
MOST_BYTES = 65_536
MOST_PIECES = 64

WAIT, KAFKA, UNSURE, COMPILE, TLS = range(5)


class Scanning(NamedTuple):
    """What judging a body takes: the programs of `ScanPrograms`, where headers have tags, and room to work in."""

    entry: Int64s
    operations: Int64s
    tags: Int64s
    request_tags: Int64s  # API key to the first version with tags in its header
    response_tags: Int64s
    facts: Int64s
    seen: Uint8s
    names: Int64s
    scratch: Bytes
    stack: Int64s
    wanted: Int64s  # (API key, version) that is to be compiled


def make_scanning(programs: ScanPrograms) -> Scanning:
    return Scanning(
        programs.entry,
        programs.operations,
        programs.tags,
        flexible_from(),
        response_tags(),
        np.zeros(FACTS, np.int64),
        np.zeros(FACTS, np.uint8),
        np.zeros((0, 4), np.int64),
        np.empty(MOST_BYTES, np.uint8),
        make_stack(),
        np.zeros(2, np.int64),
    )


@cache
def response_tags() -> Int64s:
    tags = flexible_from().copy()
    tags[API_VERSIONS] = NEVER
    return tags


@jit
def wait(first: Any, following: Any, piece: Number, kind: Number, direction: Number, length: Number) -> None:
    """The piece behind those that wait already."""
    if first[PIECES] == 0:
        first[HEAD] = piece
    else:
        following[first[TAIL]] = piece
    following[piece] = -1
    first[TAIL] = piece
    first[PIECES] += 1
    if kind == BYTES:
        first[HAVE + direction] += length
    elif kind in (CLOSE, RESET):
        first[ENDED] |= 1 << direction


@jit
def find(
    kinds: Any, streams: Any, addresses: Any, lengths: Any, first: Any, following: Any, direction: Number,
    start: Number, end: Number, scratch: Number,
) -> Number:  # fmt: skip
    """The address of these bytes of a stream: where they lie in the last piece, or copied together."""
    last = first[TAIL]
    before = first[HAVE + direction] - lengths[last]
    if kinds[last] == BYTES and (streams[last] & 1) == direction and start >= before:
        return addresses[last] + start - before
    passed = np.int64(0)
    filled = np.int64(0)
    piece = first[HEAD]
    while filled < end - start:
        if kinds[piece] == BYTES and (streams[piece] & 1) == direction:
            low = max(start - passed, 0)
            high = min(end - passed, lengths[piece])
            if low < high:
                copy(scratch + filled, addresses[piece] + low, high - low)
                filled += high - low
            passed += lengths[piece]
        piece = following[piece]
    return scratch


@jit
def plain(s: Scanning, program: Number, position: Number, end: Number) -> Number:
    s.facts[:] = 0
    result, _ = scan(
        s.operations, s.tags, program, position, end, s.facts, s.seen, np.int64(0), s.names, np.int64(0), False,
        s.stack,
    )  # fmt: skip
    return result == READ


@jit
def plain_request(s: Scanning, body: Number, end: Number) -> Number:
    """WAIT: it is one. There are bytes for a header at least."""
    key = load_i16(body)
    version = load_i16(body + 2)
    if not (0 <= key < MOST_KEYS and 0 <= version < MOST_VERSIONS) or (key == CONTROLLED_SHUTDOWN and version == 0):
        return UNSURE
    program = s.entry[0, key, version]
    if program == NOT_COMPILED:
        s.wanted[0] = key
        s.wanted[1] = version
        return COMPILE
    size = load_i16(body + 8)
    position = body + 10
    if program < 0 or not 0 < size <= min(MOST_CLIENT_ID, end - position):
        return UNSURE
    for place in range(position, position + size):
        if not 0x20 <= load_u8(place) < 0x7F:
            return UNSURE
    position += size
    if version >= s.request_tags[key]:
        if position >= end or load_u8(position) != 0:
            return UNSURE
        position += 1
    return WAIT if plain(s, program, position, end) else UNSURE


@jit
def judge_request(s: Scanning, first: Any, body: Number, end: Number) -> Number:
    why = plain_request(s, body, end)
    if why == WAIT:
        first[ASKED] += 1
        if first[ASKED] == 1:
            first[KEY] = load_i16(body)
            first[VERSION] = load_i16(body + 2)
            first[IDENTITY] = load_i32(body + 4)
    return why


@jit
def judge_response(s: Scanning, first: Any, body: Number, end: Number) -> Number:
    if load_i32(body) != first[IDENTITY]:
        return UNSURE
    position = body + 4
    if first[VERSION] >= s.response_tags[first[KEY]]:
        if position >= end or load_u8(position) != 0:
            return UNSURE
        position += 1
    program = s.entry[1, first[KEY], first[VERSION]]
    return KAFKA if program >= 0 and plain(s, program, position, end) else UNSURE


@jit
def is_tls(at: Number, length: Number) -> Number:
    """The first bytes of a stream, as `other_protocol` has it."""
    if length < 6 or load_u8(at) != TLS_HANDSHAKE or load_u8(at + 1) != TLS_MAJOR or load_u8(at + 2) > TLS_MINOR:
        return False
    if not 0 < (load_u8(at + 3) << 8 | load_u8(at + 4)) <= MOST_TLS_RECORD:
        return False
    return load_u8(at + 5) in (CLIENT_HELLO, SERVER_HELLO)


@jit
def look(s: Scanning, p: Any, first: Any, following: Any, hinted: bool) -> Number:
    """What all pieces of the connection say together, now that there is one more."""
    if first[PIECES] > MOST_PIECES or first[ENDED] == 3:
        return UNSURE
    only = first[HEAD]
    if first[PIECES] == 1 and p.offset[only] == 0 and is_tls(p.address[only], p.length[only]):
        return TLS
    scratch = s.scratch.ctypes.data
    client = first[CLIENT]
    other = first[HAVE + 1 - client]
    while first[HAVE + client] - first[AT] >= 4:
        start = first[AT]
        at = find(p.kind, p.stream, p.address, p.length, first, following, client, start, start + 4, scratch)
        length = load_i32(at)
        if not SMALLEST_REQUEST + 2 <= length <= MOST_BYTES:
            return UNSURE
        end = start + 4 + length
        if first[HAVE + client] < end:
            break
        body = find(p.kind, p.stream, p.address, p.length, first, following, client, start + 4, end, scratch)
        why = judge_request(s, first, body, body + length)
        if why != WAIT:
            return why
        first[AT] = end
        if first[ASKED] == 2 or hinted:
            break
    length = np.int64(0)
    if other:
        at = find(
            p.kind, p.stream, p.address, p.length, first, following, 1 - client, np.int64(0), min(other, 4), scratch
        )
        # No length of a frame: here other protocols show.
        if load_u8(at) > MAX_FRAME_BYTES >> 24:
            return UNSURE
        if other >= 4:
            length = load_i32(at)
    if first[ASKED] == 0:
        return WAIT
    if first[ASKED] == 2 or hinted:
        return KAFKA
    if other < 4:
        return WAIT
    if not SMALLEST_RESPONSE <= length <= MOST_BYTES:
        return UNSURE
    if other < 4 + length:
        return WAIT
    body = find(p.kind, p.stream, p.address, p.length, first, following, 1 - client, np.int64(4), 4 + length, scratch)
    return judge_response(s, first, body, body + length)
