"""A batch of exchanges in, the columns of the table `exchanges` out as an Arrow record batch. Times are UTC
microseconds; what is not known is null."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.exchanges.exchange_pack import (
    CLIENT_ID,
    COLUMNS,
    GROUP_ID,
    MEMBER_ID,
    Form,
    Told,
    measure,
    number_ends,
    write,
)
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.pairing import STATUSES
from kafkascope.columnar.ipc_form import form_of
from kafkascope.errors import KernelError
from kafkascope.schema.catalog import apis
from kafkascope.schema.errors.error_codes import error_codes, error_name

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
        ("group_id", pa.string()),
        ("member_id", pa.string()),
    ]
)
# The answer may wait by design: for records, for members to join, for the leader's assignment.
LONG_POLLS = ("Fetch", "ShareFetch", "JoinGroup", "SyncGroup")
# A SASL token after SaslHandshake v0 has no header and no API (KIP-43).
TOKEN_API = "SaslToken"  # noqa: S105
# A line of a request log may tell how long an exchange took and not when. FIRST_NS of its rows is then before this, and
# counts from a moment that nobody knows; their LAST_NS is good for the order alone.
KNOWN_FROM_NS = -9_000_000_000 * 1_000_000_000

Ints = npt.NDArray[np.int64]


class _Names(NamedTuple):
    """Texts that are the same for all batches, as the kernel wants them: places in `words`."""

    apis: Ints
    errors: Ints
    first_error: int
    statuses: Ints
    words: npt.NDArray[np.uint8]


def to_arrow(batch: ExchangeBatch) -> pa.RecordBatch:
    """A row an exchange, in the batch's order."""
    try:
        return _to_arrow(batch)
    except IndexError as error:
        raise KernelError.at(f"exchanges of {batch.recordings.uris[-1]}") from error


def _to_arrow(batch: ExchangeBatch) -> pa.RecordBatch:
    facts, names = batch.facts, _names()
    which, used = np.empty((2, len(batch)), np.int64)
    numbered = np.zeros(len(batch.ends), np.int64)
    count = number_ends(batch.rows, batch.request, batch.response, numbered, which, used)
    ends = [batch.ends[number] for number in used[:count].tolist()]
    # Texts of this batch, one behind the other.
    sides = [text for end in ends for text in (end.client_address, end.broker_address, end.software)]
    texts, held = _texts([*sides, *batch.recordings.uris, *facts.more_ids.values()])
    uris = slice(len(sides), len(sides) + len(batch.recordings.uris))
    for (index, fact), (at, size) in zip(facts.more_ids, texts[uris.stop :].tolist(), strict=True):
        facts.values[index, fact : fact + 2] = len(batch.content.first) + len(batch.content.second) + at, size
    numbers = np.array([(end.number, end.software_from) for end in ends], np.uint64).reshape(-1, 2).view(np.int64)
    files = np.array(batch.recordings.first_packets, np.int64).reshape(-1, 1)
    told = Told(
        waited=batch.content.first, body=batch.content.second, texts=held, words=names.words, rows=batch.rows,
        request=batch.request, response=batch.response, status=batch.status, values=facts.values,
        seen=facts.seen, which=which, ends=np.concatenate([numbers, texts[: len(sides)].reshape(-1, 6)], axis=1),
        files=np.concatenate([files, texts[uris]], axis=1), apis=names.apis, errors=names.errors,
        first_error=names.first_error, statuses=names.statuses, known_from_ns=KNOWN_FROM_NS, sized=batch.sized,
    )  # fmt: skip
    form = _form()
    size = measure(told, form)
    if not size:
        every = _names(every_error=True)
        told = told._replace(
            apis=every.apis,
            errors=every.errors,
            first_error=every.first_error,
            statuses=every.statuses,
            words=every.words,
        )
        size = measure(told, form)
    made = pa.allocate_buffer(size)
    plain = write(told, form, np.frombuffer(made, np.uint8))
    columns = pa.ipc.read_record_batch(made, SCHEMA)
    if not plain:
        for column in (CLIENT_ID, GROUP_ID, MEMBER_ID):
            columns = columns.set_column(column, SCHEMA.field(column), _as_text(columns.column(column)))
    return columns


def _as_text(column: pa.Array) -> pa.Array:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        # Clients send what they like; here it is shown with replacement characters.
        sent = column.view(pa.binary()).to_pylist()
        return pa.array([None if v is None else v.decode(errors="replace") for v in sent], pa.string())
    return column


def _texts(words: Sequence[str | None]) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """(place, size) of each, the size -1 for None; and what they are in."""
    encoded = [None if word is None else word.encode() for word in words]
    held = np.frombuffer(bytearray().join([word for word in encoded if word is not None]), np.uint8)
    found = np.empty((len(words), 2), np.int64)
    sizes = found[:, 1]
    sizes[:] = [-1 if word is None else len(word) for word in encoded]
    kept = np.maximum(sizes, 0)
    found[:, 0] = np.cumsum(kept) - kept
    return found, held


@cache
def _names(*, every_error: bool = False) -> _Names:
    """With the errors that the catalog knows, or with any that there can be."""
    known = apis()
    names = [known.get(key) for key in range(max(known) + 1)]
    waits = np.array([[name in LONG_POLLS] for name in (*names, None)], np.int64)
    codes = range(-(1 << 15), 1 << 15) if every_error else range(min(error_codes()), max(error_codes()) + 1)
    texts, words = _texts([*names, TOKEN_API, *STATUSES, *(error_name(code) for code in codes)])
    api_texts, statuses, errors = np.split(texts, [len(waits), len(waits) + len(STATUSES)])
    return _Names(np.concatenate([api_texts, waits], axis=1), errors, codes.start, statuses, words)


@cache
def _bare_form() -> Form:
    made = form_of(SCHEMA)
    none = np.empty(0, np.int64)
    data = np.frombuffer(bytearray(made.data), np.uint8)
    return Form(
        data, made.nodes_at, made.buffers_at, made.length_at, made.body_length_at, none, none.reshape(0, 3), none
    )


def _form() -> Form:
    """With room of its own."""
    room = np.empty(COLUMNS, np.int64), np.empty((COLUMNS, 3), np.int64), np.empty(COLUMNS, np.int64)
    return Form(*_bare_form()[:5], *room)
