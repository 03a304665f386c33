"""What each column of a table is, in a sentence: for the columns that kafkascope adds from the manual, for those of
messages from the catalog, as in `catalog_fields.about`."""

import re
from collections.abc import Iterable
from functools import cache

from kafkascope.columnar.tables import snake_case
from kafkascope.lake.log_tables import record_types
from kafkascope.lake.tables import message_of
from kafkascope.manual_files import manual_text
from kafkascope.schema.catalog import message
from kafkascope.schema.prose import sentence

# Their sections, named like the tables, have a table with a row per column.
_PAGES = ("docs/lake.md", "docs/marts.md")
_HEAD = "\n| column | type | is |\n"
_ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\([^)]*\)")
# The sections of columns that all tables of messages have, and all of Kafka's own records.
BODIES, RECORD_TABLES = "bodies", "records"
_COMMON = {"ingest_id": "the ingest", "date": "partition: the day of the row's time, in UTC"}


def column_texts(table: str, columns: Iterable[str]) -> dict[str, str]:
    """Of those columns that something is known about."""
    own = _of_message(table) if message_of(table) else {}
    known = _known()
    texts = {}
    for column in columns:
        section = BODIES if message_of(table) else RECORD_TABLES if table in record_types() else table
        text = known.get(f"{section}.{column}") or own.get(column) or _COMMON.get(column)
        if text:
            texts[column] = text
    return texts


@cache
def _known() -> dict[str, str]:
    """`table.column` to its text, as the manual has it."""
    texts = {}
    for page in _PAGES:
        for section in re.split(r"^## ", manual_text(page), flags=re.MULTILINE)[1:]:
            title, _, body = section.partition("\n")
            if _HEAD in body:
                for column, about in _ROW.findall(body):
                    texts[f"{title.lower()}.{column}"] = _LINK.sub(r"\1", about).replace("`", "").replace("\\|", "|")
    return texts


@cache
def _of_message(table: str) -> dict[str, str]:
    """Of the message's own fields, whichever versions and releases have them."""
    name = message_of(table)
    assert name is not None
    known = message(name)
    texts = {}
    for field in (field for block in known.blocks for field in block.fields):
        text = sentence(known, (field.name,))
        if text:
            texts[snake_case(field.name)] = text
    return texts
