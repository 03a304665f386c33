"""A batch of exchanges in, the columns of the table `exchanges` out as an Arrow record batch. Times are UTC
microseconds; what is not known is null."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.arrow_arrays import booleans, numbers, texts, words
from kafkascope.capture.exchanges import ExchangeBatch
from kafkascope.capture.flow import TOKEN
from kafkascope.capture.headers import (
    ADDRESS,
    API_KEY,
    CLIENT_AT,
    CLIENT_SIZE,
    CONNECTION,
    CORRELATION,
    FIRST_NS,
    KIND,
    LAST_NS,
    OFFSET,
    PACKET,
    SIZE,
    VERSION,
)
from kafkascope.capture.identity import connection_name, exchange_ids
from kafkascope.capture.pairing import STATUSES
from kafkascope.capture.scan_program import ERROR, MAX_WAIT, THROTTLE
from kafkascope.schema.catalog import apis
from kafkascope.schema.error_codes import error_name

TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("exchange_id", pa.string()),
        ("connection_id", pa.string()),
        ("capture_uri", pa.string()),
        ("packet", pa.int64()),
        ("request_at", TIME),
        ("response_at", TIME),
        ("latency_us", pa.int64()),
        ("long_poll", pa.bool_()),
        ("max_wait_ms", pa.int32()),
        ("api_key", pa.int16()),
        ("api", pa.string()),
        ("api_version", pa.int16()),
        ("correlation_id", pa.int32()),
        ("client_id", pa.string()),
        ("client_address", pa.string()),
        ("broker_address", pa.string()),
        ("client_software", pa.string()),
        ("request_bytes", pa.int64()),
        ("response_bytes", pa.int64()),
        ("error_code", pa.int16()),
        ("error", pa.string()),
        ("throttle_ms", pa.int32()),
        ("status", pa.string()),
    ]
)
# The answer may wait by design: for records, for members to join, for the leader's assignment.
LONG_POLLS = ("Fetch", "ShareFetch", "JoinGroup", "SyncGroup")
# A SASL token after SaslHandshake v0 has no header and no API (KIP-43).
TOKEN_API = "SaslToken"  # noqa: S105
# The frame's own length is sent too.
PREFIX_BYTES = 4

# A line of a request log may tell how long an exchange took and not when. FIRST_NS of its rows is then before this, and
# counts from a moment that nobody knows; their LAST_NS is good for the order alone.
KNOWN_FROM_NS = -9_000_000_000 * 1_000_000_000

Ints = npt.NDArray[np.int64]


def to_arrow(batch: ExchangeBatch) -> pa.RecordBatch:
    """A row an exchange, in the batch's order."""
    rows, facts = batch.rows, batch.facts
    row = batch.row()
    asked, answered = batch.request >= 0, batch.response >= 0
    used, where = np.unique(rows[row, CONNECTION], return_inverse=True)
    ends = [batch.ends[number] for number in used]
    hashes = np.array([end.number for end in ends], dtype=np.uint64)[where] if len(row) else np.zeros(0, np.uint64)
    offsets = rows[row, OFFSET]
    software_from = np.array([end.software_from for end in ends], dtype=np.int64)[where] if len(row) else offsets
    timed = batch.sized | (rows[row, FIRST_NS] >= KNOWN_FROM_NS)
    request_ns = np.where(timed, rows[batch.request, LAST_NS], rows[batch.request, FIRST_NS])
    response_ns = rows[batch.response, FIRST_NS]
    files, packets = batch.recordings.place(rows[row, PACKET])
    framed = asked & (rows[row, KIND] != TOKEN)
    keys = rows[row, API_KEY]
    latency = (response_ns - request_ns) // 1000
    both = asked & answered
    long_poll = asked & np.isin(keys, _long_poll_keys())
    waits = facts.seen[:, MAX_WAIT] > 0
    long_poll &= ~waits | (facts.values[:, MAX_WAIT] > 0)
    read = (facts.seen[:, ERROR] > 0) & answered
    columns = [
        exchange_ids(hashes, offsets, (~asked).astype(np.int64)),
        words([connection_name(end.number) for end in ends], where),
        words(batch.recordings.uris, files),
        numbers(packets, pa.int64()),
        numbers(request_ns // 1000, TIME, asked & timed),
        numbers(response_ns // 1000, TIME, answered & timed),
        # A response that was recorded before its request has no latency.
        numbers(latency, pa.int64(), both & (latency >= 0)),
        booleans(long_poll),
        numbers(facts.values[:, MAX_WAIT].astype(np.int32), pa.int32(), long_poll & waits),
        numbers(keys.astype(np.int16), pa.int16(), framed),
        _apis(keys, asked, framed),
        numbers(rows[row, VERSION].astype(np.int16), pa.int16(), framed),
        numbers(rows[row, CORRELATION].astype(np.int32), pa.int32(), rows[row, KIND] != TOKEN),
        _client_ids(batch),
        words([end.client_address for end in ends], where),
        words([end.broker_address for end in ends], where),
        words([end.software for end in ends], where, offsets >= software_from),
        numbers(rows[batch.request, SIZE] + PREFIX_BYTES, pa.int64(), asked & batch.sized),
        numbers(rows[batch.response, SIZE] + PREFIX_BYTES, pa.int64(), answered & batch.sized),
        numbers(facts.values[:, ERROR].astype(np.int16), pa.int16(), read),
        _errors(facts.values[:, ERROR], read),
        numbers(facts.values[:, THROTTLE].astype(np.int32), pa.int32(), facts.seen[:, THROTTLE] > 0),
        words(STATUSES, batch.status.astype(np.int64)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _apis(keys: Ints, asked: npt.NDArray[np.bool_], framed: npt.NDArray[np.bool_]) -> pa.Array:
    """Null for a key that the catalog does not know, and for an answer alone."""
    known, which = np.unique(np.where(framed, keys, -1), return_inverse=True)
    names = [apis().get(int(key)) for key in known] + [TOKEN_API]
    return words(names, np.where(asked & ~framed, len(known), which))


def _errors(codes: Ints, read: npt.NDArray[np.bool_]) -> pa.Array:
    known, which = np.unique(codes, return_inverse=True)
    return words([error_name(int(code)) if code else None for code in known], which, read)


def _client_ids(batch: ExchangeBatch) -> pa.Array:
    rows = batch.rows[batch.request]
    there = (batch.request >= 0) & (rows[:, CLIENT_AT] >= 0)
    found = texts(rows[:, ADDRESS] + rows[:, CLIENT_AT], np.where(there, rows[:, CLIENT_SIZE], -1))
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        # Clients send what they like; here it is shown with replacement characters.
        sent = found.view(pa.binary()).to_pylist()
        return pa.array([None if v is None else v.decode(errors="replace") for v in sent], pa.string())
    return found


def _long_poll_keys() -> list[int]:
    return [key for key, api in apis().items() if api in LONG_POLLS]
