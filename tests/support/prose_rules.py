"""Prose and Kafka's definition files in, what breaks the house rules out: borrowed words, bare names, style."""

import re
from collections.abc import Iterator
from functools import cache

from tools.catalog.jars import definition_texts, fetch_releases, read_releases

# Seven words in a row are a sentence taken over, six can be chance.
BORROWED = 7
# These have every message between them: the newest client, the newest other jars, the last with ZooKeeper.
RELEASES = ("3.9", "4.3", "4.4")
# What a sentence is made of anyway, whatever it says.
SMALL_WORDS = frozenset(
    "the a an of to in is it its this that for and or by on with which be are was has at as from if not no each one"
    " when".split()
)
UNWANTED = re.compile(r"\bsimply\b|\bplease\b|\bnote that\b|!|  ", re.IGNORECASE)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9_']+", text.lower())


def runs(text: str) -> Iterator[str]:
    all_words = words(text)
    return (" ".join(all_words[at : at + BORROWED]) for at in range(len(all_words) - BORROWED + 1))


@cache
def upstream_runs() -> frozenset[str]:
    """Every seven words in a row of the definitions' `about` texts and comments; their licence header is no prose."""
    releases = [release for release in read_releases() if release.name in RELEASES]
    fetch_releases(releases)
    seen_runs: set[str] = set()
    for release in releases:
        for _, text in definition_texts(release):
            body = text[text.index("\n{") :]
            for about in re.findall(r'"about":\s*"((?:[^"\\]|\\.)*)"', body):
                seen_runs.update(runs(about))
            seen_runs.update(runs(" ".join(re.findall(r"^\s*//(.*)$", body, re.MULTILINE))))
    return frozenset(seen_runs)


def borrowed(text: str) -> list[str]:
    return [run for run in runs(text) if run in upstream_runs()]


def only_restates(name: str, sentence: str) -> bool:
    """Whether a sentence holds fewer than three words that are neither small nor in the field's own name."""
    own = {part.lower().rstrip("s") for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+", name)}
    return len({word for word in words(sentence) if word not in SMALL_WORDS and word.rstrip("s") not in own}) < 3


def style_faults(text: str) -> list[str]:
    faults = []
    if not text.isascii():
        faults.append(f"not ASCII: {next(c for c in text if not c.isascii())!r}")
    if not text.endswith("."):
        faults.append("no full stop at the end")
    if not (text[0].isupper() or text[0].isdigit() or text[0] == "-"):
        faults.append("no capital at the start")
    if match := UNWANTED.search(text):
        faults.append(f"unwanted: {match[0]!r}")
    return faults
