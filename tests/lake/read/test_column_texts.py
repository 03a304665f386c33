"""Every column of every table has a comment: those of docs/, word for word, and those of the catalog."""

import re
from collections.abc import Iterator

from kafkascope.lake.marts import MARTS
from kafkascope.lake.read.column_texts import BODIES, RECORD_TABLES, _known, column_texts
from kafkascope.lake.read.visible_rows import known_names, known_table
from kafkascope.lake.tables import message_of
from tests.lake.build import ROOT


def documented() -> dict[str, str]:
    return {f"{table}.{column}": text for table, column, text in _rows()}


def _rows() -> Iterator[tuple[str, str, str]]:
    for page in ("lake.md", "marts.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            title, _, body = part.partition("\n")
            if re.fullmatch(r"\w+", title) and "\n| column | type | is |\n" in body:
                table = {"Bodies": BODIES, "Records": RECORD_TABLES}.get(title, title)
                for column, about in re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", body, re.MULTILINE):
                    yield table, column, plain(about)


def plain(text: str) -> str:
    text = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)
    return text.replace("`", "").replace("\\|", "|")


def test_the_file_has_what_the_docs_say() -> None:
    expected = documented()
    assert len(expected) > 250 and _known() == expected


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
