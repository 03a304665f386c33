"""kio, called as it is fastest: its native reader, made once a class, on plain bytes; its writer into a BytesIO."""

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from io import BytesIO
from typing import Any

from bench.messages import Case
from kafkascope.schema.layouts.layout import ZERO_UUID

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Peer:
    decode: Callable[[], Any]
    encode: Callable[[], bytes]


def peer(case: Case) -> Peer:
    """Both directions of one message; AssertionError if kio's values or bytes are not ours."""
    from kio.serial import entity_reader, entity_writer

    api, kind = re.fullmatch(r"(.*)(Request|Response)", case.name).groups()  # type: ignore[union-attr]
    folder = re.sub(r"(?<!^)(?=[A-Z])", "_", api).lower()
    type_ = getattr(import_module(f"kio.schema.{folder}.v{case.version}.{kind.lower()}"), case.name)
    reader, writer = entity_reader(type_), entity_writer(type_)

    def encode(entity: Any) -> bytes:
        buffer = BytesIO()
        writer(buffer, entity)
        return buffer.getvalue()

    entity, size = reader(case.data, 0)
    assert size == len(case.data), f"{case.label}: kio reads {size} of {len(case.data)} bytes"
    assert encode(entity) == case.data, f"{case.label}: kio writes other bytes"
    assert _same(entity, case.value), f"{case.label}: kio reads other values"
    return Peer(partial(reader, case.data, 0), partial(encode, entity))


def _same(theirs: Any, ours: Any) -> bool:
    """Field by field in order; kio has its own names, and types for times, errors and the zero uuid."""
    if is_dataclass(theirs):
        names = [field.name for field in fields(theirs)]
        values = list(ours.values())
        return len(names) == len(values) and all(
            _same(getattr(theirs, name), value) for name, value in zip(names, values, strict=True)
        )
    if isinstance(theirs, tuple):
        return len(theirs) == len(ours) and all(map(_same, theirs, ours))
    if isinstance(theirs, datetime.timedelta):
        theirs = theirs // _MILLISECOND
    elif isinstance(theirs, datetime.datetime):
        theirs = (theirs - _EPOCH) // _MILLISECOND
    elif isinstance(theirs, Enum):
        theirs = theirs.value
    if theirs is None:
        # A zero uuid, or a timestamp of -1.
        return ours is None or ours == ZERO_UUID or ours == -1
    return bool(theirs == ours)
