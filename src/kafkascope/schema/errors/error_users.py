"""Lists the APIs that return an error, by field and version, with the source of that knowledge."""

from dataclasses import dataclass
from functools import cache

from kafkascope.schema.catalog import apis, message
from kafkascope.schema.errors.error_codes import ErrorCode
from kafkascope.schema.errors.message_errors import errors_of


@dataclass(frozen=True, slots=True)
class ErrorUse:
    """One API at the versions that share this knowledge. `fields` is empty if no source names the field."""

    api: str
    versions: tuple[int, ...]
    origin: str
    fields: tuple[str, ...]
    where: str | None


@cache
def _uses() -> dict[int, tuple[ErrorUse, ...]]:
    by_code: dict[int, dict[tuple[str, str, tuple[str, ...], str | None], list[int]]] = {}
    for api in apis().values():
        response = message(f"{api}Response")
        for version in response.all_versions():
            for item in errors_of(response, version):
                key = (api, item.origin, item.fields, item.where)
                by_code.setdefault(item.error.code, {}).setdefault(key, []).append(version)
    return {
        code: tuple(
            ErrorUse(api, tuple(versions), origin, fields, where)
            for (api, origin, fields, where), versions in uses.items()
        )
        for code, uses in by_code.items()
    }


def uses_of(error: ErrorCode) -> tuple[ErrorUse, ...]:
    """In the order of API keys; an API occurs twice if its versions differ in what is known."""
    return _uses().get(error.code, ())
