"""Reads the headers of frames that were recorded in part, as a snap length leaves them. A length shows where the next
frame begins, whether its bytes were recorded or not."""

from collections.abc import Container, Iterator, Sequence
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

from kafkascope.capture.frames.detect.credit import CANDIDATE, Credit
from kafkascope.capture.frames.detect.grade import (
    MOST_CLIENT_ID,
    MOST_VERSIONS,
    SMALLEST_REQUEST,
    SMALLEST_RESPONSE,
    Buffer,
    Grade,
    fits,
    grade_request,
    is_known,
    is_tagged,
)
from kafkascope.capture.frames.detect.resync import RequestsById, Run, cost
from kafkascope.limits import MAX_FRAME_BYTES

# Linked headers that must agree without a client id, and without a response; otherwise two are enough.
NAMELESS_HEADS, UNANSWERED_HEADS = 4, 3
# The most that the correlation ids of neighbours differ.
NEAR = 64
_REQUEST, _RESPONSE, _SIZE = Struct(">ihhi"), Struct(">ii"), Struct(">h")
# A header with the longest client id.
MOST_HEAD = 14 + MOST_CLIENT_ID
CONTROL = 0x20
DELETE = 0x7F


class Head(NamedTuple):
    """The header of a request, counted from its length prefix. `client_id` has as many of its `client_size` bytes as
    were recorded, None if it is null or wasn't recorded."""

    end: int
    api_key: int
    version: int
    correlation_id: int
    client_id: bytes | None
    client_size: int = 0
    null: bool = False


def sound_head(data: Buffer) -> Head | None:
    """The header of a request that begins here, whatever its API: its numbers are possible, its client id prints."""
    if len(data) < _REQUEST.size:
        return None
    length, key, version, identity = _REQUEST.unpack_from(data)
    if not SMALLEST_REQUEST + 2 <= length <= MAX_FRAME_BYTES or key < 0 or not 0 <= version < MOST_VERSIONS:
        return None
    at = _REQUEST.size + _SIZE.size
    if len(data) < at:
        return Head(4 + length, key, version, identity, None)
    (size,) = _SIZE.unpack_from(data, _REQUEST.size)
    if size == -1:
        return Head(4 + length, key, version, identity, None, null=True)
    client_id = bytes(data[at : at + max(size, 0)])
    if not 0 <= size <= min(length - SMALLEST_REQUEST - 2, MOST_CLIENT_ID):
        return None
    if any(byte < CONTROL or byte == DELETE for byte in client_id):
        return None
    return Head(4 + length, key, version, identity, client_id, size)


def request_head(data: Buffer) -> Head | None:
    """The same for an API and version of the catalog, with a length that such a request can have."""
    head = sound_head(data)
    if head is None or not fits(head.api_key, head.version, head.end - 14 - head.client_size, response=False):
        return None
    tags = data[14 + head.client_size : 15 + head.client_size]
    return None if is_tagged(head.api_key, head.version) and bytes(tags) not in (b"", b"\0") else head


def is_response_head(data: Buffer, requests: RequestsById) -> bool:
    """Whether a response to one of these requests may begin here."""
    if len(data) < _RESPONSE.size:
        return False
    length, identity = _RESPONSE.unpack_from(data)
    if not SMALLEST_RESPONSE <= length <= MAX_FRAME_BYTES or identity not in requests:
        return False
    return not is_known(*requests[identity]) or fits(*requests[identity], length - SMALLEST_RESPONSE, response=True)


def begins_frame(data: Buffer, requests: RequestsById, cut: int, *, response: bool) -> bool:
    """If these bytes, which don't decode, can begin a frame of a Kafka connection: they are the first of a packet that
    was `cut` by this many bytes, and the frame reaches at least to its end, or the catalog has no such message."""
    if response:
        if not is_response_head(data, requests):
            return False
        length, identity = _RESPONSE.unpack_from(data)
        if not cut:
            return bool(4 + length <= len(data)) and not is_known(*requests[identity])
        return bool(4 + length >= len(data) + cut)
    head = request_head(data) if cut else None
    if head is None or head.end < len(data) + cut or not (head.client_id or head.null):
        return False
    return not requests or any(abs(head.correlation_id - identity) <= NEAR for identity in requests)


def linked(runs: Sequence[Run], credit: Credit) -> Iterator[list[Head]]:
    """Chains of request headers, each exactly where the previous length ends, also after missing bytes; requests that
    are complete decode as well. After a missing header the next run begins a new chain, since a packet begins there.
    Stops when the credit is spent."""
    chain: list[Head] = []
    expected = -1
    for run in runs:
        end = run.offset + len(run.data)
        if expected >= end:
            continue
        if expected < run.offset:
            if chain:
                yield chain
            chain, expected = [], run.offset
        while expected < end and not credit.is_spent:
            head = _head_at(run, expected - run.offset, credit)
            if head is None:
                if chain:
                    yield chain
                chain, expected = [], -1
                break
            chain.append(head)
            expected += head.end
    if chain:
        yield chain


def _head_at(run: Run, at: int, credit: Credit) -> Head | None:
    credit.spend(CANDIDATE)
    head = request_head(run.data[at : at + MOST_HEAD])
    if head is not None and at + head.end <= len(run.data):
        graded = grade_request(run.data, at)
        credit.spend(cost(graded, at))
        if graded.grade not in (Grade.STRONG, Grade.WEAK):
            return None
    return head


def is_cut_kafka(requests: Sequence[Run], responses: Sequence[Run], bounds: Container[int], credit: Credit) -> bool:
    """Whether runs between missing bytes are Kafka. `bounds` are the offsets at which pieces of the responses begin and
    end: a frame that ends at one isn't chance. If the other side sent bytes, they have to be responses."""
    sizes: dict[int, int] = {}  # correlation id to the size of a response's body
    for run in responses:
        if len(run.data) >= _RESPONSE.size:
            length, identity = _RESPONSE.unpack_from(run.data)
            if length >= SMALLEST_RESPONSE and run.offset + 4 + length in bounds:
                sizes[identity] = length - SMALLEST_RESPONSE
    lowest, highest = min(sizes, default=0), max(sizes, default=0)
    for chain in linked(requests, credit):
        first, last = chain[0].correlation_id, chain[-1].correlation_id
        # Responses to requests that were not recorded have correlation ids that are not far.
        if not _agree(chain) or (sizes and not first - NEAR <= lowest <= highest <= last + NEAR):
            continue
        several = len(chain) >= (NAMELESS_HEADS if chain[0].null else 2)
        if not responses and several and len(chain) >= UNANSWERED_HEADS:
            return True
        answered = {
            head.correlation_id
            for head in chain
            if (head.client_id or head.null)
            and head.correlation_id in sizes
            and fits(head.api_key, head.version, sizes[head.correlation_id], response=True)
        }
        # Many protocols have zeros where Kafka has its numbers.
        if len(answered) > 1 or (answered and (several or any(chain[0][1:4]))):
            return True
    return False


def _agree(chain: Sequence[Head]) -> bool:
    """Whether neighbours have the same client id, as far as it was recorded, and ascending correlation ids."""
    for before, after in pairwise(chain):
        if not 0 < after.correlation_id - before.correlation_id <= NEAR or before.null != after.null:
            return False
        name, other = before.client_id or b"", after.client_id or b""
        size = min(len(name), len(other))
        if name[:size] != other[:size] or (size == 0 and not before.null):
            return False
    return True
