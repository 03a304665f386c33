"""Compiles a message and version to a flat program for the scan kernel. It covers the whole layout, so that the scan
accepts the bodies that the codec decodes, and marks the few fields that `exchanges` needs."""

from enum import IntEnum
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from kafkascope.capture.frames.headers import MOST_KEYS, MOST_VERSIONS
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import FIXED_SIZES, LayoutField, layout


class ScanOp(IntEnum):
    """Operations of the program, each with the words that follow it."""

    END = 0
    SKIP = 1  # bytes
    NUMBER = 2  # fact, size
    BYTES = 3  # name kind or -1, compact, nullable, is string
    UUID = 4  # name kind
    ARRAY = 5  # compact, nullable, the operation after it, least size of an element
    FIXED_ARRAY = 6  # compact, nullable, size of an element
    NEXT = 7  # first operation of the element
    PRESENT = 8  # the operation after the struct, is tagged
    TAGS = 9  # first tag row, number of tags, the operation after the section
    TAG_END = 10


PROGRAM_WIDTH = 5


class Fact(IntEnum):
    """Numbers that a scan returns."""

    ERROR = 0
    THROTTLE = 1
    MAX_WAIT = 2
    SESSION = 3  # id of the fetch session that the request names
    SESSION_EPOCH = 4
    NEW_SESSION = 5  # id that the response assigns
    TOPICS = 6  # how many the request names
    CONTENT = 7  # bytes of records, and of whatever else isn't text
    KEY_TYPE = 8  # the type of coordinator that is looked up; 0 is a group
    GROUP_AT = 9  # the one group that the exchange is about: its place in the content, and its size
    GROUP_SIZE = 10
    MEMBER_AT = 11  # and the one member
    MEMBER_SIZE = 12


class NameKind(IntEnum):
    """Names that the scan can mark. A group or member is also NOTED if the exchange may be about it: a response that
    lists many doesn't say who sent the request. It's the message's OWN unless it's in an array."""

    GROUP = 0
    MEMBER = 1
    TOPIC = 2
    TOPIC_ID = 3


NOTED, OWN = 8, 16

REQUEST, RESPONSE = 0, 1
NOT_COMPILED, NO_PROGRAM = -2, -1


_Arrays = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


class ScanPrograms:
    """The programs of all messages so far in one array; `entry[direction, key, version]` is where one starts.

    A new instance begins with the programs that earlier ones compiled. Shared arrays are never written to again, so
    that a kernel can use them in one thread while another thread compiles."""

    _latest: ClassVar[_Arrays] = (
        np.full((2, MOST_KEYS, MOST_VERSIONS), NOT_COMPILED, dtype=np.int64),
        np.zeros((0, PROGRAM_WIDTH), dtype=np.int64),
        np.zeros((1, 2), dtype=np.int64),
    )

    def __init__(self) -> None:
        self.entry, self.operations, self.tags = ScanPrograms._latest

    def need(self, keys: npt.NDArray[np.int64], versions: npt.NDArray[np.int64]) -> None:
        """Compiles the programs that are missing, for both directions."""
        inside = (keys >= 0) & (keys < MOST_KEYS) & (versions >= 0) & (versions < MOST_VERSIONS)
        codes = np.unique(keys[inside] * MOST_VERSIONS + versions[inside])
        if not self._without(codes):
            return
        if len(ScanPrograms._latest[1]) > len(self.operations):
            self.entry, self.operations, self.tags = ScanPrograms._latest
        missing = self._without(codes)
        if missing:
            self.entry = self.entry.copy()
            for code in missing:
                key, version = divmod(code, MOST_VERSIONS)
                for direction in (REQUEST, RESPONSE):
                    self.entry[direction, key, version] = self._compile(direction, key, version)
            ScanPrograms._latest = self.entry, self.operations, self.tags

    def _without(self, codes: npt.NDArray[np.int64]) -> list[int]:
        """Codes of messages without a program. Both directions are compiled together, so checking one is enough."""
        missing: list[int] = codes[self.entry[REQUEST].ravel()[codes] == NOT_COMPILED].tolist()
        return missing

    def _compile(self, direction: int, key: int, version: int) -> int:
        api = apis().get(key)
        name = f"{api}{'Response' if direction else 'Request'}"
        if api is None or not message(name).releases_of(version):
            return NO_PROGRAM
        fields = layout(name, version)
        start = len(self.operations)
        build = _Build(name, fields.flexible, start, len(self.tags))
        build.struct(fields.fields, 0)
        build.add(ScanOp.END)
        self.operations = np.concatenate([self.operations, np.array(build.rows, dtype=np.int64)])
        if build.tags:
            self.tags = np.concatenate([self.tags, np.array(build.tags, dtype=np.int64)])
        return start


class _Build:
    def __init__(self, message_name: str, flexible: bool, start: int, first_tag: int) -> None:
        self.message = message_name
        self.flexible = flexible
        self.start = start
        self.first_tag = first_tag
        self.rows: list[list[int]] = []
        self.tags: list[list[int]] = []
        self.target = 0  # a jump leads here: the SKIP before it must not grow

    def here(self) -> int:
        self.target = len(self.rows)
        return self.start + len(self.rows)

    def add(self, code: int, *rest: int) -> int:
        self.rows.append([code, *rest, *([0] * (PROGRAM_WIDTH - 1 - len(rest)))])
        return len(self.rows) - 1

    def skip(self, size: int) -> None:
        if len(self.rows) > self.target and self.rows[-1][0] == ScanOp.SKIP:
            self.rows[-1][1] += size
        else:
            self.add(ScanOp.SKIP, size)

    def struct(self, fields: tuple[LayoutField, ...], depth: int) -> None:
        for field in fields:
            if field.tag is None:
                self.field(field, depth)
        if self.flexible:
            self.tag_section([field for field in fields if field.tag is not None], depth)

    def tag_section(self, tagged: list[LayoutField], depth: int) -> None:
        operation = self.add(ScanOp.TAGS)
        rows = []
        for field in tagged:
            rows.append([field.tag or 0, self.here()])
            self.field(field, depth)
            self.add(ScanOp.TAG_END)
        self.rows[operation][1:4] = [self.first_tag + len(self.tags), len(rows), self.here()]
        self.tags += rows

    def field(self, field: LayoutField, depth: int) -> None:
        if not field.array:
            self.element(field, field.nullable, depth)
            return
        if field.type in FIXED_SIZES and self.name_kind(field) < 0:
            self.add(ScanOp.FIXED_ARRAY, field.compact, field.nullable, FIXED_SIZES[field.type])
            return
        operation = self.add(ScanOp.ARRAY, field.compact, field.nullable, 0, field.element_minimum)
        first = self.here()
        self.element(field, False, depth + 1)
        self.add(ScanOp.NEXT, first)
        self.rows[operation][3] = self.here()

    def element(self, field: LayoutField, nullable: bool, depth: int) -> None:
        if field.type == "struct":
            operation = self.add(ScanOp.PRESENT, 0, field.tag is not None) if nullable else -1
            self.struct(field.fields, depth + 1)
            if nullable:
                self.rows[operation][1] = self.here()
        elif field.type in ("string", "bytes", "records"):
            kind = self.name_kind(field)
            if kind in (NameKind.GROUP, NameKind.MEMBER):
                kind += note_of(self.message, depth)
            self.add(ScanOp.BYTES, kind, field.compact, nullable, field.type == "string")
        elif field.type == "uuid" and self.name_kind(field) >= 0:
            self.add(ScanOp.UUID, self.name_kind(field))
        elif (fact := self.fact(field, depth)) is not None:
            self.add(ScanOp.NUMBER, fact, FIXED_SIZES[field.type])
        else:
            self.skip(FIXED_SIZES[field.type])

    def fact(self, field: LayoutField, depth: int) -> int | None:
        return fact_of(self.message, field, depth)

    def name_kind(self, field: LayoutField) -> int:
        return name_kind_of(self.message, field)


def fact_of(message_name: str, field: LayoutField, depth: int) -> int | None:
    """The fact that a field holds, if any."""
    name = field.source.name
    if message_name.endswith("Response"):
        if field.type == "int16" and name.endswith("ErrorCode"):
            return Fact.ERROR
        if depth:
            return None
        return Fact.THROTTLE if name == "ThrottleTimeMs" else Fact.NEW_SESSION if name == "SessionId" else None
    if depth:
        return None
    if name in ("MaxWaitMs", "RebalanceTimeoutMs") or (
        message_name == "JoinGroupRequest" and name == "SessionTimeoutMs"
    ):
        # A JoinGroup of v0 waits for the session timeout; later ones have a rebalance timeout after it.
        return Fact.MAX_WAIT
    if name == "SessionId":
        return Fact.SESSION
    if name == "KeyType":
        return Fact.KEY_TYPE
    return Fact.SESSION_EPOCH if name in ("SessionEpoch", "ShareSessionEpoch") else None


def note_of(message_name: str, depth: int) -> int:
    """NOTED and OWN, or 0, for a group or member at that depth."""
    if depth == 0:
        return NOTED + OWN
    return NOTED if message_name.endswith("Request") else 0


def name_kind_of(message_name: str, field: LayoutField) -> int:
    """GROUP, MEMBER, TOPIC, TOPIC_ID or -1."""
    source = field.source
    if field.type == "uuid":
        return NameKind.TOPIC_ID if source.name == "TopicId" else -1
    if field.type != "string":
        return -1
    if source.entity == "groupId" or (
        message_name.startswith("FindCoordinator") and source.name.endswith(("Key", "Keys"))
    ):
        return NameKind.GROUP
    if source.entity == "topicName":
        return NameKind.TOPIC
    return NameKind.MEMBER if source.name == "MemberId" else -1
