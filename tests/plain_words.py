"""Words that texts of this project don't use, and what they say instead: for the docs and for the sources."""

import re
from collections.abc import Iterator

# A replica or a group can be behind; a byte or a field comes after another.
LAGGING = (
    *("far ", "lag ", "lags ", "lagged ", "fall ", "falls ", "be ", "been ", "furthest ", "replica ", "voters "),
    *("was ", "records ", "| ", "… ", "epoch 1 is "),
)
NOT_BEHIND = "".join(f"(?<!{re.escape(word)})" for word in LAGGING)
# A pattern of what isn't written, and what is written instead.
INSTEAD = {
    r"\banswer(s|ed|ing)?\b": "response, responds, returns",
    rf"{NOT_BEHIND}\bbehind\b": "after",
    r"\b(stands?|standing|stood)\b": "is, means, is stored",
    r"\b(lies|lay)\b": "is, is stored",
    r"\banew\b": "again, re-…",
    r"\b(told|tells)\b(?! apart)(?! if)": "reports, prints, describes",
    r"\bsaid\b|\bsays so\b|\bunless said\b": "reports, prints, shown",
    r"[;:] say\b|\bto say (that|which|what|how)\b": "write, use, choose",
    r"\bno [\w ]+ (is|are) (called|named)\b": "unknown",
    r"\bwhat (becomes|became) of\b(?! a row)": "what happens to, outcome",
    r"\b(mend|mends|mended)\b|\bput right\b": "fixed",
    r"\b(gives?|gave|given) up\b|\bgave the records? up\b": "archived, dropped, releases",
    r"\bwithout leaving\b(?! the group)": "disappeared without leaving the group",
    r"(?<!there )(?<!with )\b(is|are|was|were) no (?!longer\b|more\b|\w+er than\b)": "isn't a, aren't",
    r"\b(is|are|was|were)(n't| not) there\b": "doesn't exist, is missing",
    r"\b(is|are|was|were) there(?=[.,;:)|]|$)": "exists, is present, have arrived",
    r"\bwhat (was|is|were) found\b(?! and)|\bwhat there is\b": "results, contents",
    r"\b(written|laid out|is|are|says?) otherwise\b": "differently",
    r"\b(come|comes|came|came) again\b|\bagain and again\b": "redelivered, repeatedly",
    r"\b(a|one) \w+ (a|an) (message|table|day|line|task|core|frame|call|commit|request|row|file|exchange)\b": "per",
    r"\bat the (most|least)\b": "at most, at least",
    r"\bwithout a word\b": "silently",
    r"\b(so many|so often|so far apart)\b": "N times, this often",
    r"\bone behind (the|an)other\b|\bone behind the other\b": "one after another",
    r"\breckoned\b": "computed",
    r"\bgo(es)? by (its|a|an|another|the|one|this)\b": "is called, is named by",
    r"\bnot to be had\b": "unavailable",
    r"\bthat there (is|are)(?=[.,;:)]|$)": "existing, known",
    r"\bsimply\b|\bplease note\b|!(?=\s|$)": "nothing",
    r"\bin; [^.]*\bout\b": "a sentence that says what it does",
}


def unwanted(text: str) -> Iterator[str]:
    """Each such word of `text`, with what to write instead."""
    for pattern, instead in INSTEAD.items():
        for match in re.finditer(pattern, text, re.IGNORECASE):
            yield f"{match[0]!r}; write: {instead}"
