"""Checks the typed arguments and makes the request, without a connection."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafkascope.client.arguments import request_value
from kafkascope.client.names import ids_for_names, with_placeholders
from kafkascope.client.writes import Effect, effect
from kafkascope.errors import EncodeError, UsageError
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import describe_versions
from kafkascope.schema.targets import parse_target


@dataclass(frozen=True, slots=True)
class RequestedApi:
    """`version` is None for the newest that both sides know."""

    api: str
    version: int | None

    @property
    def candidates(self) -> list[int]:
        """The requested version, or all of the catalog."""
        return message(f"{self.api}Request").all_versions() if self.version is None else [self.version]


@dataclass(frozen=True, slots=True)
class Request:
    """`stand_ins` are topic names to replace by ids, `maybe_ids` texts in place of names that may be ids."""

    api: str
    version: int
    value: dict[str, Any]
    stand_ins: dict[UUID, str]
    maybe_ids: dict[str, UUID]
    effect: Effect

    @property
    def needs_names(self) -> bool:
        return bool(self.stand_ins or self.maybe_ids)


def read_request(text: str, version: int | None) -> RequestedApi:
    """`DescribeQuorum`, `55`, `DescribeQuorum:1`, `DescribeQuorumRequest`; NotFoundError suggests."""
    if not text.partition(":")[0].strip():
        raise UsageError("the API is missing; give its name or key, as in DescribeQuorum; `kafkascope apis` lists them")
    target = parse_target(text)
    api = target.api
    if target.message is not None:
        known = message(target.message)
        if known.kind != "request":
            raise UsageError(f"{known.name} isn't a request; `kafkascope apis` lists the requests")
        api = known.api
    assert api is not None
    if target.version is not None and version is not None and target.version != version:
        raise UsageError(f"{text} is version {target.version}, but --api-version is {version}; leave one out")
    chosen = target.version if version is None else version
    known = message(f"{api}Request")
    if chosen is not None and not known.releases_of(chosen):
        raise UsageError(f"{known.name} has no version {chosen}; {describe_versions(known)}")
    return RequestedApi(api, chosen)


def newest_fitting(api: str, versions: list[int], content: Any) -> Request:
    """The newest version with all given fields. If there is none, EncodeError reports what the newest lacks."""
    wrong: EncodeError | None = None
    for version in reversed(versions):
        try:
            return make_request(api, version, content)
        except EncodeError as error:
            wrong = wrong or error
    assert wrong is not None
    raise wrong


def make_request(api: str, version: int, content: Any) -> Request:
    """EncodeError names the path of the mistake."""
    named, stand_ins = with_placeholders(api, version, content)
    value = request_value(api, version, named)
    return Request(
        api, version, value, stand_ins, ids_for_names(api, version, value), effect(api, version, value, stand_ins)
    )
