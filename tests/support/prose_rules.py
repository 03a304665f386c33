"""Checks prose against the house rules: no words borrowed from Kafka, no bare names, plain technical English."""

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
# What not to write, and what to write in its place.
REPLACED = {
    r"answer\w*": "response, responds, returns",
    r"asker\w*": "sender, caller",
    r"asked-for|asked for(?= |$|[.,;:])(?! (?:a|an|the|another|brokers|controllers)\b)": "requested",
    r"(?<!lag )(?<!lags )(?<!fall )(?<!falls )behind": "after",
    r"stands?|stood": "is, means; stalled, makes no progress",
    r"lies": "is, is stored",
    r"told|said": "reports, returns",
    r"anew|afresh": "again, re-",
    r"(?:made|created) again": "recreated",
    r"deliver(?:ed)? again": "redelivered",
    r"(?:give[ns]?|gave|giving) up": "released, dropped, archived",
    r"r[ua]n(?:s|ning)? out": "expires, is used up",
    r"hand(?:s|ed|ing)? (?:out|in|over|back)": "assigns, delivers, sends, returns",
    r"breath|once over": "at the same time",
    r"mended|put right": "fixed",
    r"for good": "permanently",
    r"for ever": "forever",
    r"in force": "in effect, current",
    r"in the clear": "in plain text",
    r"under way": "running, in progress",
    r"by way of": "through",
    r"shall": "should, will, must",
    r"whoever": "anyone who",
    r"living": "live",
    r"(?:bytes|mutations|connections) a second|one (?:entry|record|result|item|marker) an? \w+": "per",
    r"(?:does|do|did|is|are|was|were|has|have) not(?! only)|cannot": "a contraction",
}


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
    return faults + unwanted_words(text)


def unwanted_words(text: str) -> list[str]:
    """The words of `REPLACED` in a text, each with what to write."""
    matches = ((re.search(rf"\b(?:{words})\b", text, re.IGNORECASE), better) for words, better in REPLACED.items())
    return [f"{match[0]!r}: write {better!r}" for match, better in matches if match]
