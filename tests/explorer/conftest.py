"""The whole static site, made once for all workers of a test run."""

import fcntl
import os
from pathlib import Path

import pytest

from kafkascope.explorer.site import site
from tests.explorer.lakes import hostile_lake, incident_lake
from tests.support.lakes import made_once


@pytest.fixture(scope="session")
def whole_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "explorer-site"
    with (shared / "explorer-site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            site(folder)
    return folder


@pytest.fixture(scope="session")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `lake` and `recordings`, to be read alone."""
    return made_once(tmp_path_factory, "explorer-incidents", incident_lake)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "explorer-hostile", hostile_lake)
