"""Lists Kafka's releases in order, with how much the catalog knows of each."""

from dataclasses import dataclass
from functools import cache

from kafkascope.errors import UsageError
from kafkascope.schema.files import lines


@dataclass(frozen=True, slots=True)
class Release:
    """`coverage`: `all`, `clients` (its other jars aren't published yet), `versions` (only version ranges)."""

    name: str
    version: str
    coverage: str


@cache
def releases() -> tuple[Release, ...]:
    """Oldest first."""
    return tuple(Release(*line.split()) for line in lines("releases.txt"))


@cache
def release_order() -> dict[str, int]:
    return {release.name: index for index, release in enumerate(releases())}


def newest_release() -> str:
    return releases()[-1].name


def check_release(name: str) -> str:
    """`4.3.1` and `4.3` mean the release 4.3, `0.11.0.3` means 0.11: before 1.0 versions had four parts."""
    if not isinstance(name, str):
        raise UsageError(f'a release must be text such as "{newest_release()}", not {type(name).__name__}')
    order = release_order()
    shorter = name.rpartition(".")[0]
    shortest = shorter.rpartition(".")[0] if name.startswith("0.") and name.count(".") == 3 else ""
    for candidate in (name, shorter, shortest):
        if candidate in order:
            return candidate
    shown_name = name or "''"
    oldest, *_, newest = releases()
    raise UsageError(f"release {shown_name} isn't in the catalog; it knows {oldest.name} to {newest.name}")


@dataclass(frozen=True, slots=True)
class ReleaseSpan:
    """First and last release of something, by name; `last` is None while it still applies."""

    first: str
    last: str | None

    def __contains__(self, release: str) -> bool:
        order = release_order()
        at = order[release]
        return order[self.first] <= at and (self.last is None or at <= order[self.last])

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first}+"
        return self.first if self.first == self.last else f"{self.first}-{self.last}"


def parse_span(text: str) -> ReleaseSpan:
    if text.endswith("+"):
        return ReleaseSpan(text[:-1], None)
    first, _, last = text.partition("..")
    return ReleaseSpan(first, last or first)


def next_release(name: str) -> str | None:
    order = release_order()
    all_releases = releases()
    at = order[name] + 1
    return all_releases[at].name if at < len(all_releases) else None
