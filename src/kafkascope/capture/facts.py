"""What a body says that `exchanges` has a column for: pairs of frames in, numbers and names out. The kernel reads what
is in the form Kafka writes, the careful codec the rest; what neither can read makes an exchange `undecoded`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.bodies import decode_request, decode_response
from kafkascope.capture.body_scan import NAME_WIDTH, NO_SPACE, READ, make_stack, scan
from kafkascope.capture.envelopes import Inner, open_envelopes
from kafkascope.capture.flow import FRAME
from kafkascope.capture.headers import (
    ADDRESS,
    API_KEY,
    API_VERSIONS,
    BODY_AT,
    KIND,
    MOST_KEYS,
    MOST_VERSIONS,
    SIZE,
    VERSION,
    Rows,
    skip_tags,
)
from kafkascope.capture.memory_view import bytes_at
from kafkascope.capture.numbers import Number, Numbers, jit
from kafkascope.capture.scan_program import (
    ERROR,
    FACTS,
    GROUP,
    MEMBER,
    TOPIC,
    TOPIC_ID,
    TOPICS,
    ScanPrograms,
    fact_of,
    name_kind_of,
)
from kafkascope.codec.result import Decoded
from kafkascope.columnar.memory import load_i16
from kafkascope.errors import DecodeError
from kafkascope.schema.layout import LayoutField, layout

ENVELOPE = 58
UNSUPPORTED_VERSION = 35

# What came of the two bodies of an exchange.
FINE, CAREFUL_REQUEST, CAREFUL_RESPONSE, UNKNOWN = 0, 1, 2, 4


@dataclass(slots=True)
class Facts:
    """One row an exchange. `names` are (exchange, kind, address, size), only where they were asked for; `more_names`
    those that the careful codec found. `inner` is what envelopes hold, as far as the kernel could read it: the rest is
    left to the careful codec."""

    values: npt.NDArray[np.int64]
    seen: npt.NDArray[np.uint8]
    undecoded: npt.NDArray[np.bool_]
    body_at: npt.NDArray[np.int64]  # of the response, from its first byte
    names: npt.NDArray[np.int64]
    more_names: list[tuple[int, int, str | bytes]]
    problems: list[tuple[int, str]]
    inner: "tuple[Inner, Facts] | None" = None


def read_facts(
    rows: Rows,
    request: npt.NDArray[np.int64],
    response: npt.NDArray[np.int64],
    programs: ScanPrograms,
    response_flexible: npt.NDArray[np.int64],
    *,
    names: bool,
) -> Facts:
    facts, state = _scanned(rows, request, response, programs, response_flexible, names=names)
    careful = np.flatnonzero((state & (CAREFUL_REQUEST | CAREFUL_RESPONSE)) > 0)
    for index in careful:
        _read_carefully(facts, int(index), rows, int(request[index]), int(response[index]), names)
    enveloped = (request >= 0) & (rows[request, API_KEY] == ENVELOPE) if len(request) else np.zeros(0, np.bool_)
    plain = np.flatnonzero(enveloped & (state == FINE))
    if len(plain):
        inner = open_envelopes(rows, request, response, facts.body_at, plain)
        told, state = _scanned(inner.rows, inner.request, inner.response, programs, response_flexible, names=names)
        if (state != FINE).any():
            inner = inner.only(state == FINE)
            told, state = _scanned(inner.rows, inner.request, inner.response, programs, response_flexible, names=names)
        _merge(facts, told, inner.outer)
        enveloped[inner.outer] = False
        facts.inner = inner, told
    for index in np.flatnonzero(enveloped):
        _read_envelope(facts, int(index), rows, int(request[index]), int(response[index]), names)
    return facts


def _merge(facts: Facts, inner: Facts, outer: npt.NDArray[np.int64]) -> None:
    """An error of the envelope itself goes before one inside; else what is inside is the exchange's."""
    told = inner.seen > 0
    told[:, ERROR] &= facts.values[outer, ERROR] == 0
    topics = facts.values[outer, TOPICS] + inner.values[:, TOPICS]
    facts.values[outer] = np.where(told, inner.values, facts.values[outer])
    facts.values[outer, TOPICS] = topics
    facts.seen[outer] |= inner.seen
    if len(inner.names):
        inner.names[:, 0] = outer[inner.names[:, 0]]
        facts.names = np.concatenate([facts.names, inner.names])


def _scanned(
    rows: Rows,
    request: npt.NDArray[np.int64],
    response: npt.NDArray[np.int64],
    programs: ScanPrograms,
    response_flexible: npt.NDArray[np.int64],
    *,
    names: bool,
) -> tuple[Facts, npt.NDArray[np.uint8]]:
    """What the kernel reads, and what came of each exchange."""
    known = request[request >= 0]
    programs.need(rows[known, API_KEY], rows[known, VERSION])
    if (rows[known, API_KEY] == API_VERSIONS).any():
        # The fallback answer is one of version 0.
        programs.need(np.array([API_VERSIONS]), np.array([0]))
    count = len(request)
    values = np.zeros((count, FACTS), dtype=np.int64)
    seen = np.zeros((count, FACTS), dtype=np.uint8)
    state = np.zeros(count, dtype=np.uint8)
    body_at = np.full(count, -1, dtype=np.int64)
    found = np.empty((max(1024, 4 * count) if names else 0, NAME_WIDTH), dtype=np.int64)
    stack = make_stack()
    at, named = 0, 0
    while True:
        at, named = _scan_all(
            rows, request, response, programs.entry, programs.operations, programs.tags, response_flexible, values,
            seen, state, body_at, found, at, named, names, stack,
        )  # fmt: skip
        if at == count:
            return Facts(values, seen, (state & UNKNOWN) > 0, body_at, found[:named], [], []), state
        found = np.concatenate([found, np.empty_like(found)])


@jit
def _scan_all(
    rows: Any, request: Any, response: Any, entry: Any, operations: Any, tags: Any, flexible: Any, values: Any,
    seen: Any, state: Any, body_at: Any, names: Any, first: Number, named: Number, keep: bool,
    stack: Any,
) -> Numbers:  # fmt: skip
    """(exchange to go on with, names so far): an exchange whose names have no room is begun again."""
    for index in range(first, len(request)):
        before = named
        values[index, :] = 0
        seen[index, :] = 0
        state[index] = FINE
        asked = request[index]
        if asked < 0:
            continue
        row = rows[asked]
        if row[KIND] != FRAME:
            continue
        key = row[API_KEY]
        version = row[VERSION]
        if row[BODY_AT] < 0 or key < 0 or key >= MOST_KEYS or version < 0 or version >= MOST_VERSIONS:
            state[index] = UNKNOWN
            continue
        program = entry[0, key, version]
        if program < 0:
            state[index] = UNKNOWN
            continue
        start = row[ADDRESS]
        result, named = scan(
            operations, tags, program, start + row[BODY_AT], start + row[SIZE], values[index], seen[index], index,
            names, named, keep, stack,
        )  # fmt: skip
        if result == NO_SPACE:
            return index, before
        if result != READ:
            state[index] |= CAREFUL_REQUEST
            named = before
        topics = values[index, TOPICS]
        answer = response[index]
        if answer < 0:
            continue
        start = rows[answer, ADDRESS]
        end = start + rows[answer, SIZE]
        position = start + 4
        if rows[answer, BODY_AT] < 0:
            state[index] |= UNKNOWN
            continue
        if version >= flexible[key]:
            position = skip_tags(position, end)
            if position < 0:
                state[index] |= UNKNOWN
                continue
        body_at[index] = position - start
        program = entry[1, key, version]
        fallback = key == API_VERSIONS and version > 0 and end - position >= 2
        if fallback and load_i16(position) == UNSUPPORTED_VERSION:
            program = entry[1, key, 0]
        if program < 0:
            state[index] |= UNKNOWN
            continue
        middle = named
        result, named = scan(
            operations, tags, program, position, end, values[index], seen[index], index, names, named, keep, stack
        )
        values[index, TOPICS] = topics
        if result == NO_SPACE:
            return index, before
        if result != READ:
            state[index] |= CAREFUL_RESPONSE
            named = middle
    return len(request), named


def _read_carefully(facts: Facts, index: int, rows: Rows, asked: int, answer: int, names: bool) -> None:
    """What the kernel left, by the codec."""
    data = bytes_at(rows[asked, ADDRESS], rows[asked, SIZE])
    facts.values[index, :] = 0
    facts.seen[index, :] = 0
    if names and len(facts.names):
        facts.names = facts.names[facts.names[:, 0] != index]
    try:
        read = decode_request(data)
        _note(facts, index, read, names)
        if answer >= 0:
            answered = bytes_at(rows[answer, ADDRESS], rows[answer, SIZE])
            read = decode_response(answered, int(rows[asked, API_KEY]), int(rows[asked, VERSION]))
            _note(facts, index, read, names)
    except DecodeError as error:
        facts.undecoded[index] = True
        facts.problems.append((index, str(error)))


def _read_envelope(facts: Facts, index: int, rows: Rows, asked: int, answer: int, names: bool) -> None:
    """The request inside, and its answer: an error in there is the exchange's."""
    try:
        outer = decode_request(bytes_at(rows[asked, ADDRESS], rows[asked, SIZE]))
        inner = outer.value["requestData"] if outer else b""
        _note(facts, index, decode_request(inner), names)
        if answer < 0:
            return
        answered = bytes_at(rows[answer, ADDRESS], rows[answer, SIZE])
        outer = decode_response(answered, ENVELOPE, int(rows[asked, VERSION]))
        content = outer.value["responseData"] if outer else None
        if content:
            key, version = (int.from_bytes(inner[at : at + 2], "big", signed=True) for at in (0, 2))
            _note(facts, index, decode_response(content, key, version), names)
    except DecodeError as error:
        facts.undecoded[index] = True
        facts.problems.append((index, str(error)))


def _note(facts: Facts, index: int, decoded: Decoded | None, names: bool) -> None:
    if decoded is None:
        facts.undecoded[index] = True
        return
    for fact, value in facts_of(decoded):
        if fact == TOPICS:
            facts.values[index, TOPICS] += decoded.name.endswith("Request")
        elif fact != ERROR or facts.values[index, ERROR] == 0:
            facts.values[index, fact] = value
            facts.seen[index, fact] = 1
    if names:
        facts.more_names += [(index, kind, name) for kind, name in names_of(decoded)]


def facts_of(decoded: Decoded) -> Iterator[tuple[int, int]]:
    """(fact, number) in the order of the wire."""
    for field, depth, content in _leaves(decoded):
        fact = fact_of(decoded.name, field, depth)
        if fact is not None:
            yield fact, content
        elif name_kind_of(decoded.name, field) in (TOPIC, TOPIC_ID) and content:
            yield TOPICS, 1


def names_of(decoded: Decoded) -> Iterator[tuple[int, str | bytes]]:
    """(GROUP, MEMBER, TOPIC or TOPIC_ID, name); topic ids as their 16 bytes."""
    for field, _, content in _leaves(decoded):
        kind = name_kind_of(decoded.name, field)
        if kind in (GROUP, MEMBER, TOPIC) and content:
            yield kind, content
        elif kind == TOPIC_ID:
            yield kind, content.bytes


def _leaves(decoded: Decoded) -> Iterator[tuple[LayoutField, int, Any]]:
    def visit(
        fields: tuple[LayoutField, ...], value: dict[str, Any], depth: int
    ) -> Iterator[tuple[LayoutField, int, Any]]:
        # Tags lie behind the other fields.
        for field in sorted(fields, key=lambda field: -1 if field.tag is None else field.tag):
            content = value.get(field.name)
            if content is None:
                continue
            for item in content if field.array else (content,):
                inside = depth + field.array
                if field.type == "struct":
                    yield from visit(field.fields, item, inside + 1)
                else:
                    yield field, inside, item

    yield from visit(layout(decoded.name, decoded.version).fields, decoded.value, 0)
