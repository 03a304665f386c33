"""Reads what each method of a compiled Java class does, as far as a reader of handlers needs it.

Read directly (JVM specification, chapters 4 and 6), as no JDK is needed for it and one release takes under a second.
"""

import re
import struct
from collections.abc import Iterator
from itertools import pairwise

Method = tuple[str, str, str]  # class, name, descriptor

# what an instruction does, and to what:
#   static, compared   reads a static field, to use it or only to look at it
#   new, caught        makes an object, asks whether something is of a class
#   call, lambda       calls a method, makes a function of one
#   text               a string constant (in the place of the name)
#   handles            a class of exceptions that a catch clause of this method names; these come first
Step = tuple[str, Method]


class ClassFile:
    """One class: its name, its superclass and the steps of its methods (JVM specification, chapter 4)."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pool: list[tuple[int, int, int]] = [(0, 0, 0)]
        at = 10
        count = struct.unpack_from(">H", data, 8)[0]
        while len(self.pool) < count:
            tag = data[at]
            if tag == 1:
                size = struct.unpack_from(">H", data, at + 1)[0]
                self.pool.append((tag, at + 3, size))
                at += 3 + size
                continue
            width = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 15: 3, 16: 2, 19: 2, 20: 2}.get(tag, 4)
            operands = {2: ">H", 3: ">BH", 4: ">HH", 8: ">HH"}[width]
            values = struct.unpack_from(operands, data, at + 1)
            self.pool.append((tag, values[0], values[1] if len(values) > 1 else 0))
            if tag in (5, 6):  # a long or a double takes two places
                self.pool.append((0, 0, 0))
            at += 1 + width
        self.name, self.parent = (self.text(i) for i in struct.unpack_from(">HH", data, at + 2))
        interfaces = struct.unpack_from(">H", data, at + 6)[0]
        at = self._members(at + 8 + 2 * interfaces)[1]
        methods, at = self._members(at)
        self.bootstraps = self._bootstraps(self._attributes(at)[0].get("BootstrapMethods"))
        self.methods = {(name, kind): self._steps(code["Code"]) for name, kind, code in methods if "Code" in code}

    def text(self, index: int) -> str:
        """The string that a Utf8, Class or String constant is."""
        tag, a, b = self.pool[index]
        return self.data[a : a + b].decode("utf-8", "replace") if tag == 1 else self.text(a) if tag in (7, 8) else ""

    def member(self, index: int) -> Method:
        owner, pair = self.pool[index][1:]
        return (self.text(owner), *self.named(pair))

    def named(self, index: int) -> tuple[str, str]:
        name, kind = self.pool[index][1:]
        return self.text(name), self.text(kind)

    def _members(self, at: int) -> tuple[list[tuple[str, str, dict[str, int]]], int]:
        members = []
        count = struct.unpack_from(">H", self.data, at)[0]
        at += 2
        for _ in range(count):
            _, name, kind = struct.unpack_from(">HHH", self.data, at)
            attributes, at = self._attributes(at + 6)
            members.append((self.text(name), self.text(kind), attributes))
        return members, at

    def _attributes(self, at: int) -> tuple[dict[str, int], int]:
        offsets = {}
        count = struct.unpack_from(">H", self.data, at)[0]
        at += 2
        for _ in range(count):
            name, size = struct.unpack_from(">HI", self.data, at)
            offsets[self.text(name)] = at + 6
            at += 6 + size
        return offsets, at

    def _bootstraps(self, at: int | None) -> list[list[Method]]:
        """The methods that each invokedynamic may end in: for a lambda its body, for X::new the constructor."""
        bootstraps: list[list[Method]] = []
        if at is None:
            return bootstraps
        count = struct.unpack_from(">H", self.data, at)[0]
        at += 2
        for _ in range(count):
            size = struct.unpack_from(">H", self.data, at + 2)[0]
            arguments = struct.unpack_from(f">{size}H", self.data, at + 4)
            bootstraps.append([self.member(self.pool[i][2]) for i in arguments if self.pool[i][0] == 15])
            at += 4 + 2 * size
        return bootstraps

    def _steps(self, at: int) -> list[Step]:
        steps: list[Step] = []
        size = struct.unpack_from(">I", self.data, at + 4)[0]
        code = list(_instructions(self.data[at + 8 : at + 8 + size]))
        steps += [("handles", (kind, "", "")) for kind in self._handled(at + 8 + size, code)]
        for place, (_, op, index) in enumerate(code):
            if op == 0xB2:
                after = bytes(following for _, following, _ in code[place + 1 : place + 4])
                steps.append(("compared" if _COMPARISON.match(after) else "static", self.member(index)))
            elif op == 0xC1:
                steps.append(("caught", (self.text(index), "", "")))
            elif op == 0xBB:
                steps.append(("new", (self.text(index), "", "")))
            elif op == 0xBA:
                steps += [("lambda", target) for target in self.bootstraps[self.pool[index][1]]]
            elif 0xB6 <= op <= 0xB9:
                steps.append(("call", self.member(index)))
            elif op in (0x12, 0x13) and self.pool[index][0] == 8:
                steps.append(("text", ("", self.text(index), "")))
        return steps

    def _handled(self, table: int, code: list[tuple[int, int, int]]) -> Iterator[str]:
        """The classes of exceptions that are caught and not thrown on as they are."""
        stored = {at: _slot(op, index, 0x3A, 0x4B) for at, op, index in code}
        thrown = {_slot(op, index, 0x19, 0x2A) for (_, op, index), (_, after, _) in pairwise(code) if after == 0xBF}
        for entry in range(struct.unpack_from(">H", self.data, table)[0]):
            handler, kind = struct.unpack_from(">HH", self.data, table + 6 + 8 * entry)
            if kind and (stored[handler] is None or stored[handler] not in thrown):
                yield self.text(kind)


def _slot(op: int, index: int, wide: int, first: int) -> int | None:
    """The local variable of a load or store, which has one opcode with an operand and four without."""
    return index if op == wide else op - first if first <= op < first + 4 else None


# what follows a value that is only looked at: Java's == on it or on its code, Scala's == and its match
_COMPARISON = re.compile(rb"[\xa5\xa6]|\xb6[\x9f-\xa4]|[\x3a\x4b-\x4e]?\x59\xc7|[\x19\x2a-\x2d]\xb6\x99")

# bytes after each opcode; what is not named here has none
WIDTHS = {
    **dict.fromkeys([0x10, 0x12, *range(0x15, 0x1A), *range(0x36, 0x3B), 0xA9, 0xBC], 1),
    **dict.fromkeys(
        [0x11, 0x13, 0x14, 0x84, *range(0x99, 0xA9), *range(0xB2, 0xB9), 0xBB, 0xBD, 0xC0, 0xC1, 0xC6, 0xC7], 2
    ),
    **dict.fromkeys([0xB9, 0xBA, 0xC8, 0xC9], 4),
    0xC5: 3,
}


def _instructions(code: bytes) -> Iterator[tuple[int, int, int]]:
    """Place, opcode and the constant or variable it names; switches are skipped over."""
    at = 0
    while at < len(code):
        op = code[at]
        if op == 0xC4:  # wide
            at += 6 if code[at + 1] == 0x84 else 4
        elif op in (0xAA, 0xAB):
            start = at + 4 - at % 4
            low, high = struct.unpack_from(">ii", code, start + 4)
            at = start + (12 + 4 * (high - low + 1) if op == 0xAA else 8 + 8 * low)
        else:
            width = WIDTHS.get(op, 0)
            yield at, op, int.from_bytes(code[at + 1 : at + 1 + min(width, 2)], "big")
            at += 1 + width
