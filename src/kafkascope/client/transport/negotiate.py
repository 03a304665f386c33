"""Negotiates API versions on a new connection: tries the newest ApiVersions first and a lower one if the node asks for
it (KIP-511). Also chooses the version of a call."""

from collections.abc import Mapping
from functools import cache

from kafkascope import __version__
from kafkascope.client.answer import Answer
from kafkascope.client.transport.connection import Connection
from kafkascope.errors import DecodeError, NotFoundError, ReachError, UsageError
from kafkascope.limits import MAX_APIS
from kafkascope.schema.catalog import message
from kafkascope.schema.versions import format_versions

_API_VERSIONS = 18
_PRODUCE, _FETCH = 0, 1
UNSUPPORTED_VERSION = 35
Ranges = Mapping[int, tuple[int, int]]


async def negotiate(connection: Connection) -> Answer:
    """Gets the node's versions. Only error 35 means that a lower version may work."""
    response = await _call_api_versions(connection, _known_versions("ApiVersions")[-1])
    if response.value["errorCode"] == UNSUPPORTED_VERSION:
        # Since 2.4 the response has the versions of key 18; older brokers have none and know 0.
        offered = _ranges(response).get(_API_VERSIONS, (0, 0))
        lower = [version for version in _known_versions("ApiVersions") if offered[0] <= version <= offered[1]]
        response = await _call_api_versions(connection, lower[-1] if lower else 0)
    code = response.value["errorCode"]
    if code != 0:
        from kafkascope.schema.errors.error_codes import error_name

        raise ReachError(f"{connection.address}: the node refuses ApiVersions with {error_name(code)} ({code})")
    connection.greet(_true_ranges(_ranges(response)))
    return response


async def _call_api_versions(connection: Connection, version: int) -> Answer:
    software = {"clientSoftwareName": "kafkascope", "clientSoftwareVersion": __version__} if version >= 3 else {}
    try:
        return await connection.call("ApiVersions", version, software)
    except DecodeError:
        raise ReachError(
            f"{connection.address}: the bytes aren't a response to ApiVersions; this isn't Kafka: give a broker's port"
        ) from None


def _ranges(response: Answer) -> dict[int, tuple[int, int]]:
    return {row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in response.value["apiKeys"][:MAX_APIS]}


def _true_ranges(ranges: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    first_fetch = ranges.get(_FETCH, (0, 0))[0]
    if first_fetch >= 4 and ranges.get(_PRODUCE, (3, 3))[0] < 3:
        # a 4.x broker advertises Produce v0, for librdkafka, but accepts only 3+ (KAFKA-18659)
        ranges[_PRODUCE] = (3, ranges[_PRODUCE][1])
    return ranges


@cache
def _known_versions(api: str) -> tuple[int, ...]:
    """The versions of an API in the catalog, in order."""
    return tuple(sorted(message(f"{api}Request").all_versions()))


def choose_version(api: str, requested: int | None, connection: Connection) -> int:
    """The newest that both sides know, or the requested one if both know it."""
    key = message(f"{api}Request").key or 0
    served = connection.versions.get(key)
    if served is None:
        raise NotFoundError(
            f"{api} ({key}): {connection.address} doesn't serve it; `kafkascope call {connection.address} ApiVersions`"
            " lists what it serves"
        )
    both = [version for version in _known_versions(api) if served[0] <= version <= served[1]]
    if requested is None and both:
        return both[-1]
    if requested is not None and requested in both:
        return requested
    offered = format_versions(list(range(served[0], served[1] + 1)))
    if both:
        raise UsageError(
            f"{api} v{requested}: {connection.address} serves {offered}; give one of {format_versions(both)}"
        )
    raise UsageError(
        f"{api}: {connection.address} serves {offered}, this catalog knows {format_versions([*_known_versions(api)])}"
    )
