"""What no decoder to Python values can beat: copying the bytes, and making the objects of the value."""

import marshal
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from bench.messages import Case


def copy_bytes(case: Case) -> Callable[[], Any]:
    return partial(bytes, memoryview(case.data))


def make_objects(case: Case) -> Callable[[], Any]:
    """CPython's own reader, in C: dicts, lists, numbers and strings of this value, with no thought about Kafka.

    A uuid counts as its 16 bytes: marshal has none.
    """
    return partial(marshal.loads, marshal.dumps(_plain(case.value)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.bytes if isinstance(value, UUID) else value
