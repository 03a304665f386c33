"""Estimates the memory that a message's values take as Python objects, and limits it. The decoders charge each object
before they create the next, so that no frame takes more than this allows."""

import sys

from kafkascope import limits
from kafkascope.schema.layouts.layout import LayoutField

# In CPython on 64 bits, rounded up to its allocator's sizes. -5 to 256, "" and b"" always exist and are shared.
NUMBER_COST = 32
FLOAT_COST = 32
UUID_COST = 112
LIST_COST = 64
SLOT_COST = 8
# In addition to the characters and bytes themselves: a character takes four bytes if any isn't ASCII.
STRING_COST, WIDE_LETTER_COST = 64, 4
BYTES_COST = 48
UNKNOWN_TAG_COST = sys.getsizeof({"tag": 0, "data": b""}) + SLOT_COST + NUMBER_COST + BYTES_COST
CACHED_INTS = range(-5, 257)


def allowance(size: int) -> int:
    """The limit for the values of a message of `size` bytes."""
    return min(limits.MAX_VALUE_BYTES, limits.FREE_VALUE_BYTES + limits.MAX_VALUE_RATIO * size)


def cost_of(fields: tuple[LayoutField, ...]) -> int:
    """A struct's dict, and the defaults of its missing tagged fields."""
    extra = sum(_default_cost(field) for field in fields if field.tag is not None)
    return sys.getsizeof(dict.fromkeys(field.name for field in fields)) + extra


def _default_cost(field: LayoutField) -> int:
    value = field.default_value()
    if isinstance(value, dict):
        return cost_of(field.fields) + sum(_default_cost(child) for child in field.fields if child.tag is None)
    return LIST_COST if isinstance(value, list) else 0
