"""A layout in, its example out as plain facts: JSON, bytes, every byte named, and ways to use it elsewhere."""

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


def example_facts(found: Layout) -> dict[str, Any]:
    name, version, release = found.message.name, found.version, found.release
    value = example(name, version, release)
    data, annotations = annotated_frame(found, value)
    body = len(data) - len(encode(name, version, value, release))
    written = to_json(name, version, value, release)
    return {
        "json": written,
        "hex": data.hex(),
        "header": example_header(name, version) if found.message.api else None,
        "bytes": named_bytes(annotations, data, body),
        "uses": uses(found, written, data),
    }


def named_bytes(annotations: list[Annotation], data: bytes, body: int) -> list[dict[str, Any]]:
    """Every piece of the bytes in order; `body` is where the body begins."""
    rows = [_bytes(item, data, body) for item in annotations]
    # A tag's number stands in the span of its struct; readers look for it at its field, as its size does.
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
        # What JSON lines and cells of the diagram go by too.
        "path": f"header/{path}" if header else path,
        "framing": framing,
        "label": item.label,
        "type": item.type,
        "value": item.value,
        "remark": item.remark,
    }


def uses(found: Layout, written: Any, data: bytes) -> list[dict[str, str]]:
    """Commands and code to copy."""
    name, version = found.message.name, found.version
    release = f" --release {found.release}" if found.release else ""
    named = "" if found.message.kind == "request" and not found.release else f" --as {name}:{version}{release}"
    short = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
    listed = []
    if found.message.kind == "request" and not found.release:
        call = f"kafkascope call localhost:9092 {found.message.api} {quote(short)} --api-version {version}"
        listed.append({"title": "Send it", "with": "kafkascope call", "language": "shell", "text": call})
    listed.append(
        {
            "title": "Decode it",
            "with": "kafkascope decode",
            "language": "shell",
            "text": f"kafkascope decode{named} {data.hex()}",
        }
    )
    listed.append(
        {
            "title": "Encode it",
            "with": "kafkascope encode",
            "language": "shell",
            "text": _encode(found, short) + release,
        }
    )
    listed.append({"title": "In Python", "with": "Python", "language": "python", "text": _python(found, written)})
    return listed


def _encode(found: Layout, short: str) -> str:
    line = f"kafkascope encode {found.message.name}:{found.version} {quote(short)}"
    if not found.message.api:
        return line
    header = example_header(found.message.name, found.version)
    client = f" --client-id {EXAMPLE_CLIENT_ID}" if "clientId" in header else ""
    return f"{line} --frame --correlation-id {EXAMPLE_CORRELATION_ID}{client}"


def _python(found: Layout, written: Any) -> str:
    name, version = found.message.name, found.version
    release = f", release={found.release!r}" if found.release else ""
    text = json.dumps(written, ensure_ascii=False, indent=2).replace("\\", "\\\\")
    this = f'"{name}", {version}'
    lines = ["import json", "", "import kafkascope", "", f'given = json.loads("""{text}""")']
    lines.append(f"value = kafkascope.from_json({this}, given{release})")
    if found.message.api:
        header = example_header(name, version)
        asked = "" if found.message.kind == "request" else f', response_to=("{found.message.api}", {version})'
        lines.append(f"frame = kafkascope.encode_frame({this}, value, {header!r}{release})")
        lines.append(f"decoded = kafkascope.decode_frame(frame{asked}{release}).body")
    else:
        lines.append(f"data = kafkascope.encode({this}, value{release})")
        lines.append(f"decoded = kafkascope.decode({this}, data{release})")
    lines.append(f"kafkascope.to_json({this}, decoded.value{release}) == given")
    return "\n".join(lines)
