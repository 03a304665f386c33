"""Builds a message's example: JSON, annotated bytes, and commands and code that use it."""

import json
from itertools import pairwise
from shlex import quote
from typing import Any

from kafkascope.codec.annotations.annotate import Annotation
from kafkascope.codec.annotations.frame import (
    EXAMPLE_CLIENT_ID,
    EXAMPLE_CORRELATION_ID,
    annotated_frame,
    example_header,
)
from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import encode
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import Layout


def example_facts(layout: Layout) -> dict[str, Any]:
    name, version, release = layout.message.name, layout.version, layout.release
    value = example(name, version, release)
    data, annotations = annotated_frame(layout, value)
    body = len(data) - len(encode(name, version, value, release))
    written = to_json(name, version, value, release)
    return {
        "json": written,
        "hex": data.hex(),
        "header": example_header(name, version) if layout.message.api else None,
        "bytes": _named_bytes(annotations, data, body),
        "uses": _uses(layout, written, data),
    }


def _named_bytes(annotations: list[Annotation], data: bytes, body: int) -> list[dict[str, Any]]:
    """Every piece of the bytes in order; `body` is the start of the body."""
    rows = [_bytes(item, data, body) for item in annotations]
    # A tag's number is in the span of its struct; readers look for it beside its field, like its size.
    for row, behind in pairwise(rows):
        if row["framing"] == "tag":
            row["path"] = behind["path"]
    return rows


def _bytes(item: Annotation, data: bytes, body: int) -> dict[str, Any]:
    header = 4 <= item.start < body
    path, _, framing = item.path.partition("#")
    return {
        "start": item.start,
        "end": item.end,
        "hex": data[item.start : item.end].hex(" "),
        # The path that JSON lines and cells of the diagram have too.
        "path": f"header/{path}" if header else path,
        "framing": framing,
        "label": item.label,
        "type": item.type,
        "value": item.value,
        "remark": item.remark,
    }


def _uses(layout: Layout, written: Any, data: bytes) -> list[dict[str, str]]:
    """Commands and code to copy."""
    name, version = layout.message.name, layout.version
    release = f" --release {layout.release}" if layout.release else ""
    named = "" if layout.message.kind == "request" and not layout.release else f" --as {name}:{version}{release}"
    short = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
    usages = []
    if layout.message.kind == "request" and not layout.release:
        call = f"kafkascope call localhost:9092 {layout.message.api} {quote(short)} --api-version {version}"
        usages.append({"title": "Send it", "with": "kafkascope call", "language": "shell", "text": call})
    usages.append(
        {
            "title": "Decode it",
            "with": "kafkascope decode",
            "language": "shell",
            "text": f"kafkascope decode{named} {data.hex()}",
        }
    )
    usages.append(
        {
            "title": "Encode it",
            "with": "kafkascope encode",
            "language": "shell",
            "text": _encode(layout, short) + release,
        }
    )
    usages.append({"title": "In Python", "with": "Python", "language": "python", "text": _python(layout, written)})
    return usages


def _encode(layout: Layout, short: str) -> str:
    line = f"kafkascope encode {layout.message.name}:{layout.version} {quote(short)}"
    if not layout.message.api:
        return line
    header = example_header(layout.message.name, layout.version)
    client = f" --client-id {EXAMPLE_CLIENT_ID}" if "clientId" in header else ""
    return f"{line} --frame --correlation-id {EXAMPLE_CORRELATION_ID}{client}"


def _python(layout: Layout, written: Any) -> str:
    name, version = layout.message.name, layout.version
    release = f", release={layout.release!r}" if layout.release else ""
    text = json.dumps(written, ensure_ascii=False, indent=2).replace("\\", "\\\\")
    arguments = f'"{name}", {version}'
    lines = ["import json", "", "import kafkascope", "", f'given = json.loads("""{text}""")']
    lines.append(f"value = kafkascope.from_json({arguments}, given{release})")
    if layout.message.api:
        header = example_header(name, version)
        response_to = "" if layout.message.kind == "request" else f', response_to=("{layout.message.api}", {version})'
        lines.append(f"frame = kafkascope.encode_frame({arguments}, value, {header!r}{release})")
        lines.append(f"decoded = kafkascope.decode_frame(frame{response_to}{release}).body")
    else:
        lines.append(f"data = kafkascope.encode({arguments}, value{release})")
        lines.append(f"decoded = kafkascope.decode({arguments}, data{release})")
    lines.append(f"kafkascope.to_json({arguments}, decoded.value{release}) == given")
    return "\n".join(lines)
