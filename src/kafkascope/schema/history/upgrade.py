"""Predicts how an upgrade of brokers from one release to another affects a client: what breaks, what is new.

A client and a broker use the highest version that both have. Versions that a release marks unstable are left out:
neither side uses them unless configured to.
"""

from dataclasses import dataclass

from kafkascope.schema.api_facts import is_for_clients
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.errors.error_codes import ErrorCode
from kafkascope.schema.errors.message_errors import errors_of
from kafkascope.schema.history.compare import Change, compare_layouts, versions_in
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.model import Message
from kafkascope.schema.releases import release_order

_HARMLESS = "added"


@dataclass(frozen=True, slots=True)
class ApiUpgrade:
    """One API. `old` and `new` are the stable versions of each release; `before` and `after` the highest of them;
    `mixed` is the version between a client of one release and a broker of the other, None if they have none in common.
    `changes` are those between `before` and `after`, by message. `strange` are errors that the old release doesn't know
    and that the new one may return in `mixed`."""

    api: str
    for_clients: bool
    old: tuple[int, ...]
    new: tuple[int, ...]
    changes: dict[str, tuple[Change, ...]]
    strange: tuple[ErrorCode, ...]

    @property
    def before(self) -> int | None:
        return self.old[-1] if self.old else None

    @property
    def after(self) -> int | None:
        return self.new[-1] if self.new else None

    @property
    def mixed(self) -> int | None:
        return max(set(self.old) & set(self.new), default=None)

    @property
    def verdict(self) -> str:
        """gone, new, broken (both have it and no version in common), changed, grown (fields were added), or same."""
        if not self.new:
            return "gone"
        if not self.old:
            return "new"
        if self.mixed is None:
            return "broken"
        kinds = {change.what for changes in self.changes.values() for change in changes}
        return "changed" if kinds - {_HARMLESS} else "grown" if kinds else "same"


def upgrade(old: str, new: str) -> list[ApiUpgrade]:
    """In the order of API keys, without APIs that neither release has."""
    steps = (_step(api, old, new) for api in apis().values())
    return [step for step in steps if step.old or step.new]


def _stable_versions(request: Message, release: str) -> list[int]:
    unstable = {version for span, version in request.unstable if release in span}
    return [version for version in versions_in(request, release) if version not in unstable]


def _step(api: str, old: str, new: str) -> ApiUpgrade:
    request, response = message(f"{api}Request"), message(f"{api}Response")
    before, after = _stable_versions(request, old), _stable_versions(request, new)
    changes: dict[str, tuple[Change, ...]] = {}
    if before and after:
        for name in (request.name, response.name):
            differences = compare_layouts(layout(name, before[-1], old), layout(name, after[-1], new))
            changes[name] = tuple(differences)
    common = max(set(before) & set(after), default=None)
    strange: tuple[ErrorCode, ...] = ()
    if common is not None:
        order = release_order()
        strange = tuple(
            item.error for item in errors_of(response, common) if order[old] < order[item.error.release] <= order[new]
        )
    return ApiUpgrade(api, is_for_clients(api), tuple(before), tuple(after), changes, strange)
