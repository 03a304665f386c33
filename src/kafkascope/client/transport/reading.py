"""Decodes responses of an untrusted node within the memory that a response may take, in steps that don't block the
loop. Larger responses are refused before anything is built."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from kafkascope.client.transport.response_size import ResponseWeight, header_end, weigh, without_rows
from kafkascope.codec.fast.engine import FastDecoder, fast_decoder, is_native
from kafkascope.codec.frame import UNSUPPORTED_VERSION, decode_response_frame, header_version
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_BROKERS, MAX_CAREFUL_MEMORY_BYTES, MAX_RESPONSE_MEMORY_BYTES
from kafkascope.schema.layouts.layout import layout

# Smaller frames aren't measured: they can't become large.
_SMALL_BYTES = 1_024
# The most memory per byte: a struct of two bytes is a dict with a text.
_MOST_PER_BYTE = 120


class HeavyError(DecodeError):
    """the response of 96,600,054 bytes takes more memory than the limit (150,994,944 bytes); request less"""


@dataclass(frozen=True, slots=True)
class Response:
    """`frame` lacks the rows that were `left_out`. `memory` is the most that it takes."""

    frame: bytes
    version: int
    value: dict[str, Any]
    exact: bool
    reasons: tuple[str, ...]
    memory: int
    left_out: int = 0


async def read_response(api: str, version: int, frame: bytes, most: int = MAX_RESPONSE_MEMORY_BYTES) -> Response:
    """DecodeError if it isn't a response to that request, HeavyError if it takes more memory than `most` bytes."""
    if len(frame) <= _SMALL_BYTES:
        return _decoded(api, version, frame, len(frame) * _MOST_PER_BYTE)
    weight, body_at = await weigh_response(api, version, frame, most - len(frame))
    if len(frame) + weight.memory > most:
        raise HeavyError(
            f"the response of {len(frame):,} bytes takes more memory than the limit ({most:,} bytes); request less"
        )
    left_out = 0
    if weight.cut is not None:
        left_out = weight.rows - MAX_BROKERS
        frame = without_rows(frame, weight, layout(f"{api}Response", version).flexible)
    with _no_collection():
        return _decoded(api, version, frame, len(frame) + weight.memory, left_out, body_at)


async def weigh_response(api: str, version: int, frame: bytes, most: int) -> tuple[ResponseWeight, int]:
    """The layout, and the start of the body."""
    name = f"{api}Response"
    body_at, tagged = header_end(frame, header_version(name, version), most)
    if api == "ApiVersions" and frame[4:6] == UNSUPPORTED_VERSION.to_bytes(2, "big"):
        version = 0  # whatever version was requested (KIP-511)
    steps = weigh(name, version, frame, body_at, most)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            weight: ResponseWeight = stop.value
            return replace(weight, memory=weight.memory + tagged), body_at
        await asyncio.sleep(0)


def _decoded(
    api: str, version: int, frame: bytes, memory: int, left_out: int = 0, body_at: int | None = None
) -> Response:
    if body_at is not None and memory > MAX_CAREFUL_MEMORY_BYTES and is_native():
        # The careful decoder takes a hundred times as long and would block everything else.
        decoded = _decoder(f"{api}Response", version)(frame, body_at)
        if decoded is None:
            raise DecodeError(f"the response of {len(frame):,} bytes isn't in the form that Kafka writes")
        return Response(frame, version, decoded.value, not left_out, _reasons(left_out), memory, left_out)
    decoded_frame = decode_response_frame(frame, (api, version), has_length=False)
    if decoded_frame.body is None:
        raise DecodeError("; ".join(decoded_frame.reasons))
    reasons = (*_reasons(left_out), *decoded_frame.reasons)
    return Response(frame, decoded_frame.version, decoded_frame.body.value, not reasons, reasons, memory, left_out)


def _reasons(left_out: int) -> tuple[str, ...]:
    return (f"{left_out:,} brokers left out",) if left_out else ()


@lru_cache(maxsize=256)
def _decoder(name: str, version: int) -> FastDecoder:
    return fast_decoder(layout(name, version))


@contextmanager
def _no_collection() -> Iterator[None]:
    """A response has no cycles; looking for them after every thousand objects takes nine tenths of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
