"""The page of an error: its cause and remedy, the APIs and fields that return it, and its form in logs."""

from collections.abc import Iterator
from typing import Any

from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.api_facts import family_of
from kafkascope.schema.catalog import message
from kafkascope.schema.errors.error_codes import ErrorCode, cause_and_remedy, error_codes, find_error
from kafkascope.schema.errors.error_users import ErrorUse, uses_of
from kafkascope.schema.errors.exceptions import java_exceptions
from kafkascope.schema.export import error_json
from kafkascope.schema.layouts.layout import camel_case
from kafkascope.schema.model import Field
from kafkascope.schema.versions import format_versions

_ORIGINS = {"definition": "Kafka's definition file", "code": "Kafka's compiled broker", "broker": "a live broker"}


def make(name: str) -> Page:
    error = find_error(name)
    codes = list(error_codes())
    at = codes.index(error.code)
    uses = uses_of(error)
    facts = {
        **error_json(error),
        "earlier": [_earlier(alias) for alias in error.aliases],
        "uses": [_use(use) for use in uses],
        "origins": {origin: _ORIGINS[origin] for origin in sorted({use.origin for use in uses})},
        "java": _java(error),
        "log": _log(error, uses),
        "before": _neighbour(codes[at - 1]) if at else None,
        "after": _neighbour(codes[at + 1]) if at + 1 < len(codes) else None,
    }
    return Page(f"{error.name} ({error.code})", facts, facts["cause"])


def _earlier(alias: str) -> dict[str, Any]:
    cause, remedy = cause_and_remedy(alias)
    return {"name": alias, "cause": cause, "remedy": remedy}


def _neighbour(code: int) -> dict[str, Any]:
    return {"code": code, "name": error_codes()[code].name}


def _use(use: ErrorUse) -> dict[str, Any]:
    return {
        "api": use.api,
        "family": family_of(use.api),
        "versions": format_versions(list(use.versions)),
        "newest": use.versions[-1],
        "origin": use.origin,
        "fields": list(use.fields),
        "where": use.where,
        "messageFields": _message_fields(use),
    }


def _message_fields(use: ErrorUse) -> list[str]:
    """The fields with the broker's own message beside the code, in the newest of these versions."""
    version = use.versions[-1]
    definition = message(f"{use.api}Response")
    block = next(block for block in definition.blocks if version in block.versions)
    places = []
    for place in use.fields:
        *parents, last = place.split(".")
        fields: tuple[Field, ...] = block.fields
        for parent in parents:
            fields = next(field.fields for field in fields if field.name == parent)
        text_field = last.removesuffix("Code") + "Message"
        places += [
            ".".join((*parents, text_field))
            for field in fields
            if field.name == text_field and version in field.versions
        ]
    return places


def _java(error: ErrorCode) -> dict[str, Any] | None:
    exception = java_exceptions().get(error.exception or "")
    if exception is None:
        return None
    return {"exception": exception.full_name, "parents": list(exception.parents), "promise": exception.promise}


def _log(error: ErrorCode, uses: tuple[ErrorUse, ...]) -> list[dict[str, str]]:
    """The texts to look for, and the logs that have them."""
    exception = java_exceptions().get(error.exception or "")
    rows = []
    if exception:
        rows = [
            {"text": f"{exception.full_name}: …", "where": "a consumer or producer that throws it"},
            {
                "text": f"java.util.concurrent.ExecutionException: {exception.full_name}: …",
                "where": "a future of the producer or of Admin",
            },
        ]
    names = {camel_case(field.rpartition(".")[2]) for use in uses for field in use.fields} or {"errorCode"}
    for name in sorted(names, key=lambda item: (item != "errorCode", item)):
        rows.append({"text": f"{name}={error.code}", "where": "a Java client's log at DEBUG, in received responses"})
        rows.append({"text": f'"{name}":{error.code}', "where": "a broker's request log"})
    return rows


def every() -> Iterator[dict[str, str]]:
    for error in error_codes().values():
        yield {"name": error.name}


KIND = Kind("error", "error/{name}.html", "error.html", make, every)
