"""Prints the responses of a cluster: a header line, JSON with remarks, hex, or times."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kafkascope.cli.live.call_request import Request
from kafkascope.cli.live.response_view import print_value
from kafkascope.cli.output import json_text, print_json
from kafkascope.cli.tables import table
from kafkascope.cli.terminal import note, paint, prose, remark, title
from kafkascope.client.answer import Answer
from kafkascope.codec.json_form import to_json
from kafkascope.schema.errors.error_codes import cause_and_remedy, error_codes, error_name
from kafkascope.schema.errors.message_errors import is_error_field
from kafkascope.schema.layouts.layout import LayoutField, layout

PERCENTILES = (50, 90, 99)
# Longest list of times; percentiles summarize the rest.
_MOST_TIMES = 20


def print_dry_run(request: Request, client_id: str, how: str, *, full: bool) -> None:
    """The frame as it would be sent, with correlation id 0."""
    from kafkascope.cli.bytes.hex_view import print_hex
    from kafkascope.codec.annotations.frame import annotations_of
    from kafkascope.codec.frame import decode_frame, encode_frame, header_version

    name = f"{request.api}Request"
    header = {"clientId": client_id} if header_version(name, request.version) > 0 else {}
    value = request.value
    hidden = request.api == "SaslAuthenticate" and bool(value.get("authBytes"))
    if hidden:
        value = value | {"authBytes": bytes(len(value["authBytes"]))}
    data = encode_frame(name, request.version, value, header)
    title(f"{name} v{request.version}", f"{len(data)} bytes with length · not sent" + (f" · {how}" if how else ""))
    print()
    print_hex(data, annotations_of(decode_frame(data, spans=True), data, None), full=full)
    if hidden:
        remark("authBytes are shown as 00: they hold a password or a token")
    if request.effect.changes:
        remark(request.effect.line)
    elif request.effect.remark:
        remark(request.effect.remark)


def print_answer(
    answer: Answer, names: Mapping[UUID, str], error: tuple[str, int] | None, *, records: bool, full: bool
) -> None:
    node = f"node {answer.node}" if answer.node is not None else "node unknown"
    took = (answer.received_at - answer.sent_at) / 1e6
    facts = [node, str(answer.address), f"{took:.1f} ms", f"{len(answer.response_bytes)} bytes"]
    title(f"{answer.api}Response v{answer.api_version}", " · ".join(facts))
    if not answer.response_bytes and not answer.value:
        remark("sent; this request has no response")
        return
    response_layout = layout(f"{answer.api}Response", answer.api_version)
    print_value(response_layout, answer.value, names, full=full)
    if _has_records(response_layout.fields):
        from kafkascope.cli.bytes.records_view import print_records
        from kafkascope.codec.frame import decode_response_frame

        sent = (answer.api, answer.api_version)
        body = decode_response_frame(answer.response_bytes, sent, has_length=False).body
        if body is not None:
            print_records(body, None, contents=records, full=full)
    for reason in answer.reasons:
        prose(f"not exact: {reason}")
    if error is not None:
        path, code = error
        known = error_codes().get(code)
        remedy = f" {cause_and_remedy(known.name)[1]}" if known else ""
        print(paint(f"{path} is {error_name(code)} ({code}).", "red", "bold") + remedy)


def _has_records(fields: tuple[LayoutField, ...]) -> bool:
    return any(field.type == "records" or _has_records(field.fields) for field in fields)


def print_answer_json(answer: Answer, *, compact: bool) -> None:
    value = to_json(f"{answer.api}Response", answer.api_version, answer.value) if answer.value else None
    if compact:
        print(json_text(value))
    else:
        print_json(value)
    for reason in answer.reasons:
        note(f"kafkascope: not exact: {reason}")


def print_raw(answer: Answer) -> None:
    """Includes its length, so that `decode` reads it."""
    frame = answer.response_bytes
    print((len(frame).to_bytes(4, "big") + frame).hex() if frame else "")


def print_times(answer: Answer, times: list[float], *, as_json: bool) -> None:
    ordered = sorted(times)
    figures = {"min": ordered[0], **{f"p{p}": percentile(ordered, p) for p in PERCENTILES}, "max": ordered[-1]}
    if as_json:
        print_json(
            {
                "api": answer.api,
                "version": answer.api_version,
                "node": answer.node,
                "address": str(answer.address),
                "calls": len(times),
                "milliseconds": [round(took, 3) for took in times],
                "summary": {name: round(took, 3) for name, took in figures.items()},
            }
        )
        return
    title(f"{answer.api} v{answer.api_version}", f"{answer.address} · {len(times)} calls")
    table([(f"call {at}", f"{took:.2f} ms") for at, took in enumerate(times[:_MOST_TIMES], 1)])
    if len(times) > _MOST_TIMES:
        remark(f"… {len(times) - _MOST_TIMES} more", "  ")
    print("  " + " · ".join(f"{name} {took:.2f} ms" for name, took in figures.items()))


def percentile(ordered: list[float], percent: int) -> float:
    """The smallest value that this percentage of values doesn't exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def first_error(answer: Answer) -> tuple[str, int] | None:
    """The first error code of a response other than 0, in the order of its fields, and its path."""
    if not answer.value:
        return None
    return _first_error(layout(f"{answer.api}Response", answer.api_version).fields, answer.value, "")


def _first_error(fields: tuple[LayoutField, ...], value: Mapping[str, Any], path: str) -> tuple[str, int] | None:
    for field in fields:
        content = value[field.name]
        if field.type == "int16" and not field.array and is_error_field(field.name) and content:
            return f"{path}{field.name}", content
        if field.type == "struct" and content is not None:
            for number, item in enumerate(content if field.array else [content]):
                inside = f"{path}{field.name}[{number}]." if field.array else f"{path}{field.name}."
                inner = _first_error(field.fields, item, inside)
                if inner:
                    return inner
    return None
