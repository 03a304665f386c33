"""Reads the titles of KIPs, and tells where each is to be read."""

from functools import cache

from kafkascope.schema.files import lines

# A page of the wiki goes by its title, which some have changed: the search finds it by its number.
_WIKI = "https://cwiki.apache.org/confluence/dosearchsite.action?queryString=%22KIP-{}%22"


@cache
def _titles() -> dict[int, str]:
    return {int(number): title for number, _, title in (line.partition(" ") for line in lines("kips.txt"))}


def kip_title(number: int) -> str | None:
    """None where the catalog has no title: the KIP is newer than our list."""
    return _titles().get(number)


def kip_address(number: int) -> str:
    return _WIKI.format(number)
