"""Resolves one version of a message in one release to the `Layout` that the codec uses."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from kafkascope.errors import UsageError
from kafkascope.schema.catalog import message as read_message
from kafkascope.schema.model import Block, Field, Message
from kafkascope.schema.releases import check_release, release_order
from kafkascope.schema.versions import format_versions

# Bytes on the wire; all other types have a length of their own.
FIXED_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
ZERO_UUID = UUID(int=0)
# Up to this many are listed one by one if a requested version doesn't exist.
_FEW_VERSIONS = 4


@dataclass(frozen=True, slots=True)
class LayoutField:
    """A field at one version. `name` is the JSON name; `aliases` are other spellings that JSON may use for it."""

    name: str
    kafka_name: str
    aliases: tuple[str, ...]
    type: str  # a primitive or `struct`
    array: bool
    nullable: bool
    tag: int | None
    default: str | None
    compact: bool
    minimum: int  # the fewest bytes that it takes, 0 when tagged
    element_minimum: int  # the same for one element of an array
    fields: tuple["LayoutField", ...]
    source: Field

    @property
    def fixed_size(self) -> int | None:
        return None if self.array else FIXED_SIZES.get(self.type)

    def default_value(self) -> Any:
        """The value of a missing field; a new object each time, since lists and dicts can be changed."""
        if self.default == "null":
            return None
        if self.array:
            return []
        if self.type == "struct":
            return {child.name: child.default_value() for child in self.fields}
        if self.type == "records":
            return None if self.nullable else b""
        if self.type == "bool":
            return self.default == "true"
        if self.type == "string":
            return self.default or ""
        if self.type == "bytes":
            return b""
        if self.type == "uuid":
            return ZERO_UUID
        if self.type == "float64":
            return float(self.default or 0)
        return int(self.default or 0)


@dataclass(frozen=True, slots=True)
class Layout:
    """`release` is None for the newest release that has the version."""

    message: Message
    version: int
    release: str | None
    flexible: bool
    fields: tuple[LayoutField, ...]

    @property
    def title(self) -> str:
        return f"{self.message.name} v{self.version}"


def layout(name: str, version: int, release: str | None = None) -> Layout:
    """By the message's current or earlier name. UsageError lists the existing versions and releases."""
    if release is None:
        return _layout(name, version, None)
    chosen = _layout(name, version, check_release(release))
    if release in chosen.message.patches_without(chosen.version):
        raise UsageError(f"{chosen.title} isn't in Kafka {release}, though other patches of {chosen.release} have it")
    return chosen


# Bounded: 1,100 layouts exist, and each keeps its compiled functions alive.
@lru_cache(maxsize=2048)
def _layout(name: str, version: int, release: str | None) -> Layout:
    from kafkascope.schema.names import find

    message = read_message(find(name))
    if not hasattr(version, "__index__"):
        raise UsageError(f"a version must be a number, not {type(version).__name__}")
    # A number of numpy or an enum finds the same layout as its int, so the layout must store the int.
    version = int(version)
    spans = message.releases_of(version)
    if not spans:
        raise UsageError(f"{message.name} has no version {version}; {describe_versions(message)}")
    if release is not None and not any(release in span for span in spans):
        having = ", ".join(map(str, spans))
        raise UsageError(f"{message.name} v{version} isn't in Kafka {release}; releases that have it: {having}")
    block = choose_block(message, version, release)
    flexible = version in block.flexible
    fields = _resolve(block.fields, version, release, flexible, message)
    return Layout(message, version, release, flexible, fields)


def describe_versions(message: Message) -> str:
    """`it has 0-2 (v0 in 3.9-4.0; v1 in 4.1+; v2 in 4.2+)`; if there are many, the removed ones and the newest."""
    versions = message.all_versions()
    spans = {version: ", ".join(map(str, message.releases_of(version))) for version in versions}
    if len(versions) <= _FEW_VERSIONS:
        listed = "; ".join(f"v{version} in {spans[version]}" for version in versions)
        return f"it has {format_versions(versions)} ({listed})"
    gone: dict[str, list[int]] = {}
    for version in versions:
        if not spans[version].endswith("+"):
            gone.setdefault(spans[version].rpartition("-")[2], []).append(version)
    parts = [f"v{format_versions(group)} up to Kafka {last}" for last, group in gone.items()]
    parts.append(f"v{versions[-1]} in {spans[versions[-1]]}")
    return f"it has {format_versions(versions)} ({'; '.join(parts)})"


def choose_block(message: Message, version: int, release: str | None) -> Block:
    """The layout that a release gives a version, or the newest one."""
    newest: Block | None = None
    for block in message.blocks:
        if version not in block.versions:
            continue
        if block.releases is None:
            newest = newest or block
        elif release is not None and release in block.releases:
            return block
    assert newest is not None, f"{message.name} v{version} has no layout"
    return newest


def _resolve(
    fields: tuple[Field, ...], version: int, release: str | None, flexible: bool, message: Message
) -> tuple[LayoutField, ...]:
    order = release_order()
    resolved = []
    for field in fields:
        if version not in field.versions:
            continue
        if release is not None and field.since is not None and order[field.since] > order[release]:
            continue
        kafka_name = field.name_in(release)
        names = {field.name, *(earlier for earlier, _ in field.was)} - {kafka_name}
        children = _resolve(field.fields, version, release, flexible, message)
        tag = field.tag if version in field.tagged else None
        nullable = version in field.nullable
        compact = flexible and not field.classic
        element = _minimum(field, children, compact, nullable and not field.array, flexible)
        resolved.append(
            LayoutField(
                name=camel_case(kafka_name),
                kafka_name=kafka_name,
                aliases=(kafka_name, *(spelling for name in sorted(names) for spelling in (camel_case(name), name))),
                type="struct" if field.is_struct else field.type,
                array=field.array,
                nullable=nullable,
                tag=tag,
                default=field.default,
                compact=compact,
                minimum=0 if tag is not None else (1 if compact else 4) if field.array else element,
                element_minimum=element,
                fields=children,
                source=field,
            )
        )
    return tuple(resolved)


def _minimum(field: Field, children: tuple[LayoutField, ...], compact: bool, nullable: bool, flexible: bool) -> int:
    if field.is_struct:
        return 1 if nullable else sum(child.minimum for child in children) + (1 if flexible else 0)
    if field.type in FIXED_SIZES:
        return FIXED_SIZES[field.type]
    if field.type == "string":
        return 1 if compact else 2
    return 1 if compact else 4


def camel_case(name: str) -> str:
    """Kafka's JSON converters lower-case the first letter and nothing else."""
    return name[:1].lower() + name[1:]
