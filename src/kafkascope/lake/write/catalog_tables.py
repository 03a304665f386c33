"""Writes the catalog as three tables to join with: messages, their fields, error codes. It writes them once, and again
only when the catalog has changed."""

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkascope.columnar.tables import snake_case
from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.write.commit import find_table
from kafkascope.lake.write.files import Files
from kafkascope.lake.write.replace import replace
from kafkascope.schema.catalog import index, message
from kafkascope.schema.errors.error_codes import cause_and_remedy, error_codes
from kafkascope.schema.errors.message_errors import errors_of
from kafkascope.schema.files import DATA_FOLDER
from kafkascope.schema.layouts.layout import LayoutField, layout
from kafkascope.schema.model import Message
from kafkascope.schema.prose import paragraphs, sentence

_TEXT, _TEXTS, _SHORT, _FLAG = pa.string(), pa.list_(pa.string()), pa.int16(), pa.bool_()

CATALOG_MESSAGES = pa.schema(
    [
        ("message", _TEXT),
        ("kind", _TEXT),
        ("api_key", _SHORT),
        ("api", _TEXT),
        ("version", _SHORT),
        ("flexible", _FLAG),
        ("first_release", _TEXT),
        ("last_release", _TEXT),
        ("table_name", _TEXT),
        ("aliases", _TEXTS),
        ("about", _TEXT),
    ]
)
CATALOG_FIELDS = pa.schema(
    [
        ("message", _TEXT),
        ("version", _SHORT),
        ("path", _TEXT),
        ("column_name", _TEXT),
        ("type", _TEXT),
        ("is_array", _FLAG),
        ("nullable", _FLAG),
        ("tag", pa.int32()),
        ("default_value", _TEXT),
        ("entity", _TEXT),
        ("about", _TEXT),
    ]
)
CATALOG_ERRORS = pa.schema(
    [
        ("error_code", _SHORT),
        ("error", _TEXT),
        ("retriable", _FLAG),
        ("exception", _TEXT),
        ("first_release", _TEXT),
        ("aliases", _TEXTS),
        ("cause", _TEXT),
        ("remedy", _TEXT),
        ("apis", _TEXTS),
    ]
)
CATALOG = {
    name: LakeTable(name, schema, None)
    for name, schema in (
        ("catalog_messages", CATALOG_MESSAGES),
        ("catalog_fields", CATALOG_FIELDS),
        ("catalog_errors", CATALOG_ERRORS),
    )
}
_PREFIX = "catalog-"


def write_catalog(lake: Lake) -> bool:
    """Returns False if the lake has this catalog already."""
    if has_catalog(lake):
        return False
    files = Files(lake, "", _prefix())
    for name, rows in catalog_rows().items():
        files.add(CATALOG[name], rows)
    written = files.close()
    for name, table in CATALOG.items():
        replace(lake, table, [file for file in written if file.table == name])
    return True


def has_catalog(lake: Lake) -> bool:
    return all(_has(lake, name) for name in CATALOG)


@cache
def catalog_rows() -> dict[str, pa.Table]:
    rows = {"catalog_messages": _messages(), "catalog_fields": _fields(), "catalog_errors": _errors()}
    return {name: pa.Table.from_pylist(list(rows[name]), schema=table.schema) for name, table in CATALOG.items()}


def _prefix() -> str:
    return f"{_PREFIX}{catalog_digest()}"


def _has(lake: Lake, name: str) -> bool:
    table = find_table(lake, name)
    return table is not None and any(file.path.startswith(f"{_prefix()}-") for file in active_files(table))


@cache
def catalog_digest() -> str:
    """A digest of the catalog and of the columns that it's written to."""
    digest = blake2b(repr([str(table.schema) for table in CATALOG.values()]).encode(), digest_size=8)
    for path in sorted(Path(DATA_FOLDER).rglob("*.txt")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _messages() -> Iterator[dict[str, Any]]:
    for name in index():
        known = message(name)
        about = " ".join(paragraphs(known)) or None
        for version in known.all_versions():
            spans = known.releases_of(version)
            yield {
                "message": name,
                "kind": known.kind,
                "api_key": known.key if known.api else None,
                "api": known.api,
                "version": version,
                "flexible": layout(name, version).flexible,
                "first_release": spans[0].first,
                "last_release": spans[-1].last,
                "table_name": snake_case(name) if known.api else None,
                "aliases": [was for was, _ in known.was],
                "about": about,
            }


def _fields() -> Iterator[dict[str, Any]]:
    for name in index():
        known = message(name)
        for version in known.all_versions():
            yield from _below(known, version, layout(name, version).fields, ())


def _below(
    known: Message, version: int, fields: tuple[LayoutField, ...], above: tuple[LayoutField, ...]
) -> Iterator[dict[str, Any]]:
    for field in fields:
        whole = (*above, field)
        yield {
            "message": known.name,
            "version": version,
            "path": ".".join(field.name for field in whole),
            "column_name": ".".join(snake_case(field.kafka_name) for field in whole) if known.api else None,
            "type": field.type,
            "is_array": field.array,
            "nullable": field.nullable,
            "tag": field.tag,
            "default_value": field.default,
            "entity": field.source.entity,
            "about": sentence(known, tuple(field.source.name for field in whole)),
        }
        yield from _below(known, version, field.fields, whole)


def _errors() -> Iterator[dict[str, Any]]:
    answering: dict[int, set[str]] = {}
    for entry in index().values():
        if entry.kind == "response":
            known = message(entry.name)
            for answered in errors_of(known):
                answering.setdefault(answered.error.code, set()).add(str(known.api))
    for error in error_codes().values():
        cause, remedy = cause_and_remedy(error.name)
        yield {
            "error_code": error.code,
            "error": error.name,
            "retriable": error.retriable,
            "exception": error.exception,
            "first_release": error.release,
            "aliases": list(error.aliases),
            "cause": cause,
            "remedy": remedy,
            "apis": sorted(answering.get(error.code, ())),
        }
