"""Prints the page of one version of a message: description, errors, wire layout, every field, schema and example."""

from typing import Any

from kafkascope.cli.bytes.hex_view import print_hex
from kafkascope.cli.output import print_json
from kafkascope.cli.reference.error_table import print_errors
from kafkascope.cli.reference.overview import show_facts
from kafkascope.cli.tables import table
from kafkascope.cli.terminal import field_line, heading, paint, prose, remark, width
from kafkascope.codec.annotations.frame import annotated_frame, example_header
from kafkascope.codec.frame import encode_frame, header_version
from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import encode
from kafkascope.schema.api_facts import field_kips, kips_of
from kafkascope.schema.errors.message_errors import errors_of
from kafkascope.schema.export import message_error_json, message_json, span_text, version_json
from kafkascope.schema.layouts.diagram import DiagramRow, diagram, fixed_end
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import Layout, layout
from kafkascope.schema.layouts.typed_json import typed_json
from kafkascope.schema.prose import paragraphs, sentence
from kafkascope.schema.values import NamedValues, named_values


def show_pages(names: tuple[str, ...], version: int, release: str | None, *, schema_only: bool, as_json: bool) -> None:
    """Prints one message, or the request and response of an API. As JSON it's one page, or a list of two."""
    layouts = [layout(name, version, release) for name in names]
    if as_json:
        pages = [page_json(item) for item in layouts]
        print_json(pages if len(pages) > 1 else pages[0])
        return
    for number, item in enumerate(layouts):
        if number:
            print()
        if not schema_only:
            show_page(item)
            continue
        if len(layouts) > 1:
            print(paint(item.title, "bold"))
        print(typed_json(item))


def show_page(message_layout: Layout) -> None:
    _title(message_layout)
    for part in paragraphs(message_layout.message):
        print()
        prose(part)
    if message_layout.message.api:
        show_facts(message_layout.message, message_layout.version)
        heading("Errors" if message_layout.message.kind == "response" else "Errors in the response")
        print_errors(errors_of(message_layout.message, message_layout.version))
    _wire(message_layout)
    _fields(message_layout)
    heading("Schema")
    print(typed_json(message_layout))
    _example(message_layout)


def _title(message_layout: Layout) -> None:
    known = message_layout.message
    names = (
        f" (called {known.name_in(message_layout.release)} in {message_layout.release})"
        if known.name_in(message_layout.release) != known.name
        else ""
    )
    print(paint(f"{known.name_in(None)} v{message_layout.version}", "bold") + names)
    facts = [f"API key {known.key}" if known.api else known.kind]
    facts.append(f"Kafka {span_text(known.releases_of(message_layout.version))}")
    facts.append("flexible" if message_layout.flexible else "classic encoding")
    facts += [f"not in {patch}" for patch in known.patches_without(message_layout.version)]
    facts += [f"unstable in {span}" for span, unstable in known.unstable if unstable == message_layout.version]
    facts += [f"deprecated in {span}" for span, versions in known.deprecated if message_layout.version in versions]
    remark(" · ".join(facts))
    if any(message_layout.version in block.versions and block.releases for block in known.blocks):
        others = [
            str(block.releases) for block in known.blocks if block.releases and message_layout.version in block.versions
        ]
        prose(f"Kafka {' and '.join(others)} has another layout of this version: --release shows it.")


def parts_of(message_layout: Layout) -> list[tuple[str, Layout, int, bool]]:
    """(title, layout, offset in the frame, floating) of the frame header and the body; a record has no header."""
    if not message_layout.message.api:
        return [("Body", message_layout, 0, False)]
    number = header_version(message_layout.message.name, message_layout.version)
    header = layout("RequestHeader" if message_layout.message.kind == "request" else "ResponseHeader", number)
    end, floating = fixed_end(header)
    title = f"{'Request' if message_layout.message.kind == 'request' else 'Response'} header v{number}"
    return [(title, header, 4, False), ("Body", message_layout, 4 + end, floating)]


def _wire(message_layout: Layout) -> None:
    heading("On the wire")
    parts = parts_of(message_layout)
    rows: list[tuple[str, ...]] = []
    if message_layout.message.api:
        rows += [("", "", "Frame", ""), ("0", "4", "  message_size", "int32, counts the bytes after it")]
    for title, part, offset, floating in parts:
        rows.append(("", "", title, ""))
        rows += [_wire_row(row) for row in diagram(part, offset, floating)]
    table(rows, ("at", "bytes", "field", "encoding"))
    remark("at: offset in the frame; ≥ after a field of variable length.", "  ")


def _wire_row(row: DiagramRow) -> tuple[str, ...]:
    at = f"≥{row.offset}" if row.floating else str(row.offset)
    indent = "  " * (row.depth + 1)
    name = f"{indent}tags of {row.path[-1]}" if row.kind == "tags" and row.path else f"{indent}tags"
    return at, row.size, name if row.kind == "tags" else f"{indent}{row.path[-1]}", row.encoding


def _fields(message_layout: Layout) -> None:
    heading("Fields")
    for row in diagram(message_layout):
        if row.field is None:
            continue
        field, place = row.field, catalog_path(message_layout, row.path)
        marks = [f"{field.source.type if field.type == 'struct' else field.type}{'[]' if field.array else ''}"]
        marks += ["nullable"] if field.nullable else []
        marks += [f"tag {field.tag}"] if field.tag is not None else []
        marks += [f"default {field.default}"] if field.default is not None else []
        marks += [f"entity {field.source.entity}"] if field.source.entity else []
        marks += ["map key"] if field.source.map_key else []
        marks += ["ignorable"] if field.source.ignorable else []
        marks += [f"since Kafka {field.source.since}"] if field.source.since else []
        marks += [f"KIP-{number}" for number in field_kips(message_layout.message, place)]
        indent = "  " + "  " * row.depth
        field_line(".".join(row.path), ", ".join(marks), indent)
        text = sentence(message_layout.message, place)
        if text:
            prose(text, indent + "  ")
        for values in named_values(message_layout.message, place, message_layout.version):
            prose(values_text(values), indent + "    ", indent + "  ")


def values_text(values: NamedValues) -> str:
    """`0 Gap, 1 Accept…` on one line, with the condition under which it applies."""
    when = f"if {values.condition[0]} is {values.condition[1]}: " if values.condition else ""
    lead = {"bits": "bits: ", "special": "special: "}.get(values.kind, "")
    words = [f"{v.value} {v.name}" if values.kind != "strings" else v.name for v in values.values]
    words += [f"= {v.value} {v.name}" for v in values.whole]
    return when + lead + ", ".join(words)


def catalog_path(message_layout: Layout, path: tuple[str, ...]) -> tuple[str, ...]:
    """The catalog's names for a `path` with a release's names."""
    fields, names = message_layout.fields, []
    for part in path:
        field = next(f for f in fields if f.kafka_name == part)
        names.append(field.source.name)
        fields = field.fields
    return tuple(names)


def _example(message_layout: Layout) -> None:
    name, version, release = message_layout.message.name, message_layout.version, message_layout.release
    value = example(name, version, release)
    heading("Example")
    print_json(to_json(name, version, value, release))
    heading("Bytes of the example")
    data, annotations = annotated_frame(message_layout, value)
    print_hex(data, annotations)
    if width() > 60:
        print()
        named = "" if message_layout.message.kind == "request" else f"--as {name}:{version} "
        remark(f"kafkascope decode {named}HEX decodes them.")


def page_json(message_layout: Layout) -> dict[str, Any]:
    name, version, release = message_layout.message.name, message_layout.version, message_layout.release
    value = example(name, version, release)
    data = (
        encode_frame(name, version, value, example_header(name, version), release)
        if message_layout.message.api
        else encode(name, version, value, release)
    )
    return {
        "message": message_json(message_layout.message),
        "version": version_json(message_layout.message, version),
        "release": release,
        "kips": kips_of(message_layout.message, version),
        "errors": [message_error_json(error) for error in errors_of(message_layout.message, version)],
        "wire": [
            {
                "part": title,
                "path": ".".join(row.path),
                "kind": row.kind,
                "offset": row.offset,
                "exactOffset": not row.floating,
                "encoding": row.encoding,
                "size": row.size,
            }
            for title, part, offset, floating in parts_of(message_layout)
            for row in diagram(part, offset, floating)
        ],
        "schema": typed_json(message_layout),
        "example": to_json(name, version, value, release),
        "exampleHex": data.hex(),
    }
