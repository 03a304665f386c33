"""Fills in the names of topics in a DataFrame of bodies, for messages that sent only their ids."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkascope.lake.read.topic_names import TOPIC, TOPIC_ID, TopicElement

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The column with topic ids and names, which no table has.
_MAP = "_topic_names"


def topic_names(topics: "DataFrame") -> "DataFrame":
    """One row with the names of all topic ids."""
    from pyspark.sql import functions as f

    named = topics.where(f.col(TOPIC_ID).isNotNull() & f.col(TOPIC).isNotNull())
    # A map rejects duplicate keys, as for a topic with two rows.
    pairs = named.groupBy(TOPIC_ID).agg(f.min(TOPIC).alias(TOPIC))
    return pairs.agg(f.map_from_entries(f.collect_list(f.struct(TOPIC_ID, TOPIC))).alias(_MAP))


def with_topic_names(rows: "DataFrame", arrays: Mapping[str, TopicElement], names: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as f

    if not arrays:
        return rows
    filled = [
        _filled(f.col(name), arrays[name]).alias(name) if name in arrays else f.col(name) for name in rows.columns
    ]
    return rows.crossJoin(f.broadcast(names)).select(*filled)


def _filled(array: "Column", element: TopicElement) -> "Column":
    from pyspark.sql import functions as f

    def fill(item: "Column") -> "Column":
        for name, inner in element.arrays.items():
            item = item.withField(name, _filled(item[name], inner))
        if element.name:
            named = f.coalesce(item[element.name], f.try_element_at(f.col(_MAP), item[TOPIC_ID]))
            item = item.withField(element.name, named)
        return item

    return f.transform(array, fill)
