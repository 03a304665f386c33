"""Formats the names, counts, clusters and nodes in the sentences of findings."""

from collections import Counter
from collections.abc import Iterable, Mapping

from kafkascope.formatting import first_names
from kafkascope.health.findings.brokers import split_cluster


def quoted(name: object) -> str:
    """Puts a name in backticks; a backtick within the name is replaced, so that the sentence still parses."""
    return f"`{str(name).replace('`', chr(39))}`"


def tally(counts: Mapping[str, float], most: int = 5) -> str:
    """`steady 4, renewer 1 and 3 more`: the largest first."""
    return first_names([f"{name} {number:,.0f}" for name, number in _ordered(counts)], most)


def counted(counts: Mapping[str, float], most: int = 5) -> str:
    """Like `tally`, with names in backticks and counts as ×3."""
    return first_names([f"{quoted(name)} ×{number:,.0f}" for name, number in _ordered(counts)], most)


def name_counts(counts: Mapping[str, float], most: int = 5) -> str:
    """Like `counted`; a single name goes without its count, which the sentence already has."""
    return quoted(next(iter(counts))) if len(counts) == 1 else counted(counts, most)


def words_with_counts(counts: Mapping[str, float], most: int = 5) -> str:
    """Like `name_counts`, for words that aren't names."""
    if len(counts) == 1:
        return next(iter(counts)).replace("_", " ")
    return first_names([f"{name.replace('_', ' ')} ×{number:,.0f}" for name, number in _ordered(counts)], most)


def phrased(counts: Mapping[str, float], phrases: Mapping[str, str]) -> str:
    """Like `words_with_counts`, with the phrase for each word that has one."""
    by_phrase: Counter[str] = Counter()
    for name, number in counts.items():
        by_phrase[phrases.get(name, name)] += round(number)
    return words_with_counts(by_phrase)


def times(number: float) -> str:
    """`once`, `3 times`."""
    return "once" if number == 1 else f"{number:,.0f} times"


def names(counts: Iterable[str], most: int = 5) -> str:
    """`0_1`, `0_2` and 4 more: each in backticks, in alphabetical order."""
    return first_names([quoted(name) for name in sorted(counts)], most)


def nodes(counts: Iterable[str]) -> str:
    """node `1`, node `2`."""
    return first_names([_node_quoted(node) for node in sorted(counts)], 5)


def of_cluster_quoted(subject: str) -> str:
    """`node 2 of cluster Ab-1` and `quorum at 10.0.0.1:9093`, with the node and the cluster in backticks."""
    what, between, cluster = split_cluster(subject)
    return _node_quoted(what) + (f"{between}{quoted(cluster)}" if cluster else "")


def _node_quoted(text: str) -> str:
    """`node 2`, with the number in backticks; other words stay as they are."""
    what, _, number = text.partition(" ")
    return f"node {quoted(number)}" if what == "node" else text


def _ordered(counts: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
