"""Defines the limits on concurrent pages whose cost depends on the lake rather than the address."""

from kafkascope.explorer.gate import Gate
from kafkascope.limits import MAX_LAKE_PAGES_AT_ONCE, MAX_REREADS_AT_ONCE

LAKE, REREAD = "lake", "reread"


def server_gates() -> dict[str, Gate]:
    """Gates by the name in `Kind.gate`. Pages without a gate take milliseconds and never use up their threads."""
    return {
        LAKE: Gate("other pages of the lake are being rendered", MAX_LAKE_PAGES_AT_ONCE),
        REREAD: Gate("another recording is being read", MAX_REREADS_AT_ONCE),
    }
