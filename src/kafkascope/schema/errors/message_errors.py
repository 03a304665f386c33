"""Which errors a message can return at a version, by field, and who says so; what is not known stays unknown."""

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
    (seen in a live answer). `fields` is empty where the origin does not say which field carries it."""

    error: ErrorCode
    origin: str
    fields: tuple[str, ...]
    where: str | None  # the place in Kafka's code


@cache
def _in_code() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for line in lines("handler_errors.txt"):
        api, error, where = line.split(" ")
        found.setdefault(api, []).append((error, where))
    return found


@cache
def _checked() -> dict[str, list[tuple[str, tuple[str, ...], Versions, str | None]]]:
    """By API: errors that a person found in the broker's code where the tool does not follow it, with their fields."""
    found: dict[str, list[tuple[str, tuple[str, ...], Versions, str | None]]] = {}
    for line in lines("checked_errors.txt"):
        api, error, fields, versions, where = line.split(" ")
        row = (error, tuple(fields.split(",")), parse_versions(versions), None if where == "-" else where)
        found.setdefault(api, []).append(row)
    return found


@dataclass(frozen=True, slots=True)
class Seen:
    """An error that a live broker answered with, in a field, at some versions."""

    error: str
    place: str
    versions: Versions
    releases: tuple[str, ...]


@cache
def seen_errors() -> dict[str, list[Seen]]:
    """By API; `python -m tools.catalog facts` adds to it."""
    found: dict[str, list[Seen]] = {}
    for line in lines("broker_errors.txt"):
        api, error, place, versions, seen_in = line.split(" ")
        found.setdefault(api, []).append(Seen(error, place, parse_versions(versions), tuple(seen_in.split(","))))
    return found


def errors_of(message: Message, version: int | None = None) -> list[MessageError]:
    """Of a response, or of a request's response; sorted by name. The definition's word comes before the code's; a live
    broker's adds what neither names, and the field where the code alone does not tell it."""
    if message.api is None:
        return []
    response = read_message(f"{message.api}Response")
    places = error_fields(response, version)
    only = places if len(places) == 1 else ()
    found: dict[str, MessageError] = {}
    for listed in response.errors:
        if version is None or version in listed.versions:
            error = by_name()[listed.name]
            fields = tuple(p for p in places if p.rpartition(".")[2] in listed.fields) if listed.fields else only
            found[listed.name] = MessageError(error, "definition", fields, None)
    for name, where in _in_code().get(message.api, []):
        error = by_name()[name]
        if name not in found and not _came_too_late(error, response, version):
            found[name] = MessageError(error, "code", only, where)
    for name, fields, versions, where in _checked().get(message.api, []):
        known = found.get(name)
        if (version is None or version in versions) and (
            known is None or (known.origin == "code" and not known.fields)
        ):
            found[name] = MessageError(by_name()[name], "code", tuple(f for f in fields if f in places), where)
    for name, fields in _seen_places(message.api, version).items():
        known = found.get(name)
        if known is None:
            found[name] = MessageError(by_name()[name], "broker", fields, None)
        elif known.origin == "code" and not known.fields:
            found[name] = MessageError(known.error, "broker", fields, known.where)
    return [found[name] for name in sorted(found)]


def _seen_places(api: str, version: int | None) -> dict[str, tuple[str, ...]]:
    """Error to the fields that it was seen in."""
    found: dict[str, tuple[str, ...]] = {}
    for seen in seen_errors().get(api, ()):
        if (version is None or version in seen.versions) and seen.place not in found.get(seen.error, ()):
            found[seen.error] = (*found.get(seen.error, ()), seen.place)
    return found


def _came_too_late(error: ErrorCode, response: Message, version: int | None) -> bool:
    """Whether the last release with this version is older than the error."""
    if version is None:
        return False
    order = release_order()
    spans = response.releases_of(version)
    last = spans[-1].last if spans else None
    return last is not None and order[last] < order[error.release]


def error_fields(message: Message, version: int | None = None) -> tuple[str, ...]:
    """The places of int16 fields that carry an error code: `Responses.Partitions.AcknowledgeErrorCode`."""
    block = next(b for b in message.blocks if version is None or version in b.versions)
    found: list[str] = []

    def visit(fields: tuple[Field, ...], prefix: str) -> None:
        for field in fields:
            if version is not None and version not in field.versions:
                continue
            if field.type == "int16" and is_error_field(field.name):
                found.append(prefix + field.name)
            visit(field.fields, f"{prefix}{field.name}.")

    visit(block.fields, "")
    return tuple(found)


def is_error_field(name: str) -> bool:
    """Kafka's error code fields all end so: ErrorCode, AcknowledgeErrorCode, PartitionErrorCode…"""
    return name.lower().endswith("errorcode")
