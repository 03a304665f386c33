"""Defines the limits on concurrent pages whose cost depends on the lake, not on the address."""

from kafkascope.explorer.gate import Gate
from kafkascope.limits import MAX_LAKE_PAGES_AT_ONCE, MAX_REREADS_AT_ONCE

LAKE, REREAD = "lake", "reread"


def server_gates() -> dict[str, Gate]:
    """By the name that `Kind.gate` has. Pages without a gate take milliseconds, and their threads are never used up."""
    return {
        LAKE: Gate("other pages of the lake are being made", MAX_LAKE_PAGES_AT_ONCE),
        REREAD: Gate("another recording is being read", MAX_REREADS_AT_ONCE),
    }
