"""Defines the parts of a program: operations and their words, the slots of its columns, the program itself."""

from dataclasses import dataclass

from kafkascope.columnar.tables import Column

# Operations, and the words after the first. `size` is that of a length: 2 or 4 bytes, 0 for compact.
(
    END,
    NOTHING,  # exists for its run
    UUID,  # values
    TEXT,  # offsets, valid, data, size, nullable
    BLOB,  # offsets, valid, data, size, nullable
    HIDDEN,  # offsets, valid, longest, size, nullable
    ARRAY,  # offsets, valid, size, nullable, least bytes per element, operation after it
    NEXT,  # first operation of the element, whether an empty tag section ends it; has no run
    RUNS,  # offsets, valid, size, nullable, bytes per element, pieces, their number: elements that are runs
    INTS,  # offsets, valid, size, nullable, 4, values: the same for int32 only
    SMALL_INTS,  # offsets, valid, values, size, nullable: for int8 only, with the layout of BLOB
    PRESENT,  # valid, the byte for null, operation after it, fills, their number
    TAGS,  # operation after it, fills, their number, tags, their number, place, a bare TAG_END
    TAG_END,
    RECORDS,  # columns, size, nullable
    TRY_RUNS,  # offsets, operation after it, size, valid, bytes per element, pieces, their number: RUNS without tags
) = range(16)
# An operation is preceded by its run, adjacent fields of fixed size: their number, bytes, pieces.
RUN_AT = 8
OPERATION = RUN_AT + 3

# A tag of a section: number, first operation, fills, their number.
TAG = 4

# Words on the stack: an array saves its place, a tag section its place and the tags it has seen.
ARRAY_DEPTH, SECTION_DEPTH = 2, 5

# The contents of a column's buffers; see `buffers`.
FIXED, OFFSETS, LIST, STRUCT = range(4)
VALUES, VALID, DATA = range(3)

TOP = 0


@dataclass(slots=True)
class Slot:
    """One column of the buffers. All slots of a group have the same number of rows."""

    kind: int
    group: int
    width: int = 4  # bytes per value; offsets are int32
    nullable: bool = False
    data: bool = False  # if bytes of strings are stored
    child: int = -1  # the group of a list's elements
    default: int = 0
    null_default: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A column of the table that this version has, and its slot. A struct that is always present has none."""

    column: Column
    group: int
    slot: int = -1
    element: "Node | None" = None
    children: tuple["Node", ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """The word at `at` is the address of a slot's buffer (VALUES, VALID, DATA)."""

    at: int
    slot: int
    buffer: int


# The first slots, in a group of their own. For an unknown tag: the frame's row, number, size, place, and after them an
# index for each array around it.
UNKNOWN_GROUP = 1
UNKNOWN_ROW, UNKNOWN_TAG, UNKNOWN_SIZE, UNKNOWN_PLACE, UNKNOWN_INDEX = range(5)
# In the place of a slot: the counter of unknown tags.
COUNT = -1


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """`jumps` are (place, index of the word whose address it is). `least` has the fewest bytes on the wire that a row
    of each group takes; it isn't used for the frames themselves. `open_at` is where the second program begins, 0 if
    there is none. `places` are paths of tag sections, in pieces: an index goes between two."""

    name: str
    words: tuple[int, ...]
    links: tuple[Link, ...]
    jumps: tuple[tuple[int, int], ...]
    slots: tuple[Slot, ...]
    least: tuple[int, ...]
    depth: int
    nodes: tuple[Node, ...]
    open_at: int
    places: tuple[tuple[str, ...], ...]
    longest_run: int
    has_records: bool
