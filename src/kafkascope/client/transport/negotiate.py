"""Which versions a node serves: a fresh connection in, its ApiVersions answer out, asked newest first and again lower
when the node says so (KIP-511). And of what both sides know, which version to use."""

from collections.abc import Mapping
from functools import cache

from kafkascope import __version__
from kafkascope.client.answer import Answer
from kafkascope.client.transport.connection import Connection
from kafkascope.errors import DecodeError, NotFoundError, ReachError, UsageError
from kafkascope.limits import MAX_APIS
from kafkascope.schema.catalog import message
from kafkascope.schema.versions import format_versions

API_VERSIONS = 18
PRODUCE, FETCH = 0, 1
UNSUPPORTED_VERSION = 35
Ranges = Mapping[int, tuple[int, int]]


async def negotiate(connection: Connection) -> Answer:
    """Greets the connection with the versions. Only error 35 means that a lower version is worth a try."""
    answer = await _ask(connection, _known("ApiVersions")[-1])
    if answer.value["errorCode"] == UNSUPPORTED_VERSION:
        # Since 2.4 the answer names the versions of key 18; brokers before that name none and know 0.
        offered = _ranges(answer).get(API_VERSIONS, (0, 0))
        lower = [version for version in _known("ApiVersions") if offered[0] <= version <= offered[1]]
        answer = await _ask(connection, lower[-1] if lower else 0)
    code = answer.value["errorCode"]
    if code != 0:
        from kafkascope.schema.errors.error_codes import error_name

        raise ReachError(f"{connection.address}: refuses ApiVersions with {error_name(code)} ({code})")
    connection.greet(_true_ranges(_ranges(answer)))
    return answer


async def _ask(connection: Connection, version: int) -> Answer:
    software = {"clientSoftwareName": "kafkascope", "clientSoftwareVersion": __version__} if version >= 3 else {}
    try:
        return await connection.call("ApiVersions", version, software)
    except DecodeError:
        raise ReachError(
            f"{connection.address}: what came is no answer to ApiVersions; it looks like no Kafka, give a broker's port"
        ) from None


def _ranges(answer: Answer) -> dict[int, tuple[int, int]]:
    return {row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in answer.value["apiKeys"][:MAX_APIS]}


def _true_ranges(ranges: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    first_fetch = ranges.get(FETCH, (0, 0))[0]
    if first_fetch >= 4 and ranges.get(PRODUCE, (3, 3))[0] < 3:
        # a 4.x broker advertises Produce v0, for librdkafka's sake, but answers only 3+ (KAFKA-18659)
        ranges[PRODUCE] = (3, ranges[PRODUCE][1])
    return ranges


@cache
def _known(api: str) -> tuple[int, ...]:
    """The versions of an API in the catalog, in order."""
    return tuple(sorted(message(f"{api}Request").all_versions()))


def choose_version(api: str, asked: int | None, connection: Connection) -> int:
    """The newest that both sides know, or the one asked for if both know it."""
    key = message(f"{api}Request").key or 0
    served = connection.versions.get(key)
    if served is None:
        raise NotFoundError(
            f"{api} ({key}): {connection.address} does not serve it; `kafkascope call {connection.address} ApiVersions`"
            " lists what it serves"
        )
    both = [version for version in _known(api) if served[0] <= version <= served[1]]
    if asked is None and both:
        return both[-1]
    if asked is not None and asked in both:
        return asked
    there = format_versions(list(range(served[0], served[1] + 1)))
    if both:
        raise UsageError(f"{api} v{asked}: {connection.address} serves {there}; say one of {format_versions(both)}")
    raise UsageError(
        f"{api}: {connection.address} serves {there}, this catalog knows {format_versions([*_known(api)])}"
    )
