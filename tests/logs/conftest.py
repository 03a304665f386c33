"""The recorded directories, once for a worker's whole run: nobody may write there."""

from pathlib import Path

import pytest

from tests.cli.conftest import cli
from tests.logs.recorded import unpack_disks

__all__ = ["cli", "disks"]


@pytest.fixture(scope="session")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_disks(tmp_path_factory.mktemp("disks"))
