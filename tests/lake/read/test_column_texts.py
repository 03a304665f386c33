"""Every column of every table has a comment: that of the manual, as text, or that of the catalog."""

from kafkascope.lake.marts import MARTS
from kafkascope.lake.read.column_texts import column_texts
from kafkascope.lake.read.visible_rows import known_names, known_table
from kafkascope.lake.tables import message_of


def test_every_column_of_every_table_has_a_comment() -> None:
    names = known_names()
    assert len(names) > 190 and set(MARTS) <= set(names)
    missing = []
    for name in names:
        columns = known_table(name).schema.names
        texts = column_texts(name, columns)
        missing += [f"{name}.{column}" for column in columns if column not in texts]
    assert missing == []


def test_columns_of_a_message_have_the_sentences_of_the_catalog() -> None:
    assert message_of("share_fetch_request") == "ShareFetchRequest"
    texts = column_texts("share_fetch_request", ["max_records", "exchange_id", "nothing"])
    assert set(texts) == {"max_records", "exchange_id"} and texts["exchange_id"] == "as in exchanges"


def test_texts_of_the_manual_are_without_its_marks() -> None:
    texts = column_texts("captures", ["kind", "capture_uri"])
    assert texts["kind"].startswith("capture, request_log, frames, segment")
    assert not any(mark in text for text in texts.values() for mark in ("`", "](", "\\"))
