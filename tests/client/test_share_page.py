"""docs/share-consumer.md names every option, metric, field and method of the share consumer."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from kafkascope.client import PlainShareConsumer, ShareBatch, ShareConsumer, ShareMetrics, ShareRecord
from kafkascope.client.consumer.options import ACKNOWLEDGEMENT_MODES, ACQUIRE_MODES, ConsumerOptions
from kafkascope.client.consumer.results import Refused

PAGE = (Path(__file__).parents[2] / "docs" / "share-consumer.md").read_text(encoding="utf-8")


def documented(name: str) -> bool:
    return re.search(rf"`(?:async )?{re.escape(name)}[`(]", PAGE) is not None


@pytest.mark.parametrize("kind", [ConsumerOptions, ShareMetrics, Refused])
def test_every_field_is_documented(kind: type) -> None:
    assert [field.name for field in fields(kind) if not documented(field.name)] == []


@pytest.mark.parametrize("kind", [ShareConsumer, PlainShareConsumer, ShareRecord, ShareBatch])
def test_every_public_name_is_documented(kind: type) -> None:
    names = [name for name in vars(kind) if not name.startswith("_")]
    assert len(names) > 5
    assert [name for name in names if not documented(name)] == []


def test_the_defaults_and_modes_are_those_of_the_code() -> None:
    defaults = ConsumerOptions("g", ("t",))
    for mode in (*ACQUIRE_MODES, *ACKNOWLEDGEMENT_MODES):
        assert f"`{mode}`" in PAGE
    assert defaults.read_ahead is None and "| `read_ahead` | |" in PAGE
    for name in ("max_records", "max_wait"):
        assert f"| `{name}` | {getattr(defaults, name):,} |" in PAGE
    assert f"| {defaults.min_bytes}, {defaults.max_bytes:,} |" in PAGE
