"""Numbers, sizes, durations and names as people read them."""

import pytest

from kafkascope.formatting import (
    close_names,
    count,
    did_you_mean,
    file_name,
    first_names,
    join_names,
    latency,
    name_some,
    number,
    percent,
    printable,
    size,
    span,
)


@pytest.mark.parametrize("text", ["orders", "größe", "日本", "a b"])
def test_names_of_any_script_are_shown_as_they_are(text: str) -> None:
    assert printable(text) == text


def test_what_would_steer_a_terminal_is_replaced_and_the_length_stays() -> None:
    assert printable("a\x1b[31m\u202eb") == "a\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1_200, "1,200 records")]
)
def test_a_count_has_its_noun_in_the_right_number(value: int, words: str) -> None:
    assert count(value, "record") == words


def test_a_count_takes_an_irregular_plural() -> None:
    assert (count(1, "reply", "replies"), count(2, "reply", "replies")) == ("1 reply", "2 replies")


def test_a_misspelt_name_is_recognized_and_a_strange_one_is_not() -> None:
    known = {"groupid": "GroupId", "groupids": "GroupIds", "topic": "Topic"}
    near = close_names("gruopid", known, most=2)
    assert did_you_mean(near, "the names are …") == "; did you mean GroupId or GroupIds?"
    assert did_you_mean(close_names("zzz", known), "the names are …") == "; the names are …"
    assert did_you_mean([]) == ""


def test_an_unknown_number_says_so() -> None:
    assert (number(1_234), number(None), number(None, "-")) == ("1,234", "?", "-")


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (99_949, "99.9 kB"), (99_950, "100 kB"), (999_499, "999 kB"),
        (999_500, "1.0 MB"), (4_200_000_000, "4.2 GB"), (5 * 10**15, "5000 TB"), (None, ""),
    ],
)  # fmt: skip
def test_a_size_has_a_unit_that_fits(length: int | None, words: str) -> None:
    assert size(length) == words


@pytest.mark.parametrize(
    ("microseconds", "words"),
    [(87, "87 µs"), (4_210, "4.21 ms"), (42_100, "42.1 ms"), (421_000, "421 ms"), (999_499, "999 ms"),
     (999_500, "1.00 s"), (150_000_000, "150 s"), (None, "")],
)  # fmt: skip
def test_a_latency_has_three_digits(microseconds: int | None, words: str) -> None:
    assert latency(microseconds) == words


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (820, "820 ms"),
        (3_300, "3.3 s"),
        (4_000, "4 s"),
        (125_000, "2 min 5 s"),
        (120_000, "2 min"),
        (3_900_000, "1 h 5 min"),
    ],
)
def test_a_span_has_one_unit_or_two(milliseconds: float, words: str) -> None:
    assert span(milliseconds) == words


@pytest.mark.parametrize(
    ("share", "words"), [(0, "0 %"), (0.0001, "less than 0.1 %"), (0.004, "0.4 %"), (0.25, "25 %"), (1, "100 %")]
)
def test_a_share_of_something_is_never_nothing(share: float, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize(
    ("names", "words"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_names_are_joined_by_commas_and_one_and(names: list[str], words: str) -> None:
    assert join_names(names) == words


def test_names_that_are_left_out_are_counted() -> None:
    assert (first_names(["a", "b", "c"], 2), first_names(["a", "b"], 2)) == ("a, b and 1 more", "a, b")
    assert name_some(iter(["a"]), 1_000) == "a and 1,000 more"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("s3://bucket/2026/night/a.pcap", "night/a.pcap"),
        ("/night/a.pcap", "night/a.pcap"),
        ("/a.pcap", "a.pcap"),
        ("a.pcap", "a.pcap"),
        ("file:///a.pcap", "a.pcap"),
        ("night/", "night"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_a_file_is_named_with_its_folder(path: str, name: str) -> None:
    assert file_name(path) == name
