"""The page of one message at one version: what it is, errors, the wire, every field, schema and example."""

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
    """One message, or request and response of an API: as JSON that is one page or a list of them."""
    found = [layout(name, version, release) for name in names]
    if as_json:
        pages = [page_json(item) for item in found]
        print_json(pages if len(pages) > 1 else pages[0])
        return
    for number, item in enumerate(found):
        if number:
            print()
        if not schema_only:
            show_page(item)
            continue
        if len(found) > 1:
            print(paint(item.title, "bold"))
        print(typed_json(item))


def show_page(found: Layout) -> None:
    _title(found)
    for part in paragraphs(found.message):
        print()
        prose(part)
    if found.message.api:
        show_facts(found.message, found.version)
        heading("Errors" if found.message.kind == "response" else "Errors in the answer")
        print_errors(errors_of(found.message, found.version))
    _wire(found)
    _fields(found)
    heading("Schema")
    print(typed_json(found))
    _example(found)


def _title(found: Layout) -> None:
    known = found.message
    names = (
        f" (called {known.name_in(found.release)} in {found.release})"
        if known.name_in(found.release) != known.name
        else ""
    )
    print(paint(f"{known.name_in(None)} v{found.version}", "bold") + names)
    facts = [f"API key {known.key}" if known.api else known.kind]
    facts.append(f"Kafka {span_text(known.releases_of(found.version))}")
    facts.append("flexible" if found.flexible else "classic encoding")
    facts += [f"not in {patch}" for patch in known.patches_without(found.version)]
    facts += [f"unstable in {span}" for span, unstable in known.unstable if unstable == found.version]
    facts += [f"deprecated in {span}" for span, versions in known.deprecated if found.version in versions]
    remark(" · ".join(facts))
    if any(found.version in block.versions and block.releases for block in known.blocks):
        others = [str(block.releases) for block in known.blocks if block.releases and found.version in block.versions]
        prose(f"Kafka {' and '.join(others)} lays this version out otherwise: --release shows it.")


def parts_of(found: Layout) -> list[tuple[str, Layout, int, bool]]:
    """(title, layout, offset in the frame, floating) of frame header and body; a record has no header."""
    if not found.message.api:
        return [("Body", found, 0, False)]
    number = header_version(found.message.name, found.version)
    header = layout("RequestHeader" if found.message.kind == "request" else "ResponseHeader", number)
    end, floating = fixed_end(header)
    title = f"{'Request' if found.message.kind == 'request' else 'Response'} header v{number}"
    return [(title, header, 4, False), ("Body", found, 4 + end, floating)]


def _wire(found: Layout) -> None:
    heading("On the wire")
    parts = parts_of(found)
    rows: list[tuple[str, ...]] = []
    if found.message.api:
        rows += [("", "", "Frame", ""), ("0", "4", "  message_size", "int32, counts the bytes behind it")]
    for title, part, offset, floating in parts:
        rows.append(("", "", title, ""))
        rows += [_wire_row(row) for row in diagram(part, offset, floating)]
    table(rows, ("at", "bytes", "field", "encoding"))
    remark("at: offset in the frame; ≥ behind something whose length varies.", "  ")


def _wire_row(row: DiagramRow) -> tuple[str, ...]:
    at = f"≥{row.offset}" if row.floating else str(row.offset)
    indent = "  " * (row.depth + 1)
    name = f"{indent}tags of {row.path[-1]}" if row.kind == "tags" and row.path else f"{indent}tags"
    return at, row.size, name if row.kind == "tags" else f"{indent}{row.path[-1]}", row.encoding


def _fields(found: Layout) -> None:
    heading("Fields")
    for row in diagram(found):
        if row.field is None:
            continue
        field, place = row.field, catalog_path(found, row.path)
        marks = [f"{field.source.type if field.type == 'struct' else field.type}{'[]' if field.array else ''}"]
        marks += ["nullable"] if field.nullable else []
        marks += [f"tag {field.tag}"] if field.tag is not None else []
        marks += [f"default {field.default}"] if field.default is not None else []
        marks += [f"entity {field.source.entity}"] if field.source.entity else []
        marks += ["map key"] if field.source.map_key else []
        marks += ["ignorable"] if field.source.ignorable else []
        marks += [f"since Kafka {field.source.since}"] if field.source.since else []
        marks += [f"KIP-{number}" for number in field_kips(found.message, place)]
        indent = "  " + "  " * row.depth
        field_line(".".join(row.path), ", ".join(marks), indent)
        text = sentence(found.message, place)
        if text:
            prose(text, indent + "  ")
        for values in named_values(found.message, place, found.version):
            prose(values_text(values), indent + "    ", indent + "  ")


def values_text(values: NamedValues) -> str:
    """`0 Gap, 1 Accept…` on one line, with the condition it holds under."""
    when = f"where {values.condition[0]} is {values.condition[1]}: " if values.condition else ""
    lead = {"bits": "bits: ", "special": "special: "}.get(values.kind, "")
    words = [f"{v.value} {v.name}" if values.kind != "strings" else v.name for v in values.values]
    words += [f"= {v.value} {v.name}" for v in values.whole]
    return when + lead + ", ".join(words)


def catalog_path(found: Layout, path: tuple[str, ...]) -> tuple[str, ...]:
    """Names as the catalog has them, where `path` has the release's."""
    fields, names = found.fields, []
    for part in path:
        field = next(f for f in fields if f.kafka_name == part)
        names.append(field.source.name)
        fields = field.fields
    return tuple(names)


def _example(found: Layout) -> None:
    name, version, release = found.message.name, found.version, found.release
    value = example(name, version, release)
    heading("Example")
    print_json(to_json(name, version, value, release))
    heading("Its bytes")
    data, annotations = annotated_frame(found, value)
    print_hex(data, annotations)
    if width() > 60:
        print()
        named = "" if found.message.kind == "request" else f"--as {name}:{version} "
        remark(f"kafkascope decode {named}HEX reads them back.")


def page_json(found: Layout) -> dict[str, Any]:
    name, version, release = found.message.name, found.version, found.release
    value = example(name, version, release)
    data = (
        encode_frame(name, version, value, example_header(name, version), release)
        if found.message.api
        else encode(name, version, value, release)
    )
    return {
        "message": message_json(found.message),
        "version": version_json(found.message, version),
        "release": release,
        "kips": kips_of(found.message, version),
        "errors": [message_error_json(error) for error in errors_of(found.message, version)],
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
            for title, part, offset, floating in parts_of(found)
            for row in diagram(part, offset, floating)
        ],
        "schema": typed_json(found),
        "example": to_json(name, version, value, release),
        "exampleHex": data.hex(),
    }
