"""Provides the fast decoder of a layout: `decode(data, position)` returns a `Decoded`, or None if the careful decoder
must read the bytes. It is written in C; if the package was built without a compiler, the careful decoder reads
everything."""

from collections.abc import Callable
from typing import Any

from kafkascope import limits
from kafkascope.codec.result import Decoded
from kafkascope.codec.value_cost import cost_of
from kafkascope.schema.layouts.layout import Layout, LayoutField

_native: Any
try:
    from kafkascope.codec import _native
except ImportError:
    _native = None

FastDecoder = Callable[[bytes, int], Decoded | None]

# In the order of the C module's enum.
_KINDS = "bool int8 int16 uint16 int32 uint32 int64 float64 uuid string bytes struct".split()


def is_native() -> bool:
    return _native is not None


def fast_decoder(layout: Layout) -> FastDecoder:
    if _native is None:
        return _leave_all
    values: dict[str, Any] = {
        "name": layout.message.name,
        "version": layout.version,
        "value": NotImplemented,  # replaced by the decoded value
        "exact": True,
        "reasons": (),
        "spans": (),
    }
    constants = tuple((getattr(Decoded, name), value) for name, value in values.items())
    whole = cost_of(layout.fields)
    bounds = limits.MAX_VALUE_BYTES, limits.FREE_VALUE_BYTES, limits.MAX_VALUE_RATIO, whole
    decoder: FastDecoder = _native.Decoder(_plan(layout.fields), layout.flexible, Decoded, constants, bounds).decode
    return decoder


def _plan(fields: tuple[LayoutField, ...]) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (
            field.name,
            _KINDS.index("bytes" if field.type == "records" else field.type),
            field.array,
            field.nullable,
            field.compact,
            -1 if field.tag is None else field.tag,
            _default(field),
            max(field.element_minimum, 1),
            cost_of(field.fields) if field.fields else 0,
            _plan(field.fields),
        )
        for field in fields
    )


def _default(field: LayoutField) -> Any:
    """Lists and structs are created each time, which NotImplemented requests."""
    value = field.default_value()
    return NotImplemented if isinstance(value, (list, dict)) else value


def _leave_all(_: bytes, __: int) -> None:
    """Replaces the decoder in C if it's missing."""
