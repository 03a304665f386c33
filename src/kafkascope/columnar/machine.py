"""The kernel: a program and the bytes of many frames in, filled column buffers out.

One pass over each frame. A frame that is not in the one form Kafka writes is rolled back and left to the careful codec
(status 1); a buffer that is full ends the call, which is repeated from that frame when Python has grown it. Nothing is
read before its end is compared with the frame's, nothing written before its column has room.
"""

from typing import Any

import numba
import numpy as np

from kafkascope.columnar.memory import (
    copy_bytes,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_raw64,
    load_u8,
    load_u32,
    store_8,
    store_16,
    store_32,
    store_64,
)
from kafkascope.columnar.program import (
    ARRAY,
    BOOL,
    BYTES,
    END,
    FIXED,
    LIST,
    NEXT,
    NO_TAGS,
    NUMBER,
    NUMBERS,
    OFFSETS,
    PRESENT,
    RECORDS,
    TAG_END,
    TAGS,
    UUID,
)
from kafkascope.limits import MAX_STRING_BYTES

# Arrays and tags within each other; the deepest message of the catalog has six.
DEPTH = 32
DONE, FULL = -1, -2
_HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # 0x8080808080808080
_BATCH_HEADER = 61
_MESSAGE_HEADER = 14  # crc, magic, attributes, and two lengths behind offset and size

jit = numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)


@jit
def varint(position: int, end: int) -> tuple[int, int]:  # type: ignore[misc]
    """(value, next position); a value below 0 is no minimal varint of an int32."""
    value = np.int64(0)
    for index in range(5):
        if position >= end:
            return np.int64(-1), position
        byte = load_u8(position)
        position += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if (index and byte == 0) or value > 0x7FFFFFFF:
                return np.int64(-1), position
            return value, position
    return np.int64(-1), position


@jit
def is_utf8(position: int, count: int) -> bool:  # type: ignore[misc]
    end = position + count
    while end - position >= 8:
        if load_raw64(position) & _HIGH_BITS:
            break
        position += 8
    while position < end:
        first = load_u8(position)
        position += 1
        if first < 0x80:
            continue
        if 0xC2 <= first <= 0xDF:
            more, low, high = 1, 0x80, 0xBF
        elif 0xE0 <= first <= 0xEF:
            # No overlong forms, no surrogates.
            more, low, high = 2, 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
        elif 0xF0 <= first <= 0xF4:
            more, low, high = 3, 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
        else:
            return False
        if end - position < more:
            return False
        for index in range(more):
            byte = load_u8(position + index)
            if byte < (low if index == 0 else 0x80) or byte > (high if index == 0 else 0xBF):
                return False
        position += more
    return True


@jit
def put(slot: int, width: int, value: int, values: Any, count: Any) -> None:  # type: ignore[misc]
    """A number at the end of a column that has room."""
    at = values[slot] + count[slot] * width
    if width == 1:
        store_8(at, value)
    elif width == 2:
        store_16(at, value)
    elif width == 4:
        store_32(at, value)
    elif width == 8:
        store_64(at, value)
    else:
        store_64(at, np.int64(0))
        store_64(at + 8, np.int64(0))
    count[slot] += 1


@jit
def fill(slot: int, kind: Any, width: Any, default: Any, null: Any, values: Any, valid: Any, count: Any, total: Any) -> None:  # type: ignore[misc]
    """The default of a column, once. Its capacity was checked."""
    if valid[slot]:
        store_8(valid[slot] + count[slot], np.int64(0 if null[slot] else 1))
    if kind[slot] == FIXED:
        put(slot, width[slot], default[slot], values, count)
    elif kind[slot] == OFFSETS or kind[slot] == LIST:
        count[slot] += 1
        store_32(values[slot] + count[slot] * 4, total[slot])
    else:
        count[slot] += 1


@jit
def read_batches(p: int, stop: int, slot: int, values: Any, count: Any, room: Any) -> int:  # type: ignore[misc]
    """Batch headers into the columns behind `slot`: bytes of a cut last batch, -1 no record data, -2 no room."""
    first = slot + 4
    while stop - p >= 12:
        size = load_i32(p + 8)
        if size < _MESSAGE_HEADER:
            return np.int64(-1)
        if size > stop - p - 12:
            # A last batch may be cut anywhere, but what is there of it must be a batch.
            return stop - p if stop - p < 17 or 0 <= load_i8(p + 16) <= 2 else np.int64(-1)
        if count[first] >= room[first]:
            return np.int64(-2)
        base = load_i64(p)
        magic = load_i8(p + 16)
        put(first, 8, base, values, count)
        put(first + 2, 4, size + 12, values, count)
        put(first + 4, 1, magic, values, count)
        if magic == 2:
            if size < _BATCH_HEADER - 12:
                return np.int64(-1)
            records = load_i32(p + 57)
            if records < 0:
                return np.int64(-1)
            put(first + 1, 8, base + load_i32(p + 23), values, count)
            put(first + 3, 4, load_i32(p + 12), values, count)
            put(first + 5, 4, load_u32(p + 17), values, count)
            put(first + 6, 2, load_i16(p + 21), values, count)
            put(first + 7, 8, load_i64(p + 27), values, count)
            put(first + 8, 8, load_i64(p + 35), values, count)
            put(first + 9, 8, load_i64(p + 43), values, count)
            put(first + 10, 2, load_i16(p + 51), values, count)
            put(first + 11, 4, load_i32(p + 53), values, count)
            put(first + 12, 4, records, values, count)
        elif magic == 0 or magic == 1:
            attributes = load_i8(p + 17)
            stamp = np.int64(-1)
            if magic == 1:
                if size < _MESSAGE_HEADER + 8:
                    return np.int64(-1)
                stamp = load_i64(p + 18)
            put(first + 1, 8, base, values, count)
            put(first + 3, 4, np.int64(-1), values, count)
            put(first + 5, 4, load_u32(p + 12), values, count)
            put(first + 6, 2, attributes, values, count)
            put(first + 7, 8, stamp, values, count)
            put(first + 8, 8, stamp, values, count)
            put(first + 9, 8, np.int64(-1), values, count)
            put(first + 10, 2, np.int64(-1), values, count)
            put(first + 11, 4, np.int64(-1), values, count)
            # A compressed message does not say how many it holds.
            put(first + 12, 4, np.int64(1 if attributes & 7 == 0 else -1), values, count)
        else:
            return np.int64(-1)
        p += size + 12
    return stop - p


@jit
def run(  # type: ignore[misc]  # noqa: C901
    ops: Any, tags: Any, fills: Any, kind: Any, width: Any, default: Any, null: Any, values: Any, valid: Any,
    data: Any, count: Any, total: Any, room: Any, bytes_room: Any, saved: Any, base: int, offsets: Any,
    first: int, status: Any,
) -> tuple[int, int]:  # fmt: skip
    """(frame to go on with, column that is full): all frames done is (their number, DONE)."""
    loop_left = np.empty(DEPTH, np.int64)
    tag_left = np.empty(DEPTH, np.int64)
    tag_last = np.empty(DEPTH, np.int64)
    tag_seen = np.empty(DEPTH, np.int64)
    tag_stop = np.empty(DEPTH, np.int64)
    tag_op = np.empty(DEPTH, np.int64)
    slots = len(kind)
    for frame in range(first, len(offsets) - 1):
        for slot in range(slots):
            saved[0, slot] = count[slot]
            saved[1, slot] = total[slot]
        p = base + offsets[frame]
        end = base + offsets[frame + 1]
        pc = 0
        loops = 0
        sections = 0
        full = DONE
        good = True
        while True:
            op = ops[pc, 0]
            slot = ops[pc, 1]
            if op == NUMBER:
                size = ops[pc, 2]
                if end - p < size:
                    good = False
                    break
                if count[slot] >= room[slot]:
                    full = slot
                    break
                at = values[slot] + count[slot] * size
                if size == 4:
                    store_32(at, load_i32(p))
                elif size == 8:
                    store_64(at, load_i64(p))
                elif size == 2:
                    store_16(at, load_i16(p))
                else:
                    store_8(at, load_u8(p))
                count[slot] += 1
                p += size
                pc += 1
            elif op == BYTES:
                if ops[pc, 2]:
                    length, p = varint(p, end)
                    length -= 1
                    if length < -1:
                        good = False
                        break
                else:
                    size = ops[pc, 6]
                    if end - p < size:
                        good = False
                        break
                    length = load_i16(p) if size == 2 else load_i32(p)
                    p += size
                if length > end - p or length < -1 or (length == -1 and not ops[pc, 3]):
                    good = False
                    break
                if count[slot] >= room[slot]:
                    full = slot
                    break
                present = length >= 0 and not ops[pc, 5]
                if valid[slot]:
                    store_8(valid[slot] + count[slot], np.int64(1 if present else 0))
                if length > 0 and present:
                    if ops[pc, 4] and (length > MAX_STRING_BYTES or not is_utf8(p, length)):
                        good = False
                        break
                    if total[slot] + length > bytes_room[slot]:
                        full = slot
                        break
                    copy_bytes(data[slot] + total[slot], p, length)
                    total[slot] += length
                elif length > MAX_STRING_BYTES and ops[pc, 4]:
                    good = False
                    break
                count[slot] += 1
                store_32(values[slot] + count[slot] * 4, total[slot])
                p += max(length, 0)
                pc += 1
            elif op == NEXT:
                loop_left[loops] -= 1
                if loop_left[loops]:
                    pc = slot
                else:
                    loops -= 1
                    pc += 1
            elif op == ARRAY or op == NUMBERS:
                if ops[pc, 2]:
                    length, p = varint(p, end)
                    length -= 1
                    if length < -1:
                        good = False
                        break
                else:
                    if end - p < 4:
                        good = False
                        break
                    length = load_i32(p)
                    p += 4
                if length < -1 or (length == -1 and not ops[pc, 3]):
                    good = False
                    break
                if count[slot] >= room[slot]:
                    full = slot
                    break
                if valid[slot]:
                    store_8(valid[slot] + count[slot], np.int64(1 if length >= 0 else 0))
                length = max(length, 0)
                least = ops[pc, 5]
                if length * least > end - p:
                    good = False
                    break
                total[slot] += length
                count[slot] += 1
                store_32(values[slot] + count[slot] * 4, total[slot])
                if op == NUMBERS:
                    inner = ops[pc, 4]
                    if count[inner] + length > room[inner]:
                        full = inner
                        break
                    at = values[inner] + count[inner] * least
                    if least == 4:
                        for index in range(length):
                            store_32(at + 4 * index, load_i32(p + 4 * index))
                    elif least == 1:
                        copy_bytes(at, p, length)
                    elif least == 8:
                        for index in range(length):
                            store_64(at + 8 * index, load_i64(p + 8 * index))
                    else:
                        for index in range(length):
                            store_16(at + 2 * index, load_i16(p + 2 * index))
                    count[inner] += length
                    p += length * least
                    pc += 1
                elif length == 0:
                    pc = ops[pc, 4]
                else:
                    loops += 1
                    loop_left[loops] = length
                    pc += 1
            elif op == NO_TAGS:
                if p >= end or load_u8(p) != 0:
                    good = False
                    break
                p += 1
                pc += 1
            elif op == BOOL:
                if p >= end or load_u8(p) > 1:
                    good = False
                    break
                if count[slot] >= room[slot]:
                    full = slot
                    break
                store_8(values[slot] + count[slot], load_u8(p))
                count[slot] += 1
                p += 1
                pc += 1
            elif op == UUID:
                if end - p < 16:
                    good = False
                    break
                if count[slot] >= room[slot]:
                    full = slot
                    break
                copy_bytes(values[slot] + count[slot] * 16, p, 16)
                count[slot] += 1
                p += 16
                pc += 1
            elif op == PRESENT:
                if p >= end:
                    good = False
                    break
                present = load_u8(p)
                absent = 0 if ops[pc, 5] else 0xFF
                p += 1
                if count[slot] >= room[slot]:
                    full = slot
                    break
                store_8(valid[slot] + count[slot], np.int64(1 if present == 1 else 0))
                if present == 1:
                    count[slot] += 1
                    pc += 1
                elif present == absent:
                    count[slot] += 1
                    for index in range(ops[pc, 3], ops[pc, 4]):
                        inner = fills[index]
                        if count[inner] >= room[inner]:
                            full = inner
                            break
                        fill(inner, kind, width, default, null, values, valid, count, total)
                    if full >= 0:
                        break
                    pc = ops[pc, 2]
                else:
                    good = False
                    break
            elif op == TAGS:
                if p >= end:
                    good = False
                    break
                number = load_u8(p)
                p += 1
                if number > 127:
                    good = False
                    break
                sections += 1
                tag_left[sections] = number
                tag_last[sections] = -1
                tag_seen[sections] = 0
                tag_stop[sections] = p
                tag_op[sections] = pc
                op = TAG_END
            elif op == RECORDS:
                if ops[pc, 2]:
                    length, p = varint(p, end)
                    length -= 1
                else:
                    if end - p < 4:
                        good = False
                        break
                    length = load_i32(p)
                    p += 4
                if length < -1 or length > end - p or (length == -1 and not ops[pc, 3]):
                    good = False
                    break
                for inner in range(slot, slot + 4):
                    if count[inner] >= room[inner]:
                        full = inner
                if full >= 0:
                    break
                if valid[slot]:
                    store_8(valid[slot] + count[slot], np.int64(1 if length >= 0 else 0))
                count[slot] += 1
                left = np.int64(0)
                if length > 0:
                    left = read_batches(p, p + length, slot, values, count, room)
                    if left == -2:
                        full = slot + 4
                        break
                    if left < 0:
                        good = False
                        break
                    p += length
                put(slot + 1, 4, max(length, 0), values, count)
                put(slot + 2, 4, left, values, count)
                count[slot + 3] += 1
                total[slot + 3] = count[slot + 4]
                store_32(values[slot + 3] + count[slot + 3] * 4, total[slot + 3])
                pc += 1
            elif op == END:
                if p != end:
                    good = False
                break
            if op == TAG_END:
                # Either a section has just begun, or the content of one of its tags has ended.
                if p != tag_stop[sections]:
                    good = False
                    break
                section = tag_op[sections]
                if tag_left[sections] == 0:
                    for index in range(ops[section, 2]):
                        row = ops[section, 1] + index
                        if tag_seen[sections] >> index & 1:
                            continue
                        for at in range(tags[row, 2], tags[row, 3]):
                            inner = fills[at]
                            if count[inner] >= room[inner]:
                                full = inner
                                break
                            fill(inner, kind, width, default, null, values, valid, count, total)
                        if full >= 0:
                            break
                    if full >= 0:
                        break
                    sections -= 1
                    pc = ops[section, 3]
                    continue
                tag_left[sections] -= 1
                number, p = varint(p, end)
                size, p = varint(p, end)
                if number <= tag_last[sections] or size < 0 or size > end - p:
                    good = False
                    break
                tag_last[sections] = number
                tag_stop[sections] = p + size
                found = -1
                for index in range(ops[section, 2]):
                    if tags[ops[section, 1] + index, 0] == number:
                        found = index
                if found < 0:
                    good = False
                    break
                tag_seen[sections] |= 1 << found
                pc = tags[ops[section, 1] + found, 1]
        if full >= 0 or not good:
            for slot in range(slots):
                count[slot] = saved[0, slot]
                total[slot] = saved[1, slot]
            if full >= 0:
                return frame, full
            status[frame] = 1
    return len(offsets) - 1, DONE
