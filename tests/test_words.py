"""README and docs are in plain technical English: words and phrases of an earlier house dialect aren't in them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Rewritten separately, and checked from then on.
LEFT_OUT = ("explorer.md",)
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in LEFT_OUT),
]
# A replica or a group can be behind; a byte or a field comes after another.
LAGGING = ("far ", "lag ", "lags ", "fall ", "falls ", "be ", "furthest ", "replica ", "records ", "| ")
NOT_BEHIND = "".join(f"(?<!{re.escape(word)})" for word in LAGGING)
# What a page must not say, and what it says instead.
INSTEAD = {
    r"\banswer(s|ed|ing)?\b": "response, responds, returns",
    rf"{NOT_BEHIND}\bbehind\b": "after",
    r"\b(stands?|standing|stood)\b": "is, means, is stored",
    r"\b(lies|lay)\b": "is, is stored",
    r"\banew\b": "again, re-…",
    r"\b(told|tells)\b": "reports, prints, describes",
    r"\bsaid\b|\bsays so\b|\bunless said\b": "reports, prints, shown",
    r"\b(mend|mends|mended)\b|\bput right\b": "fixed",
    r"\b(gives?|gave|given) up\b|\bgave the records? up\b": "archived, dropped, releases",
    r"\bwithout leaving\b(?! the group)": "disappeared without leaving the group",
    r"(?<!there )(?<!with )\b(is|are|was|were) no (?!longer\b|more\b|\w+er than\b)": "isn't a, aren't",
    r"\b(is|are|was|were)(n't| not) there\b": "doesn't exist, is missing",
    r"\bwhat (was|is|were) found\b(?! and)|\bwhat there is\b": "results, contents",
    r"\b(written|laid out|is|are|says?) otherwise\b": "differently",
    r"\b(come|comes|came|came) again\b|\bagain and again\b": "redelivered, repeatedly",
    r"\b(a|one) \w+ (a|an) (message|table|day|line|task|core|frame|call|commit|request|row|file|exchange)\b": "per",
    r"\bat the (most|least)\b": "at most, at least",
    r"\bwithout a word\b": "silently",
    r"\b(so many|so often|so far apart)\b": "N times, this often",
    r"\bone behind (the|an)other\b|\bone behind the other\b": "one after another",
    r"\breckoned\b": "computed",
    r"\bsimply\b|\bplease note\b|!(?=\s|$)": "nothing",
    r"\bin; [^.]*\bout\b": "a sentence that says what it does",
}


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their number, without code, addresses of links, and images."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "…", line)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_use_plain_words(path: Path) -> None:
    unwanted = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r}; write: {instead}"
        for number, line in prose(path)
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(pattern, line, re.IGNORECASE)
    ]
    assert not unwanted, "\n".join(unwanted)


def test_pages_left_out_exist() -> None:
    assert all((ROOT / "docs" / name).is_file() for name in LEFT_OUT)
