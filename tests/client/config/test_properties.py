"""Java's .properties grammar."""

import pytest

from kafkascope.client.config.properties import parse_properties
from kafkascope.errors import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("a  :  b ", {"a": "b "}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("  a=b", {"a": "b"}),
        ("a=b\na=c", {"a": "c"}),
        ("a\\=x=b", {"a=x": "b"}),
        ("a\\ x=b", {"a x": "b"}),
        ("a=\\ b", {"a": " b"}),
        ("a=\\u0041\\t\\q", {"a": "A\tq"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("", {}),
    ],
)
def test_reads_as_java_does(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text, "file") == expected


def test_comments_start_a_line_alone() -> None:
    assert parse_properties("# a=b\n  ! c=d\ne=f # g", "file") == {"e": "f # g"}


def test_a_backslash_at_the_end_goes_on_without_the_blanks_in_front() -> None:
    assert parse_properties("a=one \\\n   two \\\n\t# three\nb=c", "file") == {"a": "one two # three", "b": "c"}


def test_two_backslashes_at_the_end_are_one_and_no_continuation() -> None:
    assert parse_properties("a=one\\\\\nb=c", "file") == {"a": "one\\", "b": "c"}


def test_a_broken_unicode_escape_names_file_and_line() -> None:
    with pytest.raises(InputError, match=r"^client\.properties line 2: "):
        parse_properties("a=b\nc=\\u12", "client.properties")
