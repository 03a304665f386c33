"""Builds and parses the names of a lake's files: they show a reader whose rows they contain, without opening them."""

# Names begin with this and the ingest.
INGEST_PREFIX = "ingest-"
# Follows the name of an ingest, which is hexadecimal.
PENDING = "p"
# Written by compaction, from files of visible ingests.
COMPACTED = "compacted"


def pending(ingest_id: str) -> str:
    """The name for rows of an ingest that a later one writes again, whole: requests without a response when the
    recording ended."""
    return f"{ingest_id}{PENDING}"


def ingest_of(path: str) -> str | None:
    """The ingest of a file; None if compaction merged it from several."""
    name = path.rsplit("/", 1)[-1]
    return name[len(INGEST_PREFIX) :].split("-", 1)[0] if name.startswith(INGEST_PREFIX) else None
