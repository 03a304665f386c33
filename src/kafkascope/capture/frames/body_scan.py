"""Scans bodies, in a kernel, for the few numbers of `exchanges` (first error, throttle time, longest wait) and the
places of names. A body that isn't in the one form Kafka writes is left to the careful codec."""

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.checked import differing_bytes, read_i16, read_i32
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.frames.headers import varint
from kafkascope.capture.frames.scan_program import NOTED, OWN, Fact, NameKind, ScanOp
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_STRING_BYTES

# Nested arrays and tags; the deepest message of the catalog has six.
DEPTH = 32


class ScanResult(IntEnum):
    """How a scan ended. A body that is cut ends inside a field: the careful codec can't read it either."""

    READ = 0
    NOT_PLAIN = 1
    NO_SPACE = 2
    CUT = 3


# A name: which exchange, which kind, its place in the content, size.
NAME_WIDTH = 4
# If a group or member is the one that the exchange is about. Within a message: an element of an array, several of them,
# the message's own. After the message, plus SETTLED: it's the one, or there isn't one.
LISTED, SEVERAL, THE_ONE, NOT_ONE = 1, 2, 3, 4
SETTLED = 2
# For `keep` of `scan`. With a literal False the kernel would be compiled once more, for that value alone.
KEEP_NONE = np.bool_(False)


def make_stack() -> npt.NDArray[np.int64]:
    return np.empty((5, DEPTH), np.int64)


@jit
def note_name(
    facts: Any, seen: Any, fact: Number, own: bool, data: Any, before: Number, place: Number, size: Number
) -> None:
    """Notes a group or member, and whether it's the one that the exchange is about."""
    if seen[fact] >= THE_ONE:
        return
    if own or seen[fact] == 0:
        facts[fact] = before + place
        facts[fact + 1] = size
        seen[fact] = THE_ONE if own else LISTED
        seen[fact + 1] = 1
    elif seen[fact] == LISTED:
        first = facts[fact] - before
        if size != facts[fact + 1] or differing_bytes(data, first, data, place, size):
            seen[fact] = SEVERAL


@jit
def scan(
    operations: Any, tags: Any, first: Number, data: Any, before: Number, position: Number, end: Number, facts: Any,
    seen: Any, body: Number, names: Any, named: Number, keep: bool, stack: Any,
) -> Numbers:  # fmt: skip
    """(READ, NOT_PLAIN, CUT or NO_SPACE in `names`, names so far). The body is in `data`, which has `before` bytes of
    the content before it. `facts` and `seen` are one exchange's; `stack` is room to work in, as `make_stack` gives
    it."""
    loop_left = stack[0]
    tag_left = stack[1]
    tag_last = stack[2]
    tag_stop = stack[3]
    tag_from = stack[4]
    loops = 0
    sections = 0
    pc = first
    p = position
    # Names of the message before this one; its bytes may be elsewhere.
    for fact in (Fact.GROUP_AT, Fact.MEMBER_AT):
        if seen[fact] in (LISTED, SEVERAL):
            seen[fact] += SETTLED
    while True:
        code = operations[pc, 0]
        if code == ScanOp.SKIP:
            p += operations[pc, 1]
            if p > end:
                return ScanResult.CUT, named
            pc += 1
        elif code == ScanOp.NUMBER:
            size = operations[pc, 2]
            if end - p < size:
                return ScanResult.CUT, named
            fact = operations[pc, 1]
            value = read_i32(data, p) if size == 4 else read_i16(data, p) if size == 2 else np.int64(data[p])
            if fact != Fact.ERROR or facts[Fact.ERROR] == 0:
                facts[fact] = value
            seen[fact] = 1
            p += size
            pc += 1
        elif code == ScanOp.BYTES:
            if operations[pc, 2]:
                length, p = varint(data, p, end)
                length -= 1
                if length < -1:
                    return ScanResult.NOT_PLAIN, named
            else:
                size = 2 if operations[pc, 4] else 4
                if end - p < size:
                    return ScanResult.CUT, named
                length = read_i16(data, p) if size == 2 else read_i32(data, p)
                p += size
            if length < -1 or (length == -1 and not operations[pc, 3]):
                return ScanResult.NOT_PLAIN, named
            if length > end - p:
                return ScanResult.CUT, named
            if operations[pc, 4] and length > MAX_STRING_BYTES:
                return ScanResult.NOT_PLAIN, named
            if not operations[pc, 4]:
                facts[Fact.CONTENT] += max(length, 0)
            kind = operations[pc, 1]
            if kind >= 0 and length > 0:
                if kind == NameKind.TOPIC:
                    facts[Fact.TOPICS] += 1
                elif kind >= NOTED:
                    own = kind >= OWN
                    kind &= NOTED - 1
                    note_name(facts, seen, Fact.GROUP_AT + 2 * kind, own, data, before, p, length)
                if keep:
                    if named >= len(names):
                        return ScanResult.NO_SPACE, named
                    names[named, 0] = body
                    names[named, 1] = kind
                    names[named, 2] = before + p
                    names[named, 3] = length
                    named += 1
            p += max(length, 0)
            pc += 1
        elif code == ScanOp.NEXT:
            loop_left[loops] -= 1
            if loop_left[loops]:
                pc = operations[pc, 1]
            else:
                loops -= 1
                pc += 1
        elif code in (ScanOp.ARRAY, ScanOp.FIXED_ARRAY):
            if operations[pc, 1]:
                length, p = varint(data, p, end)
                length -= 1
                if length < -1:
                    return ScanResult.NOT_PLAIN, named
            else:
                if end - p < 4:
                    return ScanResult.CUT, named
                length = read_i32(data, p)
                p += 4
            if length < -1 or (length == -1 and not operations[pc, 2]):
                return ScanResult.NOT_PLAIN, named
            length = max(length, 0)
            if code == ScanOp.FIXED_ARRAY:
                if length * operations[pc, 3] > end - p:
                    return ScanResult.CUT, named
                p += length * operations[pc, 3]
                pc += 1
            elif length == 0:
                pc = operations[pc, 3]
            else:
                if length * operations[pc, 4] > end - p:
                    return ScanResult.CUT, named
                if loops + 1 >= DEPTH:
                    return ScanResult.NOT_PLAIN, named
                loops += 1
                loop_left[loops] = length
                pc += 1
        elif code == ScanOp.UUID:
            if end - p < 16:
                return ScanResult.CUT, named
            facts[Fact.TOPICS] += 1
            if keep:
                if named >= len(names):
                    return ScanResult.NO_SPACE, named
                names[named, 0] = body
                names[named, 1] = NameKind.TOPIC_ID
                names[named, 2] = before + p
                names[named, 3] = 16
                named += 1
            p += 16
            pc += 1
        elif code == ScanOp.PRESENT:
            if p >= end:
                return ScanResult.CUT, named
            present = data[p]
            p += 1
            if present == 1:
                pc += 1
            elif present == (0 if operations[pc, 2] else 0xFF):
                pc = operations[pc, 1]
            else:
                return ScanResult.NOT_PLAIN, named
        elif code == ScanOp.TAGS:
            number, p = varint(data, p, end)
            if number < 0 or sections + 1 >= DEPTH:
                return ScanResult.NOT_PLAIN, named
            sections += 1
            tag_left[sections] = number
            tag_last[sections] = -1
            tag_stop[sections] = p
            tag_from[sections] = pc
            code = ScanOp.TAG_END
        elif code == ScanOp.END:
            return (ScanResult.READ if p == end else ScanResult.NOT_PLAIN), named
        if code == ScanOp.TAG_END:
            # Either a section has just begun, or the content of a tag has ended.
            section = tag_from[sections]
            while True:
                if p != tag_stop[sections]:
                    return ScanResult.NOT_PLAIN, named
                if tag_left[sections] == 0:
                    sections -= 1
                    pc = operations[section, 3]
                    break
                tag_left[sections] -= 1
                number, p = varint(data, p, end)
                size, p = varint(data, p, end)
                if number <= tag_last[sections] or size < 0 or size > end - p:
                    return ScanResult.NOT_PLAIN, named
                tag_last[sections] = number
                tag_stop[sections] = p + size
                known = np.int64(-1)
                for index in range(operations[section, 2]):
                    if tags[operations[section, 1] + index, 0] == number:
                        known = tags[operations[section, 1] + index, 1]
                if known >= 0:
                    pc = known
                    break
                p += size
