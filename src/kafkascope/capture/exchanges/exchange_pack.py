"""Rows of exchanges in, the bytes of one Arrow IPC record batch with the columns of `exchanges` out: one kernel goes
over them once to measure and once to write.
"""

from typing import Any, NamedTuple

import numpy as np

from kafkascope.capture.base.checked import copy, place, write_16, write_32, write_64
from kafkascope.capture.base.flow import (
    FrameKind,
    Int64s,
    Uint8s,
)
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.exchanges.identity import CONNECTION_DIGITS, EXCHANGE_DIGITS, write_digits, write_id
from kafkascope.capture.frames.body_scan import LISTED, THE_ONE
from kafkascope.capture.frames.headers import (
    Frame,
)
from kafkascope.capture.frames.scan_program import (
    Fact,
)
from kafkascope.columnar.compiling.jit import jit

# The columns, in their order.
(
    EXCHANGE_ID,
    CONNECTION_ID,
    CAPTURE_URI,
    PACKET_NUMBER,
    REQUEST_AT,
    RESPONSE_AT,
    LATENCY,
    LONG_POLL,
    MAX_WAIT_MS,
    KEY,
    API,
    API_VERSION,
    CORRELATION_ID,
    CLIENT_ID,
    CLIENT_ADDRESS,
    BROKER_ADDRESS,
    SOFTWARE,
    REQUEST_BYTES,
    RESPONSE_BYTES,
    ERROR_CODE,
    ERROR_NAME,
    THROTTLE_MS,
    STATUS,
    GROUP_ID,
    MEMBER_ID,
) = range(25)
COLUMNS = 25
# Bytes a value; a text has offsets in front of its bytes, and a bit takes an eighth.
TEXT, BIT = 0, -1
WIDTHS = np.array([0, 0, 0, 8, 8, 8, 8, -1, 4, 2, 0, 2, 4, 0, 0, 0, 0, 8, 8, 2, 0, 4, 0, 0, 0], np.int64)
_LINE = 64
PREFIX_BYTES = 4  # the frame's own length is sent too

# The words of an end: number, where its software is known from, and three texts.
END_HASH, END_FROM, END_CLIENT, END_BROKER, END_SOFTWARE = 0, 1, 2, 4, 6
END_WIDTH = 8
# What is known of an API: its name, and whether its answer may wait by design.
API_NAME, API_WAITS = 0, 2
API_WIDTH = 3


class Told(NamedTuple):
    """A batch as arrays. Texts are (place, size), the size below 0 for null: those of `ends` and `files` in `texts`,
    those of `apis`, `errors` and `statuses` in `words`, client ids, groups and members in `waited`, then `body`, and
    beyond both in `texts`."""

    waited: Uint8s
    body: Uint8s
    texts: Uint8s
    words: Uint8s
    rows: Int64s
    request: Int64s
    response: Int64s
    status: Uint8s
    values: Int64s
    seen: Uint8s
    which: Int64s  # exchange to row of `ends`
    ends: Int64s
    files: Int64s  # (first packet, uri) of each
    apis: Int64s  # by key; the last is that of raw tokens
    errors: Int64s  # by code, from `first_error` on
    first_error: int
    statuses: Int64s
    known_from_ns: int
    sized: bool


class Form(NamedTuple):
    """What the kernel fills in of a form, see `columnar.form`, and room to work in."""

    data: Uint8s
    nodes_at: int
    buffers_at: int
    length_at: int
    body_length_at: int
    sizes: Int64s  # bytes of each text column
    places: Int64s  # where the bits, values and bytes of each column go
    nulls: Int64s


@jit
def lines(size: Number) -> Number:
    return (size + (_LINE - 1)) & -_LINE


@jit
def is_token(t: Told, i: Number) -> Number:
    return t.request[i] >= 0 and t.rows[t.request[i], Frame.KIND] == FrameKind.TOKEN


@jit
def file_of(t: Told, packet: Number) -> Number:
    low, high = np.int64(0), np.int64(len(t.files))
    while high - low > 1:
        middle = (low + high) >> 1
        if t.files[middle, 0] <= packet:
            low = middle
        else:
            high = middle
    return low


@jit
def api_of(t: Told, i: Number, row: Number) -> Number:
    """Row of `apis`, -1 where the catalog does not know the key, and for an answer alone."""
    if is_token(t, i):
        return len(t.apis) - 1
    key = t.rows[row, Frame.API_KEY]
    return key if t.request[i] >= 0 and 0 <= key < len(t.apis) - 1 else -1


@jit
def api_text(t: Told, i: Number, row: Number) -> Numbers:
    api = api_of(t, i, row)
    return (t.apis[api, API_NAME], t.apis[api, API_NAME + 1]) if api >= 0 else (np.int64(0), np.int64(-1))


@jit
def size_of(row: Any) -> Number:
    """Of a frame as it was sent, whether all of it was recorded or not."""
    return row[Frame.SIZE] + row[Frame.MISSING] + PREFIX_BYTES


@jit
def client_text(t: Told, i: Number) -> Numbers:
    request = t.request[i]
    if request < 0 or t.rows[request, Frame.CLIENT_AT] < 0:
        return np.int64(0), np.int64(-1)
    return t.rows[request, Frame.FRAME_AT] + t.rows[request, Frame.CLIENT_AT], t.rows[request, Frame.CLIENT_SIZE]


@jit
def name_text(t: Told, i: Number, fact: Number) -> Numbers:
    """Of a group or member."""
    if t.seen[i, fact] == LISTED or t.seen[i, fact] == THE_ONE:
        return t.values[i, fact], t.values[i, fact + 1]
    return np.int64(0), np.int64(-1)


@jit
def software_text(t: Told, i: Number, row: Number) -> Numbers:
    end = t.which[i]
    known = t.rows[row, Frame.OFFSET] >= t.ends[end, END_FROM]
    return t.ends[end, END_SOFTWARE], t.ends[end, END_SOFTWARE + 1] if known else np.int64(-1)


@jit
def error_text(t: Told, i: Number) -> Numbers:
    """Of no error there is none."""
    code = t.values[i, Fact.ERROR]
    if t.response[i] < 0 or not t.seen[i, Fact.ERROR] or code == 0:
        return np.int64(0), np.int64(-1)
    return t.errors[code - t.first_error, 0], t.errors[code - t.first_error, 1]


@jit
def number_ends(rows: Any, request: Any, response: Any, numbered: Any, which: Any, used: Any) -> Number:
    """Connections of the batch: each gets a number in the order of appearance. `numbered` are zeros, one a connection;
    how many there are comes back."""
    count = np.int64(0)
    for i in range(len(request)):
        connection = rows[request[i] if request[i] >= 0 else response[i], Frame.CONNECTION]
        if numbered[connection] == 0:
            used[count] = connection
            count += 1
            numbered[connection] = count
        which[i] = numbered[connection] - 1
    return count


@jit
def measure(t: Told, form: Form) -> Number:
    """Bytes of the batch, 0 where there is an error of which `errors` has no row."""
    count = len(t.request)
    sizes = form.sizes
    sizes[:] = 0
    for i in range(count):
        if not 0 <= t.values[i, Fact.ERROR] - t.first_error < len(t.errors):
            return np.int64(0)
        row = t.request[i] if t.request[i] >= 0 else t.response[i]
        end = t.which[i]
        sizes[CAPTURE_URI] += t.files[file_of(t, t.rows[row, Frame.PACKET]), 2]
        sizes[API] += max(api_text(t, i, row)[1], 0)
        sizes[CLIENT_ID] += max(client_text(t, i)[1], 0)
        sizes[CLIENT_ADDRESS] += t.ends[end, END_CLIENT + 1]
        sizes[BROKER_ADDRESS] += t.ends[end, END_BROKER + 1]
        sizes[SOFTWARE] += max(software_text(t, i, row)[1], 0)
        sizes[ERROR_NAME] += max(error_text(t, i)[1], 0)
        sizes[STATUS] += t.statuses[t.status[i], 1]
        sizes[GROUP_ID] += max(name_text(t, i, Fact.GROUP_AT)[1], 0)
        sizes[MEMBER_ID] += max(name_text(t, i, Fact.MEMBER_AT)[1], 0)
    sizes[EXCHANGE_ID] = EXCHANGE_DIGITS * count
    sizes[CONNECTION_ID] = CONNECTION_DIGITS * count
    return lay_out(form, count, form.data[:0])


@jit
def lay_out(form: Form, count: Number, out: Any) -> Number:
    """Where everything goes; the bytes it takes together. An empty `out` only asks for these."""
    start = np.int64(len(form.data))
    bits = (count + 7) >> 3
    at = start
    entry = np.int64(form.buffers_at)
    for column in range(COLUMNS):
        width = WIDTHS[column]
        sizes = (
            bits,
            4 * (count + 1) if width == TEXT else bits if width == BIT else width * count,
            form.sizes[column],
        )
        for part in range(3 if width == TEXT else 2):
            form.places[column, part] = at
            if len(out):
                write_64(out, entry, at - start)
                write_64(out, entry + 8, sizes[part])
                entry += 16
            at += lines(sizes[part])
    return at


@jit
def put_bit(out: Any, at: Number, i: Number, there: Number) -> None:
    if there:
        out[at + (i >> 3)] |= 1 << (i & 7)


@jit
def put_number(out: Any, form: Form, column: Number, i: Number, value: Number, there: Number) -> None:
    """What is null is 0."""
    if there:
        put_bit(out, form.places[column, 0], i, True)
    else:
        form.nulls[column] += 1
        value = np.int64(0)
    width = WIDTHS[column]
    at = form.places[column, 1] + width * i
    if width == 8:
        write_64(out, at, value)
    elif width == 4:
        write_32(out, at, value)
    else:
        write_16(out, at, value)


@jit
def put_text(out: Any, form: Form, column: Number, i: Number, source: Any, text: Numbers) -> None:
    at, size = text
    if size >= 0:
        put_bit(out, form.places[column, 0], i, True)
        copy(out, form.places[column, 2], source, at, size)
    else:
        form.nulls[column] += 1
        size = np.int64(0)
    end_text(out, form, column, i, size)


@jit
def end_text(out: Any, form: Form, column: Number, i: Number, size: Number) -> None:
    form.places[column, 2] += size
    form.sizes[column] += size
    write_32(out, form.places[column, 1] + 4 * i + 4, form.sizes[column])


@jit
def is_ascii(data: Any, start: Number, size: Number) -> Number:
    high = np.int64(0)
    for at in range(start, start + size):
        high |= data[at]
    return high < 0x80


@jit
def put_name(out: Any, form: Form, column: Number, i: Number, t: Told, text: Numbers) -> Number:
    """Of the wire; whether it is ASCII."""
    elsewhere = text[0] - len(t.waited) - len(t.body)
    if elsewhere >= 0 and text[1] >= 0:
        put_text(out, form, column, i, t.texts, (elsewhere, text[1]))
        return True
    source, at = place(t.waited, t.body, text[0])
    put_text(out, form, column, i, source, (at, text[1]))
    return is_ascii(source, at, text[1])


@jit
def write(t: Told, form: Form, out: Any) -> Number:
    """As long as `measure` said; whether all client ids, groups and members are ASCII."""
    count = len(t.request)
    copy(out, 0, form.data, 0, np.int64(len(form.data)))
    out[len(form.data) :] = 0
    lay_out(form, count, out)
    form.sizes[:] = 0
    form.nulls[:] = 0
    plain = True
    for i in range(count):
        asked, answered = t.request[i] >= 0, t.response[i] >= 0
        row = t.request[i] if asked else t.response[i]
        end = t.which[i]
        offset = t.rows[row, Frame.OFFSET]
        write_id(
            np.uint64(t.ends[end, END_HASH]), np.uint64(offset), np.uint64(not asked), out, form.places[EXCHANGE_ID, 2]
        )
        end_text(out, form, EXCHANGE_ID, i, np.int64(EXCHANGE_DIGITS))
        write_digits(np.uint64(t.ends[end, END_HASH]), np.int64(CONNECTION_DIGITS), out, form.places[CONNECTION_ID, 2])
        end_text(out, form, CONNECTION_ID, i, np.int64(CONNECTION_DIGITS))
        packet = t.rows[row, Frame.PACKET]
        file = file_of(t, packet)
        put_text(out, form, CAPTURE_URI, i, t.texts, (t.files[file, 1], t.files[file, 2]))
        put_number(out, form, PACKET_NUMBER, i, packet - t.files[file, 0], True)
        timed = t.sized or t.rows[row, Frame.FIRST_NS] >= t.known_from_ns
        request_ns, response_ns = np.int64(0), np.int64(0)
        if asked:
            request_ns = t.rows[row, Frame.LAST_NS] if timed else t.rows[row, Frame.FIRST_NS]
        if answered:
            response_ns = t.rows[t.response[i], Frame.FIRST_NS]
        put_number(out, form, REQUEST_AT, i, request_ns // 1000, asked and timed)
        put_number(out, form, RESPONSE_AT, i, response_ns // 1000, answered and timed)
        # A response that was recorded before its request has no latency. Otherwise it is between the times as they are
        # written, in whole microseconds.
        latency = response_ns // 1000 - request_ns // 1000
        put_number(out, form, LATENCY, i, latency, asked and answered and response_ns >= request_ns)
        framed = asked and t.rows[row, Frame.KIND] != FrameKind.TOKEN
        key = t.rows[row, Frame.API_KEY]
        waits = t.seen[i, Fact.MAX_WAIT] > 0
        long_poll = asked and 0 <= key < len(t.apis) and t.apis[key, API_WAITS] > 0
        long_poll = long_poll and (not waits or t.values[i, Fact.MAX_WAIT] > 0)
        put_bit(out, form.places[LONG_POLL, 1], i, long_poll)
        put_number(out, form, MAX_WAIT_MS, i, t.values[i, Fact.MAX_WAIT], long_poll and waits)
        put_number(out, form, KEY, i, key, framed)
        put_text(out, form, API, i, t.words, api_text(t, i, row))
        put_number(out, form, API_VERSION, i, t.rows[row, Frame.VERSION], framed)
        put_number(
            out, form, CORRELATION_ID, i, t.rows[row, Frame.CORRELATION], t.rows[row, Frame.KIND] != FrameKind.TOKEN
        )
        plain &= put_name(out, form, CLIENT_ID, i, t, client_text(t, i))
        put_text(out, form, CLIENT_ADDRESS, i, t.texts, (t.ends[end, END_CLIENT], t.ends[end, END_CLIENT + 1]))
        put_text(out, form, BROKER_ADDRESS, i, t.texts, (t.ends[end, END_BROKER], t.ends[end, END_BROKER + 1]))
        put_text(out, form, SOFTWARE, i, t.texts, software_text(t, i, row))
        put_number(out, form, REQUEST_BYTES, i, size_of(t.rows[row]), asked and t.sized)
        response_size = size_of(t.rows[t.response[i]]) if answered else np.int64(0)
        put_number(out, form, RESPONSE_BYTES, i, response_size, answered and t.sized)
        put_number(out, form, ERROR_CODE, i, t.values[i, Fact.ERROR], answered and t.seen[i, Fact.ERROR] > 0)
        put_text(out, form, ERROR_NAME, i, t.words, error_text(t, i))
        put_number(out, form, THROTTLE_MS, i, t.values[i, Fact.THROTTLE], t.seen[i, Fact.THROTTLE] > 0)
        put_text(out, form, STATUS, i, t.words, (t.statuses[t.status[i], 0], t.statuses[t.status[i], 1]))
        plain &= put_name(out, form, GROUP_ID, i, t, name_text(t, i, Fact.GROUP_AT))
        plain &= put_name(out, form, MEMBER_ID, i, t, name_text(t, i, Fact.MEMBER_AT))
    for column in range(COLUMNS):
        write_64(out, form.nodes_at + 16 * column, count)
        write_64(out, form.nodes_at + 16 * column + 8, form.nulls[column])
    write_64(out, form.length_at, count)
    write_64(out, form.body_length_at, len(out) - len(form.data))
    return plain
