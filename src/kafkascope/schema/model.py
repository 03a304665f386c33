"""Defines the catalog's classes: `Message`, its `Block`s of `Field`s, and versions by release."""

from dataclasses import dataclass

from kafkascope.schema.releases import ReleaseSpan, release_order
from kafkascope.schema.versions import Versions

_PRIMITIVES = frozenset("bool int8 int16 uint16 int32 uint32 int64 float64 string bytes records uuid".split())


def _name_in(name: str, was: tuple[tuple[str, str], ...], release: str | None) -> str:
    if release is None or not was:
        return name
    order = release_order()
    older = [(order[last], earlier) for earlier, last in was if order[last] >= order[release]]
    return min(older)[1] if older else name


@dataclass(frozen=True, slots=True)
class Field:
    """One field over all versions. `type` is a primitive or the name of a struct; `array` is true for an array of
    it."""

    name: str
    type: str
    array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    default: str | None
    entity: str | None
    map_key: bool
    ignorable: bool
    classic: bool
    since: str | None
    was: tuple[tuple[str, str], ...]  # (earlier name, last release that used it)
    fields: tuple["Field", ...]

    @property
    def is_struct(self) -> bool:
        return self.type not in _PRIMITIVES

    def name_in(self, release: str | None) -> str:
        """The name that a release gives the field."""
        return _name_in(self.name, self.was, release)


@dataclass(frozen=True, slots=True)
class Block:
    """Fields of some versions; `releases` is set if other releases have a different layout for those versions."""

    versions: Versions
    flexible: Versions
    releases: ReleaseSpan | None
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ListedError:
    """An error listed in a definition file: `fields` is empty if the list names none."""

    name: str
    versions: Versions
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """`kind` is request, response, header, data, key, value or metadata."""

    name: str
    kind: str
    key: int | None
    was: tuple[tuple[str, str], ...]
    valid: tuple[tuple[ReleaseSpan, Versions], ...]
    listeners: tuple[tuple[ReleaseSpan, tuple[str, ...]], ...]
    unstable: tuple[tuple[ReleaseSpan, int], ...]
    deprecated: tuple[tuple[ReleaseSpan, Versions], ...]
    patches: tuple[tuple[str, Versions], ...]  # those whose versions differ from their release's newest patch
    kips: tuple[tuple[int, tuple[int, ...]], ...]
    errors: tuple[ListedError, ...]
    blocks: tuple[Block, ...]

    @property
    def api(self) -> str | None:
        """`ShareFetch` for `ShareFetchRequest`; None if it's neither request nor response."""
        if self.kind in ("request", "response"):
            return self.name.removesuffix("Request").removesuffix("Response")
        return None

    def name_in(self, release: str | None) -> str:
        """The name that a release gives the message: 3.9 calls ListConfigResources ListClientMetricsResources."""
        return _name_in(self.name, self.was, release)

    def all_versions(self) -> list[int]:
        """Every version that any release had."""
        return sorted(
            {v for _, versions in self.valid for first, last in versions.ranges for v in range(first, last + 1)}
        )

    def releases_of(self, version: int) -> list[ReleaseSpan]:
        """The releases that have a version, in as few spans as possible, nearly always one."""
        spans: list[ReleaseSpan] = []
        order = release_order()
        for span, versions in self.valid:
            if version not in versions:
                continue
            last = spans[-1].last if spans else None
            if spans and last is not None and order[last] + 1 == order[span.first]:
                spans[-1] = ReleaseSpan(spans[-1].first, span.last)
            else:
                spans.append(span)
        return spans

    def patches_without(self, version: int) -> tuple[str, ...]:
        """Patches that lack a version which their release has: `4.0.0` lacks JoinGroup v0."""
        return tuple(patch for patch, versions in self.patches if version not in versions)

    def versions_in(self, release: str) -> Versions | None:
        """For a release by its short name, or a patch that differs from it."""
        in_patch = dict(self.patches).get(release)
        return in_patch or next((versions for span, versions in self.valid if release in span), None)

    def listeners_in(self, release: str) -> tuple[str, ...]:
        """Empty if the release doesn't serve it, or is older than listeners in definitions (2.8)."""
        return next((names for span, names in self.listeners if release in span), ())
