"""Annotates every byte of a whole frame, header included."""

from typing import Any

from kafkascope.codec.annotations.annotate import Annotation, annotate
from kafkascope.codec.frame import DecodedFrame, decode_frame, encode_frame, header_version
from kafkascope.codec.message import decode, encode
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import Layout, layout

# Marks the header of an example.
EXAMPLE_CORRELATION_ID = 7
EXAMPLE_CLIENT_ID = "checkout"


def example_header(name: str, version: int) -> dict[str, Any]:
    header: dict[str, Any] = {"correlationId": EXAMPLE_CORRELATION_ID}
    if message(name).kind == "request" and header_version(name, version) > 0:
        header["clientId"] = EXAMPLE_CLIENT_ID
    return header


def annotated_frame(layout: Layout, value: dict[str, Any]) -> tuple[bytes, list[Annotation]]:
    name, version, release = layout.message.name, layout.version, layout.release
    if not layout.message.api:
        data = encode(name, version, value, release)
        return data, annotate(layout, decode(name, version, data, release, spans=True), data)
    data = encode_frame(name, version, value, example_header(name, version), release)
    response_to = None if layout.message.kind == "request" else (layout.message.api, version)
    return data, annotations_of(decode_frame(data, response_to=response_to, release=release, spans=True), data, release)


def annotations_of(frame: DecodedFrame, data: bytes, release: str | None) -> list[Annotation]:
    """Length prefix, header, body, and the bytes that couldn't be read."""
    rows = []
    if frame.length is not None:
        rows.append(Annotation(0, 4, "message_size", 0, "message_size", False, "int32", str(frame.length), None))
    rows += annotate(layout(frame.header.name, frame.header.version), frame.header, data)
    if frame.body is not None:
        rows += annotate(layout(frame.body.name, frame.version, release), frame.body, data)
    elif frame.body_at < len(data):
        left = len(data) - frame.body_at
        rows.append(Annotation(frame.body_at, len(data), "", 0, "unread", False, "bytes", f"{left} bytes", None))
    return rows
