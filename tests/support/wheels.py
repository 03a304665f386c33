"""The wheel that others install, built once for all workers of a test run; and what an upgrade would bring."""

import base64
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kafkascope

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all test workers of a run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "package"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def wheel(shared: Path) -> Path:
    """Built from a copy, so that the working tree gets no build folder; the workers wait for the first."""
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "dist").exists():
            source = shared / "source"
            shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
            for name in ("tools", "tests", "docs"):
                shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
            for name in (
                "pyproject.toml",
                "setup.py",
                "MANIFEST.in",
                "README.md",
                "CONTRIBUTING.md",
                "CHANGELOG.md",
                "LICENSE",
            ):
                shutil.copy(ROOT / name, source)
            # without isolation no network is needed: the pinned setuptools is among the development packages
            command = [
                sys.executable,
                "-m",
                "build",
                "--wheel",
                "--no-isolation",
                "--outdir",
                str(shared / "made"),
                ".",
            ]
            done = subprocess.run(command, cwd=source, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            (shared / "made").rename(shared / "dist")
    (made,) = (shared / "dist").glob("*.whl")
    return made


def newer(wheel: Path, folder: Path, version: str, path: str, old: str, new: str) -> Path:
    """The wheel of another version, in which `old` in the file `path` became `new`."""
    own = kafkascope.__version__
    info = f"kafkascope-{own}.dist-info"
    replaced = {
        "kafkascope/__init__.py": (f'__version__ = "{own}"', f'__version__ = "{version}"'),
        f"{info}/METADATA": (f"\nVersion: {own}\n", f"\nVersion: {version}\n"),
        path: (old, new),
    }
    made = folder / wheel.name.replace(f"-{own}-", f"-{version}-")
    record = []
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name in replaced:
                before, after = (text.encode() for text in replaced.pop(name))
                assert data.count(before) == 1, name
                data = data.replace(before, after)
            name = name.replace(info, f"kafkascope-{version}.dist-info")
            if not name.endswith("/RECORD"):
                hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                record.append(f"{name},sha256={hashed},{len(data)}")
                target.writestr(name, data)
        name = f"kafkascope-{version}.dist-info/RECORD"
        target.writestr(name, "\n".join([*record, f"{name},,", ""]))
    assert not replaced
    return made
