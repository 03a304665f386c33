"""Patterns of the filters: `*` and `?` are special, and nothing else is."""

import pytest

from kafkascope.schema.names import matches


@pytest.mark.parametrize(
    ("text", "pattern", "fits"),
    [
        ("st[ab]", "st[ab]", True),
        ("sta", "st[ab]", False),
        ("proc[1]pro", "proc[1]pro", True),
        ("proc[1]pro", "proc[?]*", True),
        ("[!x]", "[!x]", True),
        ("a", "[!x]", False),
        ("[", "[", True),
        ("a]b", "a]b", True),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("a\nb", "a*b", True),
        ("a\\b", "a\\b", True),
        ("Ab", "ab", False),
        ("", "*", True),
        ("", "?", False),
        ("a" * 5_000, "*a*a*a*a*a*a*a*a*b", False),
    ],
)
def test_star_and_question_mark_alone_are_special(text: str, pattern: str, fits: bool) -> None:
    assert matches(text, pattern) is fits
