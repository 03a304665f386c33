"""Lists the errors that a message can return at a version, by field and source. Unknown facts stay unknown."""

from dataclasses import dataclass
from functools import cache

from kafkascope.schema.catalog import message as read_message
from kafkascope.schema.errors.error_codes import ErrorCode, by_name
from kafkascope.schema.files import lines
from kafkascope.schema.model import Field, Message
from kafkascope.schema.releases import release_order
from kafkascope.schema.versions import Versions, parse_versions


@dataclass(frozen=True, slots=True)
class MessageError:
    """`origin` is `definition` (the list in Kafka's definition file), `code` (Kafka's compiled broker) or `broker`
    (seen in a live response). `fields` is empty if the origin doesn't name the field."""

    error: ErrorCode
    origin: str
    fields: tuple[str, ...]
    where: str | None  # the place in Kafka's code


@cache
def _in_code() -> dict[str, list[tuple[str, str]]]:
    by_api: dict[str, list[tuple[str, str]]] = {}
    for line in lines("handler_errors.txt"):
        api, error, where = line.split(" ")
        by_api.setdefault(api, []).append((error, where))
    return by_api


@cache
def _checked() -> dict[str, list[tuple[str, tuple[str, ...], Versions, str | None]]]:
    """By API: errors that a person found in the broker's code where the tool can't follow it, with their fields."""
    by_api: dict[str, list[tuple[str, tuple[str, ...], Versions, str | None]]] = {}
    for line in lines("checked_errors.txt"):
        api, error, fields, versions, where = line.split(" ")
        row = (error, tuple(fields.split(",")), parse_versions(versions), None if where == "-" else where)
        by_api.setdefault(api, []).append(row)
    return by_api


@dataclass(frozen=True, slots=True)
class SeenError:
    """An error that a live broker returned, in a field, at some versions."""

    error: str
    place: str
    versions: Versions
    releases: tuple[str, ...]


@cache
def seen_errors() -> dict[str, list[SeenError]]:
    """By API; `python -m tools.catalog facts` adds to it."""
    by_api: dict[str, list[SeenError]] = {}
    for line in lines("broker_errors.txt"):
        api, error, place, versions, seen_in = line.split(" ")
        by_api.setdefault(api, []).append(SeenError(error, place, parse_versions(versions), tuple(seen_in.split(","))))
    return by_api


def errors_of(message: Message, version: int | None = None) -> list[MessageError]:
    """Of a response, or of a request's response; sorted by name. The definition takes precedence over the code; a live
    broker adds errors that neither names, and the field if the code alone doesn't show it."""
    if message.api is None:
        return []
    response = read_message(f"{message.api}Response")
    places = error_fields(response, version)
    only = places if len(places) == 1 else ()
    errors: dict[str, MessageError] = {}
    for listed in response.errors:
        if version is None or version in listed.versions:
            error = by_name()[listed.name]
            fields = tuple(p for p in places if p.rpartition(".")[2] in listed.fields) if listed.fields else only
            errors[listed.name] = MessageError(error, "definition", fields, None)
    for name, where in _in_code().get(message.api, []):
        error = by_name()[name]
        if name not in errors and not _came_too_late(error, response, version):
            errors[name] = MessageError(error, "code", only, where)
    for name, fields, versions, source in _checked().get(message.api, []):
        earlier = errors.get(name)
        if (version is None or version in versions) and (
            earlier is None or (earlier.origin == "code" and not earlier.fields)
        ):
            errors[name] = MessageError(by_name()[name], "code", tuple(f for f in fields if f in places), source)
    for name, fields in _seen_places(message.api, version).items():
        earlier = errors.get(name)
        if earlier is None:
            errors[name] = MessageError(by_name()[name], "broker", fields, None)
        elif earlier.origin == "code" and not earlier.fields:
            errors[name] = MessageError(earlier.error, "broker", fields, earlier.where)
    return [errors[name] for name in sorted(errors)]


def _seen_places(api: str, version: int | None) -> dict[str, tuple[str, ...]]:
    """Error to the fields that it was seen in."""
    fields_by_error: dict[str, tuple[str, ...]] = {}
    for seen in seen_errors().get(api, ()):
        if (version is None or version in seen.versions) and seen.place not in fields_by_error.get(seen.error, ()):
            fields_by_error[seen.error] = (*fields_by_error.get(seen.error, ()), seen.place)
    return fields_by_error


def _came_too_late(error: ErrorCode, response: Message, version: int | None) -> bool:
    """If the last release with this version is older than the error."""
    if version is None:
        return False
    order = release_order()
    spans = response.releases_of(version)
    last = spans[-1].last if spans else None
    return last is not None and order[last] < order[error.release]


def error_fields(message: Message, version: int | None = None) -> tuple[str, ...]:
    """The places of int16 fields that carry an error code: `Responses.Partitions.AcknowledgeErrorCode`."""
    block = next(b for b in message.blocks if version is None or version in b.versions)
    paths: list[str] = []

    def visit(fields: tuple[Field, ...], prefix: str) -> None:
        for field in fields:
            if version is not None and version not in field.versions:
                continue
            if field.type == "int16" and is_error_field(field.name):
                paths.append(prefix + field.name)
            visit(field.fields, f"{prefix}{field.name}.")

    visit(block.fields, "")
    return tuple(paths)


def is_error_field(name: str) -> bool:
    """All of Kafka's error code fields end like this: ErrorCode, AcknowledgeErrorCode, PartitionErrorCode…"""
    return name.lower().endswith("errorcode")
