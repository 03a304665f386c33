"""Words that the sentences of findings share: how often, and which names."""

from collections.abc import Mapping

from kafkascope.formatting import first_names


def times(number: float) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(int(number), f"{number:,.0f} times")


def tally(counts: Mapping[str, float], most: int = 5) -> str:
    """`steady 4, renewer 1 and 3 more`: the largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return first_names([f"{name} {number:,.0f}" for name, number in ordered], most)


def name_counts(counts: Mapping[str, float], most: int = 5) -> str:
    """As `tally`; of one name, whose number the sentence has already, the name."""
    return next(iter(counts)) if len(counts) == 1 else tally(counts, most)


def names(counts: Mapping[str, float], most: int = 5) -> str:
    """`0_1, 0_2 and 4 more`, in the order of the alphabet."""
    return first_names(sorted(counts), most)
