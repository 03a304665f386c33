"""Values and readings for tests that compare engines: long arrays, strict equality, each engine by itself."""

import struct
from collections.abc import Iterator
from random import Random
from typing import Any

from kafkascope.codec.fast.engine import FastDecoder, fast_decoder, is_native
from kafkascope.codec.message import finish
from kafkascope.codec.result import Decoded
from kafkascope.codec.walk import Walk
from kafkascope.schema.layouts.layout import Layout, LayoutField, layout


def fast_engines(known: Layout) -> dict[str, FastDecoder]:
    """Every engine that reads canonical bytes: the one in C, where it was built."""
    return {"native": fast_decoder(known)} if is_native() else {}


def careful(name: str, version: int, data: bytes, release: str | None = None, *, spans: bool = False) -> Decoded:
    walk = Walk(layout(name, version, release), data, spans=spans)
    return finish(walk, walk.message())


def same(first: Any, second: Any) -> bool:
    """Equal in value, type and order of names; a NaN is itself, 0.0 is not -0.0, True is not 1."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[name], second[name]) for name in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float):
        return struct.pack(">d", first) == struct.pack(">d", second)
    return bool(first == second)


def lengthened(known: Layout, values: list[dict[str, Any]], random: Random, lengths: tuple[int, int]) -> dict[str, Any]:
    """One of the values with one of its arrays made long out of the elements that all of them have there: all alike,
    in runs, taking turns, alike but for one, or mixed."""
    value = random.choice(values)
    places = list(_arrays(known.fields, value, ()))
    if not places:
        return value
    holder, path = random.choice(places)
    pool = [
        item
        for other in values
        for parent, its_path in _arrays(known.fields, other, ())
        if its_path == path
        for item in parent[path[-1]]
    ]
    if not pool:
        return value
    first, second = random.choice(pool), random.choice(pool)
    count = random.randint(*lengths)
    cut = random.randint(0, count)
    patterns = [
        [first] * count,
        [first] * cut + [second] * (count - cut),
        [first, second] * (count // 2),
        [first] * cut + [second] + [first] * (count - cut),
        [random.choice(pool) for _ in range(count)],
    ]
    made: dict[str, Any] = _replaced(value, holder, path[-1], random.choice(patterns))
    return made


def _arrays(
    fields: tuple[LayoutField, ...], value: dict[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """(the struct that holds it, its path without indexes) of every array that is not null."""
    for field in fields:
        content = value[field.name]
        here = (*path, field.name)
        if field.array and content is not None:
            yield value, here
        if field.type == "struct" and content:
            for item in content if field.array else [content]:
                yield from _arrays(field.fields, item, here)


def _replaced(value: Any, holder: dict[str, Any], name: str, made: list[Any]) -> Any:
    if value is holder:
        return {**value, name: made}
    if isinstance(value, dict):
        return {key: _replaced(item, holder, name, made) for key, item in value.items()}
    return [_replaced(item, holder, name, made) for item in value] if isinstance(value, list) else value
