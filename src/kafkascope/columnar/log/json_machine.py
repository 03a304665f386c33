"""Runs a program over the bytes of one message and writes its JSON: what `json_form` gives, with null for what is
hidden. Whatever isn't the one form that Kafka writes, and every letter that isn't ASCII, is `REFUSED`; nothing is
written after the room, and nothing is read after the end."""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.memory import (
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u32,
    store_16,
    store_32,
    store_64,
    word,
)
from kafkascope.columnar.kernel.signatures import Bool, Int, Pair, Triple
from kafkascope.columnar.log.record_walk import read_varint
from kafkascope.columnar.log.text import (
    LONGEST_ESCAPE,
    NO_ROOM,
    NUMBER_ROOM,
    REFUSED,
    SLACK,
    UUID_DIGITS,
    put,
    put_base64,
    put_number,
    put_text,
    put_uuid,
)
from kafkascope.columnar.secrets import LISTENER
from kafkascope.limits import MAX_STRING_BYTES

# An operation's words: its number, the text before its value and how long that is, and what it needs.
JSON_OPERATION = 8
JSON_TEXT, TEXT_SIZE, JSON_FIRST = 1, 2, 3
(
    INT32, INT64, JSON_INT16, INT8, STRING, JSON_ARRAY, JSON_NEXT, JSON_TAGS, JSON_TAG_END, JSON_END,
    JSON_UUID, JSON_BOOL, JSON_STRUCT, JSON_BYTES, JSON_HIDDEN, INT32S, UINT32, UINT16,
    GO_ON, TAGGED, RESTORE, AFTER_TAGS, SETTING,
) = range(23)  # fmt: skip
# JSON_FIRST: the size of a length on the wire, 0 for a compact one; then 1 where null is allowed.
SIZE, NULLABLE, JSON_SKIP, LEAST = JSON_FIRST, JSON_FIRST + 1, JSON_FIRST + 2, JSON_FIRST + 3
# A place on the stack: an array's elements left, or a tag section's tags left, last tag, end of the tag, operation.
JSON_PLACE = 4
_STEP = 8 * JSON_OPERATION
_PLACE = 8 * JSON_PLACE
# A known tag: its number, its operations, its default's bytes and how many they are.
TAG = 4
# JSON has tags among the fields of their struct, where the definition has them; the wire has them at its end. For a
# message of which these differ, a tag section that isn't empty is read first, and the message is written again with it.
# `ORDERED` is where that begins. The stack starts with the places of its tags: start and end of each, then two
# positions.
ORDERED = JSON_SKIP
MOST_TAGS = 30
_SAVED, _SECTION_END = 2 * MOST_TAGS, 2 * MOST_TAGS + 1
STACK_START = 2 * MOST_TAGS + 2
# A slot of the table of settings whose values may be shown: the kind of resource, and the name with its size, 0 for
# none.
SLOT = 3
_HASH_START, _HASH_PRIME = np.int64(-0x340D631B7BDDDCDB), np.int64(0x100000001B3)
_LISTENER = np.frombuffer(LISTENER.encode(), np.uint8).astype(np.int64)


@inline
def _size_of(p: Int, end: Int, width: Int) -> Pair:
    """A length or count; −1 is null. The position is negative if it's cut off or impossible."""
    if width == 0:
        size, p = read_varint(p, end)
        # No length is more than int32.
        return size - 1, p if size <= 0x7FFFFFFF else np.int64(REFUSED)
    if width > end - p:
        return np.int64(0), np.int64(REFUSED)
    if width == 4:
        return load_i32(p), p + 4
    return load_i16(p), p + 2


@inline
def _put_null(out: Int) -> Int:
    store_32(out, np.int64(0x6C6C756E))  # null
    return out + 4


@inline
def _put_comma(out: Int) -> Int:
    store_16(out, np.int64(0x202C))  # ", "
    return out + 2


@plain
def write_message(code: Int, p: Int, end: Int, out: Int, room: Int, stack: Int) -> Int:
    """Where the text ends; `REFUSED`, or `NO_ROOM` if it needs more than up to `room`, after which `SLACK` bytes may be
    written."""
    places, first_p, first_out = stack, p, out
    name, name_size = p, np.int64(0)
    stack += 8 * STACK_START
    while True:
        op, size = word(code, 0), word(code, TEXT_SIZE)
        if size + NUMBER_ROOM > room - out:
            return np.int64(NO_ROOM)
        out = put(out, word(code, JSON_TEXT), size)
        if op == INT32:
            if end - p < 4:
                return np.int64(REFUSED)
            out = put_number(out, load_i32(p))
            p += 4
        elif op == STRING:
            size, p = _size_of(p, end, word(code, SIZE))
            if p < 0 or size < -word(code, NULLABLE) or size > min(end - p, np.int64(MAX_STRING_BYTES)):
                return np.int64(REFUSED)
            if size < 0:
                out = _put_null(out)
            else:
                if LONGEST_ESCAPE * size + NUMBER_ROOM > room - out:
                    return np.int64(NO_ROOM)
                out = put_text(out, p, size)
                if out < 0:
                    return np.int64(REFUSED)
                name, name_size = p, size
                p += size
        elif op == INT64:
            if end - p < 8:
                return np.int64(REFUSED)
            out = put_number(out, load_i64(p))
            p += 8
        elif op == JSON_TAGS:
            if p >= end:
                return np.int64(REFUSED)
            if load_u8(p) == 0:
                p += 1
            elif word(code, ORDERED):
                p = _places_of_tags(code, p, end, places)
                if p < 0:
                    return np.int64(REFUSED)
                store_64(places + 8 * _SECTION_END, p)
                code, p, out = word(code, ORDERED), first_p, first_out
                continue
            else:
                stack += _PLACE
                code, p = _first_tag(code, p, end, stack)
                if p < 0:
                    return np.int64(REFUSED)
                continue
        elif op == JSON_ARRAY:
            size, p = _size_of(p, end, word(code, SIZE))
            if p < 0 or size < -word(code, NULLABLE) or size * word(code, LEAST) > end - p:
                return np.int64(REFUSED)
            if size <= 0:
                if size < 0:
                    out = _put_null(out)
                else:
                    store_16(out, np.int64(0x5D5B))  # []
                    out += 2
                code = word(code, JSON_SKIP)
                continue
            stack += _PLACE
            store_64(stack, size)
            store_16(out, np.int64(0x5B))
            out += 1
        elif op == JSON_NEXT:
            left = word(stack, 0) - 1
            store_64(stack, left)
            if left:
                out = _put_comma(out)
                code = word(code, JSON_FIRST)
                continue
            stack -= _PLACE
            store_16(out, np.int64(0x5D))
            out += 1
        elif op == JSON_END:
            return out
        elif op == INT32S:
            size, p = _size_of(p, end, word(code, SIZE))
            if p < 0 or size < -word(code, NULLABLE) or 4 * size > end - p:
                return np.int64(REFUSED)
            if size < 0:
                out = _put_null(out)
            else:
                if 13 * size + NUMBER_ROOM > room - out:
                    return np.int64(NO_ROOM)
                store_16(out, np.int64(0x5B))
                out += 1
                for index in range(size):
                    if index:
                        out = _put_comma(out)
                    out = put_number(out, load_i32(p))
                    p += 4
                store_16(out, np.int64(0x5D))
                out += 1
        elif op == JSON_INT16:
            if end - p < 2:
                return np.int64(REFUSED)
            out = put_number(out, load_i16(p))
            p += 2
        elif op == INT8:
            if p >= end:
                return np.int64(REFUSED)
            out = put_number(out, load_i8(p))
            p += 1
        elif op == JSON_BOOL:
            if p >= end or load_u8(p) > 1:
                return np.int64(REFUSED)
            if load_u8(p):
                store_32(out, np.int64(0x65757274))  # true
                out += 4
            else:
                store_64(out, np.int64(0x65736C6166))  # false
                out += 5
            p += 1
        elif op == JSON_UUID:
            if end - p < 16:
                return np.int64(REFUSED)
            if room - out < UUID_DIGITS + NUMBER_ROOM:
                return np.int64(NO_ROOM)
            out = put_uuid(out, p)
            p += 16
        elif op == JSON_STRUCT:
            # An int8, or a varint of one byte in a tag: the only two values that Kafka writes.
            if p >= end:
                return np.int64(REFUSED)
            present = load_u8(p)
            p += 1
            if present != 1:
                if present != word(code, SIZE):
                    return np.int64(REFUSED)
                out = _put_null(out)
                code = word(code, JSON_SKIP)
                continue
        elif op == JSON_BYTES:
            size, p = _size_of(p, end, word(code, SIZE))
            if p < 0 or size < -word(code, NULLABLE) or size > end - p:
                return np.int64(REFUSED)
            if size < 0:
                out = _put_null(out)
            else:
                if 4 * size // 3 + NUMBER_ROOM > room - out:
                    return np.int64(NO_ROOM)
                out = put_base64(out, p, size)
                p += size
        elif op == JSON_HIDDEN:
            size, p = _size_of(p, end, word(code, SIZE))
            if p < 0 or size < -word(code, NULLABLE) or size > min(end - p, word(code, LEAST)):
                return np.int64(REFUSED)
            out = _put_null(out)
            p += max(size, np.int64(0))
        elif op == JSON_TAG_END:
            if p != word(stack, 2):
                return np.int64(REFUSED)
            if word(stack, 0) == 0:
                code = word(stack, 3)
                stack -= _PLACE
            else:
                code, p = _next_tag(p, end, stack)
                if p < 0:
                    return np.int64(REFUSED)
                continue
        elif op == UINT32:
            if end - p < 4:
                return np.int64(REFUSED)
            out = put_number(out, load_u32(p))
            p += 4
        elif op == SETTING:
            # The kind of resource is the first field, and the name of the setting the string before.
            shown = _is_open(word(code, JSON_SKIP), word(code, LEAST), load_i8(first_p), name, name_size)
            size, p = _size_of(p, end, word(code, SIZE))
            if shown < 0 or p < 0 or size < -word(code, NULLABLE) or size > min(end - p, np.int64(MAX_STRING_BYTES)):
                return np.int64(REFUSED)
            if size < 0 or shown == 0:
                out = _put_null(out)
            else:
                if LONGEST_ESCAPE * size + NUMBER_ROOM > room - out:
                    return np.int64(NO_ROOM)
                out = put_text(out, p, size)
                if out < 0:
                    return np.int64(REFUSED)
            p += max(size, np.int64(0))
        elif op == TAGGED:
            at = word(places, 2 * word(code, JSON_FIRST))
            if at == 0:
                code = word(code, JSON_SKIP)
                continue
            store_64(places + 8 * _SAVED, p)
            p = at
        elif op == RESTORE:
            if p != word(places, 2 * word(code, JSON_FIRST) + 1):
                return np.int64(REFUSED)
            p = word(places, _SAVED)
        elif op == AFTER_TAGS:
            p = word(places, _SECTION_END)
        elif op == UINT16:
            if end - p < 2:
                return np.int64(REFUSED)
            out = put_number(out, load_i16(p) & 0xFFFF)
            p += 2
        code += _STEP


@plain
def _first_tag(code: Int, p: Int, end: Int, stack: Int) -> Pair:
    count, p = read_varint(p, end)
    store_64(stack, count)
    store_64(stack + 8, np.int64(-1))
    store_64(stack + 24, code)
    if p < 0:
        return code, p
    return _next_tag(p, end, stack)


@plain
def _next_tag(p: Int, end: Int, stack: Int) -> Pair:
    """The operations of the tag that comes, and where its content begins."""
    code = word(stack, 3)
    tag, p, size = _tag(code, p, end, word(stack, 1))
    if p < 0:
        return code, p
    store_64(stack, word(stack, 0) - 1)
    store_64(stack + 8, word(tag, 0))
    store_64(stack + 16, p + size)
    return word(tag, 1), p


@plain
def _places_of_tags(code: Int, p: Int, end: Int, places: Int) -> Int:
    """The end of the section; the place of each tag that is known and present."""
    first = word(code, JSON_FIRST)
    for index in range(word(code, JSON_FIRST + 1)):
        store_64(places + 16 * index, np.int64(0))
    count, p = read_varint(p, end)
    last = np.int64(-1)
    for _ in range(count):
        if p < 0:
            break
        tag, p, size = _tag(code, p, end, last)
        if p >= 0:
            place = places + 16 * ((tag - first) // (8 * TAG))
            store_64(place, p)
            store_64(place + 8, p + size)
            last, p = word(tag, 0), p + size
    return p


@plain
def _tag(code: Int, p: Int, end: Int, last: Int) -> Triple:
    """(the tag, where its content begins, its size). Refused if it isn't known, out of order, or its default."""
    absent = np.int64(0)
    number, p = read_varint(p, end)
    if p < 0 or number <= last:
        return absent, np.int64(REFUSED), absent
    size, p = read_varint(p, end)
    if p < 0 or size > end - p:
        return absent, np.int64(REFUSED), absent
    tag = word(code, JSON_FIRST)
    for _ in range(word(code, JSON_FIRST + 1)):
        if word(tag, 0) == number:
            if size != word(tag, 3) or not _are_equal(p, word(tag, 2), size):
                return tag, p, size
            break
        tag += 8 * TAG
    return absent, np.int64(REFUSED), absent


@plain
def _is_open(slots: Int, mask: Int, kind: Int, name: Int, size: Int) -> Int:
    """1 for a setting in the table; −1 for a listener's own, whose name has to be taken apart."""
    same = 0
    while same < min(size, len(_LISTENER)) and load_u8(name + same) == _LISTENER[same]:
        same += 1
    if same == len(_LISTENER):
        return np.int64(-1)
    index = setting_hash(kind, name, size) & mask
    while True:
        slot = slots + 8 * SLOT * index
        if word(slot, 2) == 0:
            return np.int64(0)
        if word(slot, 0) == kind and word(slot, 2) == size and _are_equal(word(slot, 1), name, size):
            return np.int64(1)
        index = (index + 1) & mask


@plain
def setting_hash(kind: Int, name: Int, size: Int) -> Int:
    value = (_HASH_START ^ kind) * _HASH_PRIME
    for index in range(size):
        value = (value ^ load_u8(name + index)) * _HASH_PRIME
    return value ^ (value >> 29)


@inline
def _are_equal(first: Int, second: Int, size: Int) -> Bool:
    same = 0
    while same < size and load_u8(first + same) == load_u8(second + same):
        same += 1
    return same == size


assert NUMBER_ROOM < SLACK
