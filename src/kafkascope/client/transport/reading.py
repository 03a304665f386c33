"""Decodes responses of an untrusted node within the memory that a response may take, and in steps that leave the loop
free. What is larger is refused before anything of it is built."""

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

# A frame that is not weighed: what it can become is little.
_SMALL_BYTES = 1_024
# What a byte of it can become: a struct of two bytes is a dict with a text.
_MOST_PER_BYTE = 120


class HeavyError(DecodeError):
    """96,600,054 bytes came, which take more memory than a response may (150,994,944 bytes); ask for less"""


@dataclass(frozen=True, slots=True)
class Response:
    """`frame` is without the rows that were `left_out`. `memory` is what all of it takes at the most."""

    frame: bytes
    version: int
    value: dict[str, Any]
    exact: bool
    reasons: tuple[str, ...]
    memory: int
    left_out: int = 0


async def read_response(api: str, version: int, frame: bytes, most: int = MAX_RESPONSE_MEMORY_BYTES) -> Response:
    """DecodeError where it is no response to that request, HeavyError where it takes more memory than `most` bytes."""
    if len(frame) <= _SMALL_BYTES:
        return _decoded(api, version, frame, len(frame) * _MOST_PER_BYTE)
    weight, body_at = await weigh_response(api, version, frame, most - len(frame))
    if len(frame) + weight.memory > most:
        raise HeavyError(
            f"{len(frame):,} bytes came, which take more memory than a response may ({most:,} bytes); ask for less"
        )
    left_out = 0
    if weight.cut is not None:
        left_out = weight.rows - MAX_BROKERS
        frame = without_rows(frame, weight, layout(f"{api}Response", version).flexible)
    with _no_collection():
        return _decoded(api, version, frame, len(frame) + weight.memory, left_out, body_at)


async def weigh_response(api: str, version: int, frame: bytes, most: int) -> tuple[ResponseWeight, int]:
    """And where its body begins."""
    name = f"{api}Response"
    body_at, tagged = header_end(frame, header_version(name, version), most)
    if api == "ApiVersions" and frame[4:6] == UNSUPPORTED_VERSION.to_bytes(2, "big"):
        version = 0  # whichever was asked for (KIP-511)
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
        # The careful decoder takes a hundred times as long, and nothing else could be done meanwhile.
        decoded = _decoder(f"{api}Response", version)(frame, body_at)
        if decoded is None:
            raise DecodeError(f"{len(frame):,} bytes came, which are not as Kafka writes them")
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
    """A response holds no cycles; to look for some after every thousand objects takes nine tenths of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
