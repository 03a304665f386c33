"""What was asked for in, a page of what is found out: the search of a browser without script; the server has it."""

from kafkascope.explorer.facts.search import search
from kafkascope.explorer.page import Kind, Page

# No name in Kafka is longer, by far.
LONGEST = 100


def make(q: str) -> Page:
    asked = q.strip()[:LONGEST]
    found = [{"kind": e.kind, "text": e.text, "about": e.about, "address": e.address} for e in search(asked)]
    return Page(f"Search: {asked}" if asked else "Search", {"asked": asked, "found": found})


KIND = Kind("search", "search.html", "search.html", make, query=("q",))
