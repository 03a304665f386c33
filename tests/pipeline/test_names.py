"""What `kafkascope.pipeline` exports: functions, whatever was imported before, and loaded when they are used."""

import subprocess
import sys

import pytest

from kafkascope import pipeline

PROGRAM = """
import sys
import kafkascope.pipeline
assert not any(name.startswith(("pyspark", "pyarrow", "kafkascope.lake")) for name in sys.modules)
import kafkascope.pipeline.decoding, kafkascope.pipeline.ingestion.ingest, kafkascope.pipeline.mart.build
from kafkascope.pipeline import decode, ingest, marts
print(decode.__name__, ingest.__name__, marts.__name__)
"""


def test_functions_are_themselves_whichever_module_was_imported_first() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["decode", "ingest", "build_marts"]


def test_every_name_is_there_and_no_other() -> None:
    assert all(callable(getattr(pipeline, name)) for name in pipeline.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pipeline.nothing
