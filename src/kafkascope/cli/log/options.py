"""Reads the filters of `log`."""

from kafkascope.cli.units import parse_moment
from kafkascope.errors import NotFoundError, UsageError
from kafkascope.formatting import close_names, did_you_mean
from kafkascope.logs.selection import Selection
from kafkascope.logs.typed_records import type_names
from kafkascope.schema.names import clip, parse_number
from kafkascope.times import microseconds_of

_INT64 = range(2**63)


def selection_of(
    topics: tuple[str, ...], offsets: tuple[str, str] | None, between: tuple[str, str] | None, types: tuple[str, ...]
) -> Selection:
    first, end = (_offset(offsets[0]), _offset(offsets[1])) if offsets else (None, None)
    if offsets and first is not None and end is not None and first >= end:
        raise UsageError(f"--offsets: the end {end} isn't after the start {first}")
    start, until = (_milliseconds(between[0]), _milliseconds(between[1])) if between else (None, None)
    if between and start is not None and until is not None and start >= until:
        raise UsageError(f"--between: the end {between[1]} isn't after the start {between[0]}")
    return Selection(topics, first, end, start, until, tuple(_type(name) for name in types))


def _offset(text: str) -> int | None:
    if text == "-":
        return None
    number = parse_number(text)
    if number is None or number not in _INT64:
        raise UsageError(f"--offsets: '{clip(text)}' isn't an offset; write a number, or - for an open end")
    return number


def _milliseconds(text: str) -> int | None:
    """Rounded up: a record has whole milliseconds."""
    moment = parse_moment(text, "--between")
    return None if moment is None else -(-microseconds_of(moment) // 1000)


def _type(name: str) -> str:
    known = {spelled.lower(): spelled for spelled in type_names()}
    spelled_name = known.get(name.lower())
    if spelled_name is None:
        raise NotFoundError(
            f"unknown record type {clip(name)}{did_you_mean(close_names(name.lower(), known, cutoff=0.5))}"
        )
    return spelled_name
