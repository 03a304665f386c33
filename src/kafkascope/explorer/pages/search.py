"""The search page for browsers without script. Only the server has it."""

from kafkascope.explorer.facts.search.find import search
from kafkascope.explorer.page import Kind, Page

# Names in Kafka are much shorter.
_LONGEST = 100


def make(q: str) -> Page:
    query = q.strip()[:_LONGEST]
    results = [{"kind": e.kind, "text": e.text, "about": e.about, "address": e.address} for e in search(query)]
    return Page(f"Search: {query}" if query else "Search", {"asked": query, "found": results})


KIND = Kind("search", "search.html", "search.html", make, query=("q",))
