"""Ingests recordings of any size into the lake and builds the marts, on Spark. `ingest`, `marts` and `decode` work on
any session.

Names load at first use, because Spark imports this package to find the data source, which needs none of them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkascope.pipeline.decoding import decode
    from kafkascope.pipeline.ingestion.ingest import Ingested, Options, ingest
    from kafkascope.pipeline.mart.build import build_marts as marts

# No module here may share the name of a function: importing the module would replace the function.
_HOMES = {
    "Ingested": ("ingestion.ingest", "Ingested"),
    "Options": ("ingestion.ingest", "Options"),
    "decode": ("decoding", "decode"),
    "ingest": ("ingestion.ingest", "ingest"),
    "marts": ("mart.build", "build_marts"),
}

__all__ = ["Ingested", "Options", "decode", "ingest", "marts"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kafkascope.pipeline' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(f"kafkascope.pipeline.{module}"), attribute)
