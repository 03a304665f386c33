"""Chooses the fastest decoder of a layout: `decode(data, position)` returns a `Decoded`, or None where the careful
decoder must look. In C where the package was built with a compiler, in generated Python elsewhere."""

from collections.abc import Callable
from struct import error as StructError
from typing import Any

from kafkascope import limits
from kafkascope.codec.result import Decoded
from kafkascope.codec.value_cost import cost_of, dearest
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
    return pure_decoder(layout) if _native is None else native_decoder(layout)


def native_decoder(layout: Layout) -> FastDecoder:
    values: dict[str, Any] = {
        "name": layout.message.name,
        "version": layout.version,
        "value": NotImplemented,  # stands for what was decoded
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
    """Lists and structs are made anew each time, which NotImplemented asks for."""
    value = field.default_value()
    return NotImplemented if isinstance(value, (list, dict)) else value


def pure_decoder(layout: Layout) -> FastDecoder:
    from kafkascope.codec.fast.fast_decode import Surprise, compile_decoder

    compiled = compile_decoder(layout)
    name, version = layout.message.name, layout.version
    # It counts nothing: what may take more than a message may is left to the decoder that counts.
    longest = limits.FREE_VALUE_BYTES // max(1, dearest(layout.fields) - limits.MAX_VALUE_RATIO)
    surprises = (Surprise, StructError, IndexError, UnicodeError, OverflowError)

    def decode(data: bytes, position: int) -> Decoded | None:
        if len(data) - position > longest:
            return None
        try:
            value, end = compiled(data, position, len(data))
        except surprises:
            return None
        return Decoded(name, version, value, True, (), ()) if end == len(data) else None

    return decode
