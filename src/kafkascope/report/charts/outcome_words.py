"""Names delivery outcomes for legends and tooltips."""

OUTCOME_WORDS = {
    "accepted": "accepted",
    "released": "released",
    "rejected": "rejected",
    "lock_expired": "lock expired",
    "disconnected": "disconnected",
    "session_closed": "session closed",
    "moved": "moved",
    "open": "still held",
}


def fill(outcome: str) -> str:
    """The CSS class of an outcome's colour."""
    return f"o-{outcome.replace('_', '-')}"


def tally(records: dict[str, int]) -> str:
    """`accepted 12, released 4`."""
    return ", ".join(f"{OUTCOME_WORDS.get(name, name)} {count:,}" for name, count in records.items() if count)
