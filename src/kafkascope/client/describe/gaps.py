"""Gaps of a view: what could not be fetched, the error, and the ACL that would allow it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafkascope.errors import DecodeError, ReachError, RefusedError
from kafkascope.schema.api_facts import api_facts
from kafkascope.schema.errors.error_codes import error_codes, error_name

# Each of these errors is about one type of resource.
_RESOURCES = {29: "Topic", 30: "Group", 31: "Cluster", 53: "TransactionalId", 65: "DelegationToken"}
# Beside Kafka's own errors: the brokers lack the API; a node did not answer in time; what we have no right to is left
# out of an answer, without a word; there are more nodes than are asked, or no time to ask them.
NOT_SERVED, NO_ANSWER, LEFT_OUT, UNASKED = "NOT_SERVED", "NO_ANSWER", "LEFT_OUT", "UNASKED"
GROUP_ID_NOT_FOUND = 69
# Why a node has no part in a view: it doesn't respond, or what it sends is not a response.
FAILURES = (ReachError, DecodeError)
Failure = ReachError | DecodeError


@dataclass(frozen=True, slots=True)
class Gap:
    """`what` the view lacks, since `api` answered `error`. `needs` is the ACL, `Describe on Topic orders`, where rights
    are the reason; `detail` is what the broker said of it, where it said something."""

    what: str
    api: str
    error: str
    code: int | None = None
    needs: str | None = None
    detail: str | None = None


def error_gap(label: str, api: str, code: int, resource: str | None = None, detail: str | None = None) -> Gap:
    """`resource` is the name that was asked for: a topic, a group, a transactional id."""
    return Gap(label, api, error_name(code), code, needed_acl(api, code, resource), detail or None)


def not_served_gap(label: str, api: str, detail: str | None = None) -> Gap:
    """The brokers lack the API, or every version of it that is known here."""
    return Gap(label, api, NOT_SERVED, None, None, detail)


def failure_gap(label: str, api: str, error: Exception) -> Gap:
    """No node that knows it responded, or none with a readable response."""
    return Gap(label, api, NO_ANSWER, detail=str(error))


def needed_acl(api: str, code: int, resource: str | None) -> str | None:
    """The ACL by its operation and resource, as the catalog's facts about the API have it."""
    kind = _RESOURCES.get(code)
    if kind is None:
        return None
    operation = next(
        (operation for operation, resource_type, _ in api_facts(api).acls if resource_type == kind), "Describe"
    )
    name = "" if kind == "Cluster" else f" {resource}" if resource else ", each one it is about"
    return f"{operation} on {kind}{name}"


def refused_error(gap: Gap, address: object = "") -> RefusedError:
    """For a view of which nothing is left."""
    text = f"{gap.api}{f' at {address}' if str(address) else ''}: {gap.error}"
    if gap.code is not None:
        text += f" ({gap.code})"
    if gap.needs:
        text += f"; it needs {gap.needs}"
    elif gap.detail:
        text += f"; {gap.detail}"
    return RefusedError(text, gap.code if gap.code is not None else -1)


def only_row(rows: Sequence[Any], api: str) -> Any:
    """What was asked for, alone in its answer; an answer without it is no broker's."""
    if not rows:
        raise RefusedError(f"{api}: the answer holds nothing of what was asked for; is this a Kafka broker?", -1)
    return rows[0]


def merge_gaps(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Each once, in the order they were found; of one that several calls met, the first."""
    unique: dict[tuple[str, str, str, str | None], Gap] = {}
    for gap in gaps:
        unique.setdefault((gap.what, gap.api, gap.error, gap.needs), gap)
    return tuple(unique.values())


def is_retriable(code: int) -> bool:
    error = error_codes().get(code)
    return error is not None and error.retriable
