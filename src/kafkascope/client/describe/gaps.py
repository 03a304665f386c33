"""An error code that a broker answered with in; out what a view lacks for it, and the ACL that would bring it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafkascope.errors import DecodeError, ReachError, RefusedError
from kafkascope.schema.api_facts import api_facts
from kafkascope.schema.errors.error_codes import error_codes, error_name

# Each of these errors is about one type of resource.
RESOURCES = {29: "Topic", 30: "Group", 31: "Cluster", 53: "TransactionalId", 65: "DelegationToken"}
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


def gap(what: str, api: str, code: int, resource: str | None = None, detail: str | None = None) -> Gap:
    """`resource` is the name that was asked for: a topic, a group, a transactional id."""
    return Gap(what, api, error_name(code), code, needed(api, code, resource), detail or None)


def not_served(what: str, api: str, detail: str | None = None) -> Gap:
    """The brokers lack the API, or every version of it that is known here."""
    return Gap(what, api, NOT_SERVED, None, None, detail)


def no_answer(what: str, api: str, error: Exception) -> Gap:
    """Nobody answered who could have told, or not with what can be read."""
    return Gap(what, api, NO_ANSWER, detail=str(error))


def needed(api: str, code: int, resource: str | None) -> str | None:
    """The ACL by its operation and resource, as the catalog's facts about the API have it."""
    kind = RESOURCES.get(code)
    if kind is None:
        return None
    operation = next((operation for operation, of, _ in api_facts(api).acls if of == kind), "Describe")
    name = "" if kind == "Cluster" else f" {resource}" if resource else ", each one it is about"
    return f"{operation} on {kind}{name}"


def is_denied(code: int | None) -> bool:
    return code in RESOURCES


def refused(lack: Gap, address: object = "") -> RefusedError:
    """For a view of which nothing is left."""
    said = f"{lack.api}{f' at {address}' if str(address) else ''}: {lack.error}"
    if lack.code is not None:
        said += f" ({lack.code})"
    if lack.needs:
        said += f"; it needs {lack.needs}"
    elif lack.detail:
        said += f"; {lack.detail}"
    return RefusedError(said, lack.code if lack.code is not None else -1)


def first(rows: Sequence[Any], api: str) -> Any:
    """What was asked for, alone in its answer; an answer without it is no broker's."""
    if not rows:
        raise RefusedError(f"{api}: the answer holds nothing of what was asked for; is this a Kafka broker?", -1)
    return rows[0]


def merged(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Each once, in the order they were found; of one that several questions met, what was said first."""
    found: dict[tuple[str, str, str, str | None], Gap] = {}
    for one in gaps:
        found.setdefault((one.what, one.api, one.error, one.needs), one)
    return tuple(found.values())


def retriable(code: int) -> bool:
    known = error_codes().get(code)
    return known is not None and known.retriable
