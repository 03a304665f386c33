"""The folder of a lake for each test."""

from pathlib import Path

import pytest


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(tmp_path / "lake")
