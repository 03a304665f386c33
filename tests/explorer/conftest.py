"""The whole static site, made once for all workers of a test run."""

import fcntl
import os
from pathlib import Path

import pytest

from kafkascope.explorer.site import site


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
