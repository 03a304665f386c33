"""Compares two layouts of a message, or all messages of two releases."""

from collections.abc import Iterator
from dataclasses import dataclass

from kafkascope.schema.catalog import index, message
from kafkascope.schema.layouts.layout import Layout, LayoutField, layout
from kafkascope.schema.model import Message
from kafkascope.schema.versions import format_versions


@dataclass(frozen=True, slots=True)
class Change:
    """`what`: added, removed, renamed, type, nullable, default, tag, encoding. `before` and `after` are short texts."""

    what: str
    path: str
    before: str | None
    after: str | None


def compare_layouts(old: Layout, new: Layout) -> list[Change]:
    changes: list[Change] = []
    if old.flexible != new.flexible:
        words = ("classic", "flexible")
        changes.append(Change("encoding", "", words[old.flexible], words[new.flexible]))
    changes += _compare(old.fields, new.fields, "")
    return changes


def _compare(old: tuple[LayoutField, ...], new: tuple[LayoutField, ...], prefix: str) -> Iterator[Change]:
    taken: set[str] = set()
    for field, match in partners(old, new):
        if match is None:
            yield Change("removed", prefix + field.kafka_name, short_type(field), None)
            continue
        taken.add(match.kafka_name)
        yield from compare_field(field, match, prefix + match.kafka_name)
        yield from _compare(field.fields, match.fields, f"{prefix}{match.kafka_name}.")
    for field in new:
        if field.kafka_name not in taken:
            yield from _added(field, prefix)


def partners(
    old: tuple[LayoutField, ...], new: tuple[LayoutField, ...]
) -> list[tuple[LayoutField, LayoutField | None]]:
    """Each old field with the new one that replaced it, under its own name or an earlier one."""
    by_name = {field.kafka_name: field for field in new}
    by_alias = {alias: field for field in new for alias in field.aliases}
    taken: set[str] = set()
    matches: list[tuple[LayoutField, LayoutField | None]] = []
    for field in old:
        match = by_name.get(field.kafka_name) or by_alias.get(field.kafka_name)
        # An alias may match a field that also exists under its own name.
        if match is None or match.kafka_name in taken or bool(match.fields) != bool(field.fields):
            matches.append((field, None))
            continue
        taken.add(match.kafka_name)
        matches.append((field, match))
    return matches


def _added(field: LayoutField, prefix: str) -> Iterator[Change]:
    yield Change("added", prefix + field.kafka_name, None, short_type(field))


def compare_field(old: LayoutField, new: LayoutField, path: str) -> Iterator[Change]:
    """The field itself, not what is nested in it."""
    if old.kafka_name != new.kafka_name:
        yield Change("renamed", path, old.kafka_name, new.kafka_name)
    if (old.type, old.array) != (new.type, new.array):
        yield Change("type", path, short_type(old), short_type(new))
    if old.nullable != new.nullable:
        yield Change("nullable", path, _yes(old.nullable), _yes(new.nullable))
    if old.tag != new.tag:
        yield Change("tag", path, _maybe(old.tag), _maybe(new.tag))
    if old.default != new.default:
        yield Change("default", path, old.default, new.default)


def short_type(field: LayoutField) -> str:
    element = field.source.type if field.type == "struct" else field.type
    tag = f", tag {field.tag}" if field.tag is not None else ""
    return f"{'[]' if field.array else ''}{element}{'?' if field.nullable else ''}{tag}"


def _yes(value: bool) -> str:
    return "nullable" if value else "not nullable"


def _maybe(value: int | None) -> str | None:
    return None if value is None else str(value)


@dataclass(frozen=True, slots=True)
class MessageChange:
    """One message between two releases. `what`: added, removed, versions, layout, renamed."""

    name: str
    what: str
    before: str | None
    after: str | None
    changes: tuple[tuple[int, Change], ...]  # (version, change) for layouts that differ under one number


def compare_releases(old: str, new: str) -> list[MessageChange]:
    """What changes for a client or broker that is upgraded from one release to another, by message."""
    message_changes: list[MessageChange] = []
    for name in index():
        definition = message(name)
        before, after = versions_in(definition, old), versions_in(definition, new)
        if not before and not after:
            continue
        if not before or not after:
            kind = "removed" if before else "added"
            message_changes.append(MessageChange(name, kind, _text(before), _text(after), ()))
            continue
        changes = tuple(
            (version, change)
            for version in sorted(set(before) & set(after))
            for change in compare_layouts(layout(name, version, old), layout(name, version, new))
        )
        if before != after:
            message_changes.append(MessageChange(name, "versions", _text(before), _text(after), changes))
        elif changes:
            message_changes.append(MessageChange(name, "layout", _text(before), _text(after), changes))
    return message_changes


def versions_in(definition: Message, release: str) -> list[int]:
    versions = definition.versions_in(release)
    return [v for v in definition.all_versions() if versions is not None and v in versions]


def _text(versions: list[int]) -> str | None:
    return format_versions(versions) if versions else None
