"""Defines gaps of a view: what could not be fetched, the error, and the ACL that would allow it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafkascope.errors import DecodeError, ReachError, RefusedError
from kafkascope.schema.api_facts import api_facts
from kafkascope.schema.errors.error_codes import error_codes, error_name

# Each of these errors is about one type of resource.
_RESOURCES = {29: "Topic", 30: "Group", 31: "Cluster", 53: "TransactionalId", 65: "DelegationToken"}
# Besides Kafka's own errors: the brokers lack the API; a node didn't respond in time; a response silently leaves out
# what we have no permission for; there are more nodes than are asked, or no time to ask them.
NOT_SERVED, NO_ANSWER, LEFT_OUT, UNASKED = "NOT_SERVED", "NO_ANSWER", "LEFT_OUT", "UNASKED"
GROUP_ID_NOT_FOUND = 69
# Why a node is missing from a view: it doesn't respond, or its bytes aren't a response.
FAILURES = (ReachError, DecodeError)
Failure = ReachError | DecodeError


@dataclass(frozen=True, slots=True)
class Gap:
    """`what` the view lacks because `api` returned `error`. `needs` is the missing ACL, such as `Describe on Topic
    orders`, `detail` the broker's message, if there is one."""

    what: str
    api: str
    error: str
    code: int | None = None
    needs: str | None = None
    detail: str | None = None


def error_gap(label: str, api: str, code: int, resource: str | None = None, detail: str | None = None) -> Gap:
    """`resource` is the requested name: a topic, a group, a transactional id."""
    return Gap(label, api, error_name(code), code, needed_acl(api, code, resource), detail or None)


def not_served_gap(label: str, api: str, detail: str | None = None) -> Gap:
    """The brokers lack the API, or every known version of it."""
    return Gap(label, api, NOT_SERVED, None, None, detail)


def failure_gap(label: str, api: str, error: Exception) -> Gap:
    """No node that knows it responded, or none with a readable response."""
    return Gap(label, api, NO_ANSWER, detail=str(error))


def needed_acl(api: str, code: int, resource: str | None) -> str | None:
    """The ACL by operation and resource, from the catalog's facts about the API."""
    kind = _RESOURCES.get(code)
    if kind is None:
        return None
    operation = next(
        (operation for operation, resource_type, _ in api_facts(api).acls if resource_type == kind), "Describe"
    )
    name = "" if kind == "Cluster" else f" {resource}" if resource else ", each one it is about"
    return f"{operation} on {kind}{name}"


def refused_error(gap: Gap, address: object = "") -> RefusedError:
    """The error for a view of which nothing is left."""
    text = f"{gap.api}{f' at {address}' if str(address) else ''}: {gap.error}"
    if gap.code is not None:
        text += f" ({gap.code})"
    if gap.needs:
        text += f"; it needs {gap.needs}"
    elif gap.detail:
        text += f"; {gap.detail}"
    return RefusedError(text, gap.code if gap.code is not None else -1)


def only_row(rows: Sequence[Any], api: str) -> Any:
    """The only element of a response; a broker never returns none."""
    if not rows:
        raise RefusedError(f"{api}: the response has nothing of what was requested; is this a Kafka broker?", -1)
    return rows[0]


def merge_gaps(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Each gap once, in order; of equal gaps of several calls, the first."""
    unique: dict[tuple[str, str, str, str | None], Gap] = {}
    for gap in gaps:
        unique.setdefault((gap.what, gap.api, gap.error, gap.needs), gap)
    return tuple(unique.values())


def is_retriable(code: int) -> bool:
    error = error_codes().get(code)
    return error is not None and error.retriable
