"""Exports the catalog as JSON-ready values for other programs; `data/catalog.schema.json` is its JSON Schema."""

from typing import Any

from kafkascope.schema.api_facts import api_facts, family_of, field_kips, kips_of
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import ErrorCode, cause_and_remedy, error_codes
from kafkascope.schema.errors.message_errors import MessageError, errors_of
from kafkascope.schema.model import Block, Field, Message
from kafkascope.schema.prose import paragraphs, sentence
from kafkascope.schema.releases import ReleaseSpan, next_release, releases
from kafkascope.schema.values import NamedValue, NamedValues, named_values

# Increased when a reader of the previous form could no longer read it.
EXPORT_FORMAT = 1


def catalog_json() -> dict[str, Any]:
    """Everything: releases, APIs, messages with their layouts, errors."""
    return {
        "format": EXPORT_FORMAT,
        "releases": [{"name": r.name, "version": r.version, "coverage": r.coverage} for r in releases()],
        "apis": [api_json(key, api) for key, api in apis().items()],
        "messages": [message_json(message(name)) for name in index()],
        "errors": [error_json(error) for error in error_codes().values()],
    }


def api_json(key: int, api: str) -> dict[str, Any]:
    facts = api_facts(api)
    request = message(f"{api}Request")
    return {
        "key": key,
        "name": api,
        "family": family_of(api),
        "prose": list(paragraphs(request)),
        "sentBy": list(facts.sends),
        "acls": [{"operation": o, "resource": r or None, "remark": n or None} for o, r, n in facts.acls],
        "tools": list(facts.tools),
        "adminMethods": list(facts.admin),
        "kips": kips_of(request),
        "errors": [message_error_json(error) for error in errors_of(request)],
    }


def message_json(definition: Message) -> dict[str, Any]:
    return {
        "name": definition.name,
        "kind": definition.kind,
        "key": definition.key,
        "aliases": [{"name": name, "lastRelease": last} for name, last in definition.was],
        "prose": list(paragraphs(definition)),
        "listeners": [{"releases": str(span), "listeners": list(names)} for span, names in definition.listeners],
        "versions": [version_json(definition, version) for version in definition.all_versions()],
        "layouts": [_block(definition, block) for block in definition.blocks],
    }


def version_json(definition: Message, version: int) -> dict[str, Any]:
    spans = definition.releases_of(version)
    return {
        "version": version,
        "since": spans[0].first,
        "removedIn": next_release(spans[-1].last) if spans[-1].last else None,
        "missingInPatches": list(definition.patches_without(version)),
        "flexible": any(version in block.flexible for block in definition.blocks if block.releases is None),
        "unstableIn": [str(span) for span, unstable in definition.unstable if unstable == version],
        "deprecatedIn": [str(span) for span, versions in definition.deprecated if version in versions],
        "kips": kips_of(definition, version),
    }


def _block(definition: Message, block: Block) -> dict[str, Any]:
    return {
        "versions": block.versions.text,
        "flexible": block.flexible.text,
        "releases": str(block.releases) if block.releases else None,
        "fields": [_field(definition, field, ()) for field in block.fields],
    }


def _field(definition: Message, field: Field, above: tuple[str, ...]) -> dict[str, Any]:
    path = (*above, field.name)
    written: dict[str, Any] = {
        "name": field.name,
        "type": field.type,
        "array": field.array,
        "versions": field.versions.text,
        "nullable": field.nullable.text,
        "tag": field.tag,
        "tagged": field.tagged.text,
        "default": field.default,
        "entity": field.entity,
        "mapKey": field.map_key,
        "ignorable": field.ignorable,
        "classicEncoding": field.classic,
        "since": field.since,
        "aliases": [{"name": name, "lastRelease": last} for name, last in field.was],
        "kips": field_kips(definition, path),
        "prose": sentence(definition, path),
        "values": [values_json(values) for values in named_values(definition, path)],
    }
    if field.is_struct:
        written["fields"] = [_field(definition, child, path) for child in field.fields]
    return written


def values_json(values: NamedValues) -> dict[str, Any]:
    def value_json(value: NamedValue) -> dict[str, Any]:
        return {"value": value.value, "name": value.name, "meaning": value.meaning, "versions": value.versions}

    return {
        "name": values.name,
        "kind": values.kind,
        "values": [value_json(value) for value in values.values],
        "whole": [value_json(value) for value in values.whole],
        "when": {"field": values.condition[0], "is": values.condition[1]} if values.condition else None,
    }


def error_json(error: ErrorCode) -> dict[str, Any]:
    cause, remedy = cause_and_remedy(error.name)
    return {
        "code": error.code,
        "name": error.name,
        "retriable": error.retriable,
        "exception": error.exception,
        "since": error.release,
        "aliases": list(error.aliases),
        "cause": cause,
        "remedy": remedy,
    }


def message_error_json(item: MessageError) -> dict[str, Any]:
    return {
        "code": item.error.code,
        "name": item.error.name,
        "origin": item.origin,
        "fields": list(item.fields),
        "where": item.where,
    }


def span_text(spans: list[ReleaseSpan]) -> str:
    return ", ".join(map(str, spans))
