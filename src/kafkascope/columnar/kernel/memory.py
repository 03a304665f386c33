"""Reads and writes at plain addresses for the numba kernels, converting big-endian to native numbers. It checks no
bounds: the kernels compare every position with its end first."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.extending import intrinsic

_I64 = ir.IntType(64)
cgutils: Any = untyped_cgutils
# The result takes one argument less than the function it's made from, which mypy can't know.
_intrinsic: Any = intrinsic


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def _swap(builder: Any, value: Any, bits: int) -> Any:
    if bits == 8:
        return value
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.IntType(bits), [ir.IntType(bits)]), f"llvm.bswap.i{bits}"
    )
    return builder.call(function, [value])


def _load(bits: int, signed: bool, *, swap: bool = True) -> Any:
    def typed(_: Any, address: Any) -> Any:  # noqa: ARG001 - numba reads the signature
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            value = builder.load(_pointer(builder, arguments[0], bits), align=1)
            if swap:
                value = _swap(builder, value, bits)
            if bits == 64:
                return value
            return builder.sext(value, _I64) if signed else builder.zext(value, _I64)

        return types.int64(types.int64), generate

    return intrinsic(typed)


def _store(bits: int) -> Any:
    def typed(_: Any, address: Any, value: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            narrow = arguments[1] if bits == 64 else builder.trunc(arguments[1], ir.IntType(bits))
            builder.store(narrow, _pointer(builder, arguments[0], bits), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return intrinsic(typed)


load_u8 = _load(8, False)
load_i8 = _load(8, True)
load_i16 = _load(16, True)
load_i32 = _load(32, True)
load_u32 = _load(32, False)
load_i64 = _load(64, True)
# In native byte order.
load_raw32 = _load(32, True, swap=False)
load_raw64 = _load(64, True, swap=False)
store_8 = _store(8)
store_16 = _store(16)
store_32 = _store(32)
store_64 = _store(64)


def _item(bits: int) -> Any:
    """Reads number `index` of the integers of this many bits at an address, in native byte order. It uses a pointer
    with an index, unlike the others, so that a loop over all of them is vectorized."""

    def typed(_: Any, address: Any, index: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            first = _pointer(builder, arguments[0], bits)
            value = builder.load(builder.gep(first, [arguments[1]]), align=1)
            return value if bits == 64 else builder.sext(value, _I64)

        return types.int64(types.int64, types.int64), generate

    return intrinsic(typed)


item_8 = _item(8)
item_32 = _item(32)
item_64 = _item(64)


@_intrinsic
def word(_: Any, address: Any, index: Any) -> Any:  # noqa: ARG001
    """The int64 number `index` of those at an address: the kernel reads its program this way."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        first = _pointer(builder, arguments[0], 64)
        return builder.load(builder.gep(first, [arguments[1]]), align=8)

    return types.int64(types.int64, types.int64), generate


@_intrinsic
def copy_bytes(_: Any, target: Any, source: Any, count: Any) -> Any:  # noqa: ARG001
    """memcpy: the areas never overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        to = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        source_pointer = builder.inttoptr(arguments[1], ir.IntType(8).as_pointer())
        cgutils.raw_memcpy(builder, to, source_pointer, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _vector(builder: Any, address: Any, bits: int, count: int) -> Any:
    return builder.inttoptr(address, ir.VectorType(ir.IntType(bits), count).as_pointer())


def _copy(count: int) -> Any:
    def typed(_: Any, target: Any, source: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            value = builder.load(_vector(builder, arguments[1], 8, count), align=1)
            builder.store(value, _vector(builder, arguments[0], 8, count), align=1)
            high = builder.bitcast(
                builder.icmp_signed("<", value, ir.Constant(value.type, [0] * count)), ir.IntType(count)
            )
            return high if count == 64 else builder.zext(high, _I64)

        return types.int64(types.int64, types.int64), generate

    return intrinsic(typed)


# Copies this many bytes; returns which of them have their high bit set, the first as the lowest bit.
copy_32 = _copy(32)
copy_64 = _copy(64)


@_intrinsic
def copy_8_numbers(_: Any, target: Any, source: Any) -> Any:  # noqa: ARG001
    """Eight int32, from big-endian to native."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        value = builder.load(_vector(builder, arguments[1], 32, 8), align=1)
        swap = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(value.type, [value.type]), "llvm.bswap.v8i32"
        )
        builder.store(builder.call(swap, [value]), _vector(builder, arguments[0], 32, 8), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@_intrinsic
def apart(_: Any) -> Any:
    """Keeps a function that calls it from being inlined: it is called seldom, and would only take the registers of the
    code around it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


@_intrinsic
def one_by_one(_: Any) -> Any:
    """Keeps a loop that calls it from being vectorized: for scattered places that is slower, and a short loop ends
    before it has begun."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], True)
        return context.get_dummy_value()

    return types.void(), generate


@_intrinsic
def prefetch(_: Any, address: Any) -> Any:  # noqa: ARG001
    """The bytes there will be needed soon. Any address is allowed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        i32 = ir.IntType(32)
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32]), "llvm.prefetch.p0"
        )
        builder.call(function, [pointer, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate
