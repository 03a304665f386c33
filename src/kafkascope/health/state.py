"""Turns the state of a walk into JSON and back, so that a later walk goes on from it. What is read back is untrusted:
every value is checked against the type that its class declares, and only classes that a walk names are made.

Lists instead of objects, in the order of the fields. An object that several others hold is stored once: the first time
with its fields, then by number."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

# Times, offsets and counts of Kafka are 64 bits.
_LEAST, _MOST = -(1 << 63), 1 << 63
_SCALARS = (int, str, bool)
# Holds more than any state of a walk, and less than Python's stack.
_MOST_DEEP = 50


def encoded(value: Any, kind: Any) -> Any:
    """What `json` can write."""
    return _Writer().value(value, kind)


def decoded(plain: Any, kind: type[T]) -> T:
    """`ValueError` for what `encoded` doesn't make of such a value."""
    try:
        value: T = _Reader().value(plain, kind, 0)
    except (TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return value


def fields_of(kind: Any) -> dict[str, Any]:
    """Fields with their types: of a NamedTuple or a dataclass all, of another class those that it annotates."""
    return _fields(kind)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        return {field.name: hints[field.name] for field in fields(kind)}
    names = kind._fields if hasattr(kind, "_fields") else kind.__annotations__
    return {name: hints[name] for name in names}


def _is_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _optional(kind: Any) -> tuple[Any, ...] | None:
    """The kinds of a union but None; None for what isn't one."""
    if get_origin(kind) in (Union, UnionType):
        return tuple(part for part in get_args(kind) if part is not NoneType)
    return None


class _Writer:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def value(self, value: Any, kind: Any) -> Any:
        parts = _optional(kind)
        if parts is not None:
            return value if value is None or len(parts) > 1 else self.value(value, parts[0])
        if kind is None or kind in _SCALARS or get_origin(kind) is Literal:
            return value
        origin, arguments = get_origin(kind) or kind, get_args(kind)
        if origin in (dict, Counter):
            of = (arguments[0], int) if origin is Counter else arguments
            return [[self.value(key, of[0]), self.value(item, of[1])] for key, item in value.items()]
        if origin is tuple and arguments[-1] is not Ellipsis:
            return [self.value(item, of) for item, of in zip(value, arguments, strict=True)]
        if origin in (list, tuple, set, frozenset):
            return [self.value(item, arguments[0]) for item in value]
        if _is_tuple(kind):
            return self._fields(value, kind)
        number = self._numbers.get(id(value))
        if number is not None:
            return number
        self._numbers[id(value)] = len(self._numbers)
        return self._fields(value, kind)

    def _fields(self, value: Any, kind: Any) -> list[Any]:
        return [self.value(getattr(value, name), of) for name, of in _fields(kind).items()]


class _Reader:
    def __init__(self) -> None:
        self._objects: list[Any] = []

    def value(self, plain: Any, kind: Any, depth: int) -> Any:
        _need(depth < _MOST_DEEP)
        parts = _optional(kind)
        if parts is not None:
            if plain is None:
                return None
            return self.value(plain, parts[0], depth) if len(parts) == 1 else _one_of(plain, parts)
        if kind is None:
            return _one_of(plain, (NoneType,))
        if kind in _SCALARS:
            return _one_of(plain, (kind,))
        origin, arguments = get_origin(kind) or kind, get_args(kind)
        if origin is Literal:
            _need(plain in arguments and isinstance(plain, str))
            return plain
        if origin in (dict, Counter):
            of = (arguments[0], int) if origin is Counter else arguments
            pairs = [
                (self.value(key, of[0], depth + 1), self.value(item, of[1], depth + 1)) for key, item in _list(plain)
            ]
            _need(len(dict(pairs)) == len(pairs))
            return origin(dict(pairs))
        if origin is tuple and arguments[-1] is not Ellipsis:
            _need(len(_list(plain)) == len(arguments))
            return tuple(self.value(item, of, depth + 1) for item, of in zip(plain, arguments, strict=True))
        if origin in (list, tuple, set, frozenset):
            return origin(self.value(item, arguments[0], depth + 1) for item in _list(plain))
        if _is_tuple(kind):
            return kind(*self._fields(plain, kind, depth))
        if type(plain) is int:
            _need(0 <= plain < len(self._objects))
            known = self._objects[plain]
            _need(type(known) is kind)
            return known
        made = kind.__new__(kind)
        self._objects.append(made)
        for name, item in zip(_fields(kind), self._fields(plain, kind, depth), strict=True):
            object.__setattr__(made, name, item)
        return made

    def _fields(self, plain: Any, kind: Any, depth: int) -> list[Any]:
        of = _fields(kind)
        _need(len(_list(plain)) == len(of))
        return [self.value(item, part, depth + 1) for item, part in zip(plain, of.values(), strict=True)]


def _list(plain: Any) -> list[Any]:
    _need(type(plain) is list)
    return list(plain)


def _one_of(plain: Any, kinds: Iterable[Any]) -> Any:
    _need(type(plain) in kinds)
    if type(plain) is int:
        _need(_LEAST <= plain < _MOST)
    elif type(plain) is str:
        # A column can't hold a lone surrogate.
        plain.encode()
    return plain


def _need(holds: bool) -> None:
    if not holds:
        raise ValueError("no walk leaves such a state")
