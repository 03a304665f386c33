"""Distinguishes raw SASL tokens from Kafka frames after a SASL handshake of version 0 (protocol note 6).

A frame is a token unless it reads as a request, or as the response to one. A kernel decides the clear cases; the others
are graded."""

from collections.abc import Mapping
from typing import Any

from kafkascope.capture.base.checked import read_i16, read_i32
from kafkascope.capture.base.flow import FrameKind
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.frames.detect.grade import (
    MOST_KEYS,
    MOST_VERSIONS,
    SMALLEST_REQUEST,
    SMALLEST_RESPONSE,
    Grade,
    grade_request,
    grade_response,
    is_known,
)
from kafkascope.capture.frames.detect.start import Scanning, StartVerdict, check_request
from kafkascope.capture.frames.frame_table import REMEMBERED, ConnSlot, Partial, Tables
from kafkascope.columnar.compiling.jit import jit

# Correlation ids are counted from 0. Tokens begin with letters or an ASN.1 tag, not with a small number.
SMALL_IDENTITY = 65_536
# First bytes of a broker's tokens: SCRAM (RFC 5802), an OAUTHBEARER error, GSSAPI and Kerberos (RFC 2743, 4120, 4121).
_TOKENS = (b"r=", b"v=", b"e=", b"{", b"\x60", b"\x6f", b"\x05\x04", b"\x05\x05")
# `judge` has verdicts of its own beside COMPILE and UNSURE of `detect.start`.
IS_TOKEN, IS_FRAME = 16 + FrameKind.TOKEN, 16 + FrameKind.FRAME


@jit
def judge(t: Tables, s: Scanning, slot: Number, role: Number, data: Any, body: Number, length: Number) -> Number:
    """IS_TOKEN or IS_FRAME as by `is_request` and `is_response`, COMPILE if a program is missing, or UNSURE."""
    if role:
        if length < SMALLEST_RESPONSE:
            return IS_TOKEN
        identity = read_i32(data, body)
        apart = identity - t.slots[slot, ConnSlot.HANDSHAKE_ID]
        if 0 <= identity < SMALL_IDENTITY or -REMEMBERED < apart < REMEMBERED:
            return IS_FRAME
        if t.state[2 * slot, Partial.TOKENS] == 0:
            return StartVerdict.UNSURE
        for request in range(min(t.slots[slot, ConnSlot.ASKED], REMEMBERED)):
            if t.asked[slot, request, 0] == identity:
                return StartVerdict.UNSURE
        return IS_TOKEN
    if length < SMALLEST_REQUEST:
        return IS_TOKEN
    if not (0 <= read_i16(data, body) < MOST_KEYS and 0 <= read_i16(data, body + 2) < MOST_VERSIONS):
        return IS_TOKEN
    if length < SMALLEST_REQUEST + 2:
        return StartVerdict.UNSURE
    verdict = check_request(s, data, body, body + length)
    return IS_FRAME if verdict == StartVerdict.WAIT else verdict


def is_request(raw: bytes) -> bool:
    """`raw` has its length in front, here as below. A request that isn't exact, with a string that isn't UTF-8 for
    example, is still one: it reads to its last byte."""
    graded = grade_request(raw, 0)
    return graded.grade is Grade.STRONG or (graded.grade is Grade.WEAK and is_known(graded.api_key, graded.version))


def is_response(raw: bytes, requests: Mapping[int, tuple[int, int]], handshake_id: int, *, tokens: bool) -> bool:
    """Its request may come after it. `tokens`: the client hasn't sent a request after its tokens yet."""
    graded = grade_response(raw, 0, requests)
    if graded.end < 0:
        return False
    apart = abs(graded.correlation_id - handshake_id)
    near = 0 <= graded.correlation_id < SMALL_IDENTITY or apart < REMEMBERED
    # Requests follow the client's tokens, so responses do; some of either may be lost.
    after_tokens = not tokens and not raw[4:].startswith(_TOKENS)
    return near or graded.grade in (Grade.STRONG, Grade.WEAK) or after_tokens
