"""Builds and parses the names of a lake's files: a reader sees in them whose rows they hold, without opening them."""

# Names begin with this and the ingest.
INGEST_PREFIX = "ingest-"
# After the name of an ingest, which has only digits up to f.
PENDING = "p"
# Made by compaction, out of files of ingests that all could see.
COMPACTED = "compacted"


def pending(ingest_id: str) -> str:
    """The name for rows of an ingest that a later one will write again, whole: requests that had no response yet when
    the recording ended."""
    return f"{ingest_id}{PENDING}"


def ingest_of(path: str) -> str | None:
    """Whose file this is; None for one that compaction made out of several."""
    name = path.rsplit("/", 1)[-1]
    return name[len(INGEST_PREFIX) :].split("-", 1)[0] if name.startswith(INGEST_PREFIX) else None
