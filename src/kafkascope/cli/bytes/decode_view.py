"""Prints a decoded frame or body as text or as JSON."""

from typing import Any

from kafkascope.cli.bytes.hex_view import print_hex
from kafkascope.cli.bytes.records_view import print_records
from kafkascope.cli.output import print_json
from kafkascope.cli.terminal import heading, prose, title
from kafkascope.codec.annotations.annotate import annotate
from kafkascope.codec.annotations.frame import annotations_of
from kafkascope.codec.identify.identify import Identified, identify
from kafkascope.codec.json_form import to_json
from kafkascope.codec.records.records_form import records_json
from kafkascope.codec.result import Decoded
from kafkascope.formatting import printable
from kafkascope.schema.layouts.layout import layout


def print_decoded(identified: Identified, raw: bytes, *, records: bool, full: bool) -> None:
    frame, body = identified.frame, identified.body or (identified.frame.body if identified.frame else None)
    if frame:
        name = frame.name or f"request with API key {frame.api_key}"
        facts = [f"correlation id {frame.correlation_id}"]
        client = frame.header.value.get("clientId")
        facts += [f"client id {printable(client)}"] if client is not None else []
        facts += [f"{len(raw)} bytes with length" if frame.length is not None else f"{len(raw)} bytes without length"]
        title(f"{name} v{frame.version}", " · ".join(facts))
        print()
        print_hex(raw, annotations_of(frame, raw, identified.release), full=full)
    elif body:
        title(f"{body.name} v{body.version}", f"{len(raw)} bytes, only the body")
        print()
        print_hex(raw, annotate(layout(body.name, body.version, identified.release), body, raw), full=full)
    if body:
        print_records(body, identified.release, contents=records, full=full)
    for reason in identified.reasons:
        prose(f"not exact: {reason}")
    if body:
        heading("JSON")
        _print_value(body, identified.release)


def print_bytes(raw: bytes, name: str, release: str | None) -> None:
    """Annotates bytes that were just encoded."""
    identified = identify(raw, name, release)
    if identified.frame:
        print_hex(raw, annotations_of(identified.frame, raw, release), full=True)
    elif identified.body:
        print_hex(
            raw,
            annotate(layout(identified.body.name, identified.body.version, release), identified.body, raw),
            full=True,
        )


def _print_value(body: Decoded, release: str | None) -> None:
    print_json(to_json(body.name, body.version, body.value, release))


def print_decoded_json(identified: Identified, *, records: bool) -> None:
    frame, body = identified.frame, identified.body or (identified.frame.body if identified.frame else None)
    answer: dict[str, Any] = {"message": body.name if body else None, "version": body.version if body else None}
    if frame:
        header = to_json(frame.header.name, frame.header.version, frame.header.value)
        answer |= {"message": frame.name, "version": frame.version, "apiKey": frame.api_key, "header": header}
    if body:
        answer["value"] = to_json(body.name, body.version, body.value, identified.release)
        if records:
            answer["records"] = records_json(body, identified.release)
    answer |= {"exact": identified.exact, "reasons": list(identified.reasons)}
    print_json(answer)
