"""Ingests recordings of any size into the lake and builds the marts, on Spark. `ingest`, `marts`, `views` and `decode`
work on any session.

Names load at first use, because Spark imports this package to find the data source, which needs none of them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkascope.pipeline.decoding import decode
    from kafkascope.pipeline.external_tables import catalog_sql
    from kafkascope.pipeline.ingestion.ingest import Ingested, Options, ingest
    from kafkascope.pipeline.mart.build import build_marts as marts
    from kafkascope.pipeline.share.outcomes import batch_outcomes
    from kafkascope.pipeline.tables import register_views as views

# No module here may share the name of a function: importing the module would replace the function.
_HOMES = {
    "Ingested": ("ingestion.ingest", "Ingested"),
    "Options": ("ingestion.ingest", "Options"),
    "batch_outcomes": ("share.outcomes", "batch_outcomes"),
    "catalog_sql": ("external_tables", "catalog_sql"),
    "decode": ("decoding", "decode"),
    "ingest": ("ingestion.ingest", "ingest"),
    "marts": ("mart.build", "build_marts"),
    "views": ("tables", "register_views"),
}

__all__ = ["Ingested", "Options", "batch_outcomes", "catalog_sql", "decode", "ingest", "marts", "views"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kafkascope.pipeline' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(f"kafkascope.pipeline.{module}"), attribute)
