"""Reads the fields of bodies that `exchanges` has columns for. A kernel reads bodies in the form that Kafka writes, the
careful codec reads the rest; an exchange that neither can read is `undecoded`."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.checked import place, read_i16
from kafkascope.capture.base.flow import FrameKind
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.exchanges.bodies import decode_request, decode_response, other_layouts
from kafkascope.capture.exchanges.envelopes import InnerExchanges, open_envelopes
from kafkascope.capture.frames.body_scan import KEEP_NONE, NAME_WIDTH, SEVERAL, THE_ONE, ScanResult, make_stack, scan
from kafkascope.capture.frames.headers import API_VERSIONS, MOST_KEYS, MOST_VERSIONS, Frame, FrameRows, skip_tags
from kafkascope.capture.frames.scan_program import (
    NO_PROGRAM,
    NOT_COMPILED,
    NOTED,
    OWN,
    Fact,
    NameKind,
    ScanPrograms,
    fact_of,
    name_kind_of,
    note_of,
)
from kafkascope.codec.result import Decoded
from kafkascope.columnar.compiling.jit import jit
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_CAREFUL_FRAME_BYTES, MAX_NAMES
from kafkascope.schema.layouts.layout import LayoutField, layout

ENVELOPE = 58
FIND_COORDINATOR = 10
UNSUPPORTED_VERSION = 35

# The state of the two bodies of an exchange, as bits. A body that ends inside a field goes to the careful codec only if
# the catalog has another layout for it. ENVELOPED is set only for a whole batch: one of its exchanges is an Envelope.
FINE, CAREFUL_REQUEST, CAREFUL_RESPONSE, UNREADABLE, CUT_SHORT, ENVELOPED = 0, 1, 2, 4, 8, 16


class FactsStop(IntEnum):
    """Why the kernel stops."""

    DONE = 0
    NO_ROOM = 1
    NO_PROGRAM_YET = 2


@dataclass(slots=True)
class Facts:
    """One row per exchange. `names` are (exchange, kind, place, size), if names were asked for; `more_names` are those
    that the careful codec found. `inner` are the contents of Envelopes, as far as the kernel could read them: the rest
    is left to the careful codec."""

    values: npt.NDArray[np.int64]
    seen: npt.NDArray[np.uint8]
    undecoded: npt.NDArray[np.bool_]
    body_at: npt.NDArray[np.int64]  # of the response, from its first byte
    names: npt.NDArray[np.int64]
    more_names: list[tuple[int, int, str | bytes]]
    # (exchange, GROUP_AT or MEMBER_AT) to the name that the careful codec found.
    more_ids: dict[tuple[int, int], str]
    inner: "tuple[InnerExchanges, Facts] | None" = None


def read_facts(
    content: Content,
    rows: FrameRows,
    request: npt.NDArray[np.int64],
    response: npt.NDArray[np.int64],
    programs: ScanPrograms,
    response_flexible: npt.NDArray[np.int64],
    *,
    names: bool,
) -> Facts:
    facts, state, states = _scanned(content, rows, request, response, programs, response_flexible, names=names)
    if states & (CAREFUL_REQUEST | CAREFUL_RESPONSE):
        if states & CUT_SHORT:
            _leave_cut(facts, state, rows, request)
        for index in np.flatnonzero(state & (CAREFUL_REQUEST | CAREFUL_RESPONSE)).tolist():
            _read_carefully(facts, index, content, rows, int(request[index]), int(response[index]), names)
    if not states & ENVELOPED:
        return facts
    enveloped = np.empty(len(request), dtype=np.int64)
    enveloped = enveloped[: _find_envelopes(rows, request, enveloped)]
    read: set[int] = set()
    plain = enveloped[state[enveloped] == FINE]
    if len(plain):
        inner = open_envelopes(content, rows, request, response, facts.body_at, plain)
        inner_facts, state, states = _scanned(
            content, inner.rows, inner.request, inner.response, programs, response_flexible, names=names
        )
        if states & ~ENVELOPED:
            inner = inner.only(state == FINE)
            inner_facts, *_ = _scanned(
                content, inner.rows, inner.request, inner.response, programs, response_flexible, names=names
            )
        _merge(facts, inner_facts, inner.outer)
        facts.inner = inner, inner_facts
        read = set(inner.outer.tolist())
    for index in enveloped.tolist():
        if index not in read:
            _read_envelope(facts, index, content, rows, int(request[index]), int(response[index]), names)
    return facts


def _leave_cut(facts: Facts, state: npt.NDArray[np.uint8], rows: FrameRows, request: npt.NDArray[np.int64]) -> None:
    """Marks bodies that no layout can read as undecoded, without the codec, which takes far longer than the kernel to
    find the same."""
    cut = np.flatnonzero(state & CUT_SHORT)
    request_rows = request[cut]
    responses = (state[cut] & CAREFUL_RESPONSE) > 0
    kinds = (rows[request_rows, Frame.API_KEY] * MOST_VERSIONS + rows[request_rows, Frame.VERSION]) * 2 + responses
    distinct_kinds, which = np.unique(kinds, return_inverse=True)
    has_others = [
        bool(other_layouts(*divmod(kind >> 1, MOST_VERSIONS), bool(kind & 1))) for kind in distinct_kinds.tolist()
    ]
    hopeless = cut[~np.array(has_others)[which]]
    facts.undecoded[hopeless] = True
    state[hopeless] = UNREADABLE


@jit
def _find_envelopes(rows: Any, request: Any, enveloped: Any) -> Number:
    """Writes the exchanges that are Envelopes to `enveloped`; returns how many."""
    count = 0
    for index in range(len(request)):
        if request[index] >= 0 and rows[request[index], Frame.API_KEY] == ENVELOPE:
            enveloped[count] = index
            count += 1
    return count


def _merge(facts: Facts, inner: Facts, outer: npt.NDArray[np.int64]) -> None:
    """Facts from inside an Envelope become those of the exchange, but an error of the Envelope itself comes first."""
    _merge_numbers(facts.values, facts.seen, inner.values, inner.seen, outer)
    if len(inner.names):
        inner.names[:, 0] = outer[inner.names[:, 0]]
        facts.names = np.concatenate([facts.names, inner.names])


@jit
def _merge_numbers(values: Any, seen: Any, inner_values: Any, inner_seen: Any, outer: Any) -> None:
    for index in range(len(outer)):
        into = values[outer[index]]
        failed = into[Fact.ERROR] != 0
        topics = into[Fact.TOPICS] + inner_values[index, Fact.TOPICS]
        for fact in range(inner_values.shape[1]):
            if inner_seen[index, fact]:
                seen[outer[index], fact] |= inner_seen[index, fact]
                if fact != Fact.ERROR or not failed:
                    into[fact] = inner_values[index, fact]
        into[Fact.TOPICS] = topics


def _scanned(
    content: Content,
    rows: FrameRows,
    request: npt.NDArray[np.int64],
    response: npt.NDArray[np.int64],
    programs: ScanPrograms,
    response_flexible: npt.NDArray[np.int64],
    *,
    names: bool,
) -> tuple[Facts, npt.NDArray[np.uint8], int]:
    """(what the kernel reads, the state of each exchange, all states together)"""
    count = len(request)
    values = np.empty((count, len(Fact)), dtype=np.int64)
    seen = np.empty((count, len(Fact)), dtype=np.uint8)
    state = np.empty(count, dtype=np.uint8)
    body_at = np.empty(count, dtype=np.int64)
    name_rows = np.empty((max(1024, 4 * count) if names else 0, NAME_WIDTH), dtype=np.int64)
    stack = make_stack()
    at = named = states = 0
    while True:
        at, named, states, why = _scan_all(
            *content, rows, request, response, programs.entry, programs.operations, programs.tags, response_flexible,
            values, seen, state, body_at, name_rows, at, named, states, names, stack,
        )  # fmt: skip
        if why == FactsStop.DONE:
            undecoded = (state & UNREADABLE) > 0
            return Facts(values, seen, undecoded, body_at, name_rows[:named], [], {}), state, int(states)
        if why == FactsStop.NO_PROGRAM_YET:
            _need_all(programs, rows, request)
        elif len(name_rows) < MAX_NAMES:
            name_rows = np.concatenate(
                [name_rows, np.empty((min(len(name_rows), MAX_NAMES - len(name_rows)), NAME_WIDTH), np.int64)]
            )
        else:
            # Only this exchange is read without its names; later ones may have few.
            at, _, states, _ = _scan_all(
                *content, rows, request[: at + 1], response, programs.entry, programs.operations, programs.tags,
                response_flexible, values, seen, state, body_at, name_rows, at, named, states, False, stack,
            )  # fmt: skip


def _need_all(programs: ScanPrograms, rows: FrameRows, request: npt.NDArray[np.int64]) -> None:
    """Compiles the programs for all exchanges at once: each time new programs are made, all are copied."""
    known = request[request >= 0]
    # The fallback response to ApiVersions has version 0.
    keys = np.append(rows[known, Frame.API_KEY], API_VERSIONS)
    programs.need(keys, np.append(rows[known, Frame.VERSION], 0))


@jit
def _scan_all(
    waited: Any, body: Any, rows: Any, request: Any, response: Any, entry: Any, operations: Any, tags: Any,
    flexible: Any, values: Any, seen: Any, state: Any, body_at: Any, names: Any, first: Number, named: Number,
    states: Number, keep: bool, stack: Any,
) -> Numbers:  # fmt: skip
    """(exchange to go on with, names so far, all states so far, why it stopped). An exchange whose names have no room,
    or whose programs are not compiled yet, is scanned again."""
    for index in range(first, len(request)):
        before = named
        values[index, :] = 0
        seen[index, :] = 0
        state[index] = FINE
        body_at[index] = -1
        request_row = request[index]
        if request_row < 0:
            continue
        row = rows[request_row]
        if row[Frame.KIND] != FrameKind.FRAME:
            continue
        key = row[Frame.API_KEY]
        version = row[Frame.VERSION]
        if key == ENVELOPE:
            states |= ENVELOPED
        if row[Frame.BODY_AT] < 0 or key < 0 or key >= MOST_KEYS or version < 0:
            state[index] = UNREADABLE
            states |= UNREADABLE
            continue
        program = entry[0, key, version] if version < MOST_VERSIONS else NO_PROGRAM
        # Both directions are compiled together.
        if program == NOT_COMPILED or (key == API_VERSIONS and entry[0, key, 0] == NOT_COMPILED):
            return index, before, states, FactsStop.NO_PROGRAM_YET
        if program < 0:
            state[index] = UNREADABLE
            states |= UNREADABLE
            if key == API_VERSIONS and response[index] >= 0:
                # A client of a later Kafka: the broker doesn't know the version either, and reports that in version 0.
                data, start = place(waited, body, rows[response[index], Frame.FRAME_AT])
                end = start + rows[response[index], Frame.SIZE]
                if end - start >= 6 and read_i16(data, start + 4) == UNSUPPORTED_VERSION:
                    result, _ = scan(
                        operations, tags, entry[1, key, 0], data, np.int64(0), start + 4, end, values[index],
                        seen[index], index, names, named, KEEP_NONE, stack,
                    )  # fmt: skip
                    if result != ScanResult.READ:
                        values[index, :] = 0
                        seen[index, :] = 0
            continue
        data, start = place(waited, body, row[Frame.FRAME_AT])
        result, named = scan(
            operations, tags, program, data, row[Frame.FRAME_AT] - start, start + row[Frame.BODY_AT],
            start + row[Frame.SIZE], values[index], seen[index], index, names, named, keep, stack,
        )  # fmt: skip
        if result == ScanResult.NO_SPACE:
            return index, before, states, FactsStop.NO_ROOM
        if result == ScanResult.CUT:
            # Like the codec, which doesn't get to the response then.
            values[index, :] = 0
            seen[index, :] = 0
            state[index] = CAREFUL_REQUEST | CUT_SHORT
            states |= CAREFUL_REQUEST | CUT_SHORT
            named = before
            continue
        if result != ScanResult.READ:
            state[index] |= CAREFUL_REQUEST
            states |= CAREFUL_REQUEST
            named = before
        if key == FIND_COORDINATOR and values[index, Fact.KEY_TYPE] != 0:
            # The coordinator of a transaction or of a share partition.
            seen[index, Fact.GROUP_AT] = SEVERAL
        topics = values[index, Fact.TOPICS]
        response_row = response[index]
        if response_row < 0:
            continue
        data, start = place(waited, body, rows[response_row, Frame.FRAME_AT])
        end = start + rows[response_row, Frame.SIZE]
        position = start + 4
        if rows[response_row, Frame.BODY_AT] < 0:
            state[index] |= UNREADABLE
            states |= UNREADABLE
            continue
        if version >= flexible[key]:
            position = skip_tags(data, position, end)
            if position < 0:
                state[index] |= UNREADABLE
                states |= UNREADABLE
                continue
        body_at[index] = position - start
        program = entry[1, key, version]
        fallback = key == API_VERSIONS and version > 0 and end - position >= 2
        if fallback and read_i16(data, position) == UNSUPPORTED_VERSION:
            program = entry[1, key, 0]
        if program < 0:
            state[index] |= UNREADABLE
            states |= UNREADABLE
            continue
        middle = named
        result, named = scan(
            operations, tags, program, data, rows[response_row, Frame.FRAME_AT] - start, position, end, values[index],
            seen[index], index, names, named, keep, stack,
        )  # fmt: skip
        values[index, Fact.TOPICS] = topics
        if result == ScanResult.NO_SPACE:
            return index, before, states, FactsStop.NO_ROOM
        if result != ScanResult.READ:
            state[index] |= CAREFUL_RESPONSE
            named = middle
            # Some brokers return 35 in the version of the request: the codec tries both.
            if result == ScanResult.CUT and state[index] == CAREFUL_RESPONSE and program == entry[1, key, version]:
                state[index] |= CUT_SHORT
                # The facts of the request stay.
                values[index, :] = 0
                seen[index, :] = 0
                data, start = place(waited, body, row[Frame.FRAME_AT])
                scan(
                    operations, tags, entry[0, key, version], data, row[Frame.FRAME_AT] - start,
                    start + row[Frame.BODY_AT], start + row[Frame.SIZE], values[index], seen[index], index, names,
                    named, KEEP_NONE, stack,
                )  # fmt: skip
            states |= state[index]
    return len(request), named, states, FactsStop.DONE


def _read_carefully(
    facts: Facts, index: int, content: Content, rows: FrameRows, request_row: int, response_row: int, names: bool
) -> None:
    """Reads with the careful codec what the kernel left."""
    if _is_long(facts, index, rows, request_row, response_row):
        return
    data = _frame(content, rows, request_row)
    facts.values[index, :] = 0
    facts.seen[index, :] = 0
    if names and len(facts.names):
        facts.names = facts.names[facts.names[:, 0] != index]
    try:
        read = decode_request(data)
        _note(facts, index, read, names)
        if response_row >= 0:
            response_frame = _frame(content, rows, response_row)
            read = decode_response(
                response_frame, int(rows[request_row, Frame.API_KEY]), int(rows[request_row, Frame.VERSION])
            )
            _note(facts, index, read, names)
    except DecodeError:
        facts.undecoded[index] = True


def _is_long(facts: Facts, index: int, rows: FrameRows, request_row: int, response_row: int) -> bool:
    """Whether one of the frames is too long for the codec, and so neither is decoded."""
    longest = max(int(rows[request_row, Frame.SIZE]), int(rows[response_row, Frame.SIZE]) if response_row >= 0 else 0)
    facts.undecoded[index] |= longest > MAX_CAREFUL_FRAME_BYTES
    return longest > MAX_CAREFUL_FRAME_BYTES


def _frame(content: Content, rows: FrameRows, row: int) -> bytes:
    return content.bytes(int(rows[row, Frame.FRAME_AT]), int(rows[row, Frame.SIZE]))


def _read_envelope(
    facts: Facts, index: int, content: Content, rows: FrameRows, request_row: int, response_row: int, names: bool
) -> None:
    """Reads the request inside an Envelope and its response: an error in the latter is the exchange's."""
    if _is_long(facts, index, rows, request_row, response_row):
        return
    try:
        outer = decode_request(_frame(content, rows, request_row))
        inner = outer.value["requestData"] if outer else b""
        _note(facts, index, decode_request(inner), names)
        if response_row < 0:
            return
        response_frame = _frame(content, rows, response_row)
        outer = decode_response(response_frame, ENVELOPE, int(rows[request_row, Frame.VERSION]))
        inner_response = outer.value["responseData"] if outer else None
        if inner_response:
            key, version = (int.from_bytes(inner[at : at + 2], "big", signed=True) for at in (0, 2))
            _note(facts, index, decode_response(inner_response, key, version), names)
    except DecodeError:
        facts.undecoded[index] = True


def _note(facts: Facts, index: int, decoded: Decoded | None, names: bool) -> None:
    if decoded is None:
        facts.undecoded[index] = True
        return
    for fact, name in ids_of(decoded).items():
        if facts.more_ids.setdefault((index, fact), name or "") == name:
            facts.seen[index, fact] = THE_ONE
    for fact, value in facts_of(decoded):
        if fact == Fact.TOPICS:
            facts.values[index, Fact.TOPICS] += decoded.name.endswith("Request")
        elif fact != Fact.ERROR or facts.values[index, Fact.ERROR] == 0:
            facts.values[index, fact] = value
            facts.seen[index, fact] = 1
    if names:
        more = [(index, kind, name) for kind, name in islice(names_of(decoded), MAX_NAMES - len(facts.more_names) + 1)]
        if len(facts.more_names) + len(more) <= MAX_NAMES:
            facts.more_names += more


def facts_of(decoded: Decoded) -> Iterator[tuple[int, int]]:
    """(fact, value) in the order of the wire."""
    for field, depth, content in _leaves(decoded):
        fact = fact_of(decoded.name, field, depth)
        if fact is not None:
            yield fact, content
        elif name_kind_of(decoded.name, field) in (NameKind.TOPIC, NameKind.TOPIC_ID) and content:
            yield Fact.TOPICS, 1


def ids_of(decoded: Decoded) -> dict[int, str | None]:
    """The group (GROUP_AT) and member (MEMBER_AT) that the message is about; None if it names several."""
    own: dict[int, str | None] = {}
    listed: dict[int, str | None] = {}
    for field, depth, content in _leaves(decoded):
        kind = name_kind_of(decoded.name, field)
        if kind not in (NameKind.GROUP, NameKind.MEMBER) or not content:
            continue
        fact, note = Fact.GROUP_AT + 2 * kind, note_of(decoded.name, depth)
        if note & OWN:
            own.setdefault(fact, content)
        elif note & NOTED:
            listed[fact] = content if listed.setdefault(fact, content) == content else None
    ids = listed | own
    if decoded.value.get("keyType"):
        ids[Fact.GROUP_AT] = None
    return ids


def names_of(decoded: Decoded) -> Iterator[tuple[int, str | bytes]]:
    """(GROUP, MEMBER, TOPIC or TOPIC_ID, name); topic ids as their 16 bytes."""
    for field, _, content in _leaves(decoded):
        kind = name_kind_of(decoded.name, field)
        if kind in (NameKind.GROUP, NameKind.MEMBER, NameKind.TOPIC) and content:
            yield kind, content
        elif kind == NameKind.TOPIC_ID:
            yield kind, content.bytes


def _leaves(decoded: Decoded) -> Iterator[tuple[LayoutField, int, Any]]:
    def visit(
        fields: tuple[LayoutField, ...], value: dict[str, Any], depth: int
    ) -> Iterator[tuple[LayoutField, int, Any]]:
        # Tagged fields come after the others.
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
