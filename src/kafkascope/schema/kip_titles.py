"""Reads the titles of KIPs, and links to their pages."""

from functools import cache

from kafkascope.schema.files import lines

# The address of a wiki page contains its title, which can change: a search finds it by its number.
_WIKI = "https://cwiki.apache.org/confluence/dosearchsite.action?queryString=%22KIP-{}%22"


@cache
def _titles() -> dict[int, str]:
    return {int(number): title for number, _, title in (line.partition(" ") for line in lines("kips.txt"))}


def kip_title(number: int) -> str | None:
    """None if the catalog has no title, because the KIP is newer than our list."""
    return _titles().get(number)


def kip_address(number: int) -> str:
    return _WIKI.format(number)
