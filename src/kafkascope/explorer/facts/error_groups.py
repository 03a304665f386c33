"""Groups errors by field: errors that the same fields carry are listed once, with the fields beside them."""

from typing import Any


def error_groups(by_field: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`by_field` has `field` and `errors`. Groups with most fields come first, errors of unknown fields last."""
    errors: dict[str, dict[str, Any]] = {}
    fields: dict[str, list[str | None]] = {}
    for group in by_field:
        for error in group["errors"]:
            errors[error["name"]] = error
            fields.setdefault(error["name"], []).append(group["field"])
    groups: dict[tuple[str | None, ...], list[dict[str, Any]]] = {}
    for name, places in fields.items():
        groups.setdefault(tuple(places), []).append(errors[name])
    ordered = sorted(groups.items(), key=lambda item: (item[0] == (None,), -len(item[0])))
    return [{"fields": [place for place in places if place], "errors": listed} for places, listed in ordered]
