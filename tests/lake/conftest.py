"""A lake that is new."""

from pathlib import Path

import pytest

from kafkascope.lake.home import Lake, make_lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "lake")
