"""Our words: every message, field and error has some, none is stale or Kafka's own, all keep the house style."""

import re
from pathlib import Path

import pytest

from kafkascope.schema.api_facts import api_facts
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import cause_and_remedy, error_codes
from kafkascope.schema.files import DATA_FOLDER, lines, text
from kafkascope.schema.prose import FIELDS_MARK, paragraphs, sentence
from tests.support.places import fields_of, spellings
from tests.support.prose_rules import borrowed, only_restates, style_faults, unwanted_words

MESSAGES = Path(DATA_FOLDER, "prose", "messages")


def own_sentences(stem: str) -> dict[str, str]:
    return keyed(text(f"prose/messages/{stem}.txt").partition(FIELDS_MARK)[2].splitlines())


def keyed(rows: list[str]) -> dict[str, str]:
    return {key: words for key, _, words in (row.partition(": ") for row in rows if row)}


def every_sentence() -> list[tuple[str, str]]:
    sentences = list(keyed(lines("prose/fields.txt")).items())
    for file in sorted(MESSAGES.glob("*.txt")):
        sentences += own_sentences(file.stem).items()
    return sentences


def advice() -> dict[str, tuple[str, str]]:
    """Earlier names of errors have some too."""
    aliases = [alias for error in error_codes().values() for alias in error.aliases]
    return {name: cause_and_remedy(name) for name in (*(error.name for error in error_codes().values()), *aliases)}


def every_text() -> list[tuple[str, str]]:
    """Whatever a reader may see, with a name for the failure."""
    texts = every_sentence()
    texts += [(name, part) for name in index() for part in paragraphs(message(name))]
    texts += [(name, part) for name, parts in advice().items() for part in parts]
    return texts


def every_remark() -> list[tuple[str, str]]:
    """The text after the dash in the files of values, conversations and APIs."""
    files = ("values.txt", "flows.txt", "apis.txt")
    rows = [(file, row.partition(" - ")) for file in files for row in lines(file)]
    return [(f"{file}: {head.strip()}", remark) for file, (head, _, remark) in rows if remark]


def test_every_message_has_one_or_two_paragraphs() -> None:
    assert [name for name in index() if not 1 <= len(paragraphs(message(name))) <= 2] == []


def test_every_field_of_every_layout_has_a_sentence() -> None:
    wordless = [
        ".".join((name, *path))
        for name in index()
        for path, _ in fields_of(message(name))
        if not sentence(message(name), path)
    ]
    assert wordless == []


def test_the_nearest_sentence_holds() -> None:
    known = message("ShareFetchRequest")
    own = own_sentences("ShareFetch")["ShareFetchRequest.Topics.Partitions.PartitionIndex"]
    by_name = keyed(lines("prose/fields.txt"))["PartitionIndex"]
    assert own != by_name
    assert sentence(known, ("Topics", "Partitions", "PartitionIndex")) == own


def test_request_and_response_share_the_paragraphs_of_their_api() -> None:
    assert paragraphs(message("ShareFetchRequest")) == paragraphs(message("ShareFetchResponse"))


def test_every_error_has_cause_and_remedy() -> None:
    assert [name for name, (cause, remedy) in advice().items() if not cause or not remedy] == []


def test_every_prose_file_is_of_a_message_or_api() -> None:
    known = {message(name).api or name for name in index()}
    assert {file.stem for file in MESSAGES.glob("*.txt")} == known
    assert set(apis().values()) < known


def test_no_sentence_is_about_a_field_that_no_layout_has() -> None:
    assert [key for key, _ in every_sentence() if key not in spellings()] == []


def test_a_file_speaks_only_of_its_own_messages() -> None:
    strays = []
    for file in MESSAGES.glob("*.txt"):
        own = {name for name in index() if (message(name).api or name) == file.stem}
        own |= {earlier for name in own for earlier, _ in message(name).was}
        strays += [key for key in own_sentences(file.stem) if key.partition(".")[0] not in own]
    assert strays == []


def test_no_place_has_two_sentences() -> None:
    keys = [key for key, _ in every_sentence()]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []


def test_no_advice_is_about_an_error_that_does_not_exist() -> None:
    rows = text("prose/errors.txt").splitlines()
    assert {row for row in rows if row and not row.startswith((" ", "#"))} == set(advice())


def test_every_error_code_has_a_sentence_of_its_own() -> None:
    # "Zero for success, otherwise a code" can be said of all and says nothing of any
    assert "ErrorCode" not in keyed(lines("prose/fields.txt"))


def test_two_fields_of_a_struct_never_share_a_sentence() -> None:
    paths_by_sentence: dict[tuple[str, tuple[str, ...], str], set[str]] = {}
    for name in index():
        known = message(name)
        for path, _ in fields_of(known):
            paths_by_sentence.setdefault((name, path[:-1], sentence(known, path) or ""), set()).add(path[-1])
    assert [(key, names) for key, names in paths_by_sentence.items() if len(names) > 1] == []


def test_the_version_from_which_clients_wait_is_that_of_kip_219() -> None:
    for api in apis().values():
        known = message(f"{api}Response")
        says = re.search(r"From version (\d+) on, the client waits", sentence(known, ("ThrottleTimeMs",)) or "")
        if says:
            assert [kip.version for kip in api_facts(api).kips if kip.number == 219] == [int(says[1])], api


def test_no_sentence_only_restates_its_field() -> None:
    assert [key for key, words in every_sentence() if only_restates(key.rpartition(".")[2], words)] == []


@pytest.mark.parametrize(
    ("name", "words", "restates"),
    [
        ("TopicName", "The name of the topic.", True),
        ("TopicName", "Topic by name; null when the request gives its id.", False),
    ],
)
def test_a_bare_name_is_told_from_an_explanation(name: str, words: str, restates: bool) -> None:
    assert only_restates(name, words) is restates


def test_no_seven_words_in_a_row_are_from_a_definition_file() -> None:
    assert [(where, run[0]) for where, words in every_text() if (run := borrowed(words))] == []


@pytest.mark.heavy
def test_a_sentence_of_a_definition_file_is_recognised() -> None:
    # ThrottleTimeMs of nearly every response
    upstream = "The duration in milliseconds for which the request was throttled due to a quota violation"
    assert borrowed(upstream)
    assert not borrowed("Milliseconds that the broker held the response back because of a quota")


def test_every_text_keeps_the_house_style() -> None:
    assert [(where, faults) for where, words in every_text() if (faults := style_faults(words))] == []


@pytest.mark.parametrize(
    "words", ["Simply a topic.", "A topic", "a topic.", "A topic!", "A topic – null.", "Two  blanks."]
)
def test_bad_style_is_recognised(words: str) -> None:
    assert style_faults(words)


def test_every_remark_keeps_to_the_words_of_the_house() -> None:
    assert [(where, faults) for where, words in every_remark() if (faults := unwanted_words(words))] == []


@pytest.mark.parametrize(
    ("words", "better"),
    [
        ("The broker answers UNKNOWN_TOPIC_ID.", "response, responds, returns"),
        ("Two bytes behind the header.", "after"),
        ("The record is delivered again.", "redelivered"),
        ("Locks run out after 30 s.", "expires, is used up"),
        ("The version asked for.", "requested"),
        ("One entry a topic.", "per"),
        ("It does not count.", "a contraction"),
    ],
)
def test_an_unwanted_word_is_recognised_and_replaced(words: str, better: str) -> None:
    assert [fault.partition(": write ")[2].strip("'") for fault in unwanted_words(words)] == [better]


@pytest.mark.parametrize(
    "words", ["A follower that falls behind.", "Not only one.", "A broker is asked for controllers."]
)
def test_plain_words_are_no_fault(words: str) -> None:
    assert unwanted_words(words) == []
