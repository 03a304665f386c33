"""`pip install --upgrade` to a version with a changed constant: kernels of the version before are not used again.

numba by itself trusts a compiled function by the content of its own file, and pip leaves what is beside a package. Each
change here leaves the package as it was to its user, and broke it when kernels of two versions met."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import kafkascope
from tests.support.wheels import newer

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
CAPTURE = Path(__file__).parents[1] / "captures" / "share" / "capture.pcap.xz"
# Frames to rows of their headers: one step of reading, whose kernels compile in seconds.
HEADERS = """
import kafkascope
from kafkascope.capture.base.flow import Frames
from kafkascope.capture.frames.headers import Frame, read_headers, _make_rows

request = bytes.fromhex("004e 0002 00000007 0003 617070 00")
rows, _ = read_headers(Frames.whole([request] * 2, [(0, 0, 0, 0, 0), (0, 0, 15, 0, 1)]))
stats = _make_rows.stats
COLUMNS = [Frame.API_KEY, Frame.VERSION, Frame.CORRELATION]
print(kafkascope.__version__, sum(stats.cache_hits.values()), *rows[:, COLUMNS].tolist())
"""
READ = [[78, 2, 7]] * 2
# What happened where a kernel of the version before was used.
CHANGES = {
    "an endless loop": (
        "frames/headers",
        "    API_KEY = 9\n    VERSION = 10\n",
        "    VERSION = 9\n    API_KEY = 10\n",
    ),
    "a corrupted heap": ("frames/frame_table", "CHUNK = 4_096", "CHUNK = 1_024"),
    "wrong rows": (
        "frames/scan_program",
        "    THROTTLE = 1\n    MAX_WAIT = 2\n",
        "    MAX_WAIT = 1\n    THROTTLE = 2\n",
    ),
}


class Environment:
    """One that sees the packages of this one, and has a kafkascope of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "home")], check=True)
        self.python = str(folder / "home" / "bin" / "python")
        (packages,) = (folder / "home").glob("lib/python*/site-packages")
        (packages / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")

    def install(self, wheel: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--upgrade", "--no-deps", "--no-index"]
        subprocess.run([*pip, "--quiet", "--disable-pip-version-check", str(wheel)], check=True)

    def run(self, *arguments: str) -> str:
        clean = {"PATH": os.environ["PATH"], "NUMBA_CACHE_DIR": str(self.folder / "cache")}
        done = subprocess.run([self.python, "-P", *arguments], env=clean, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stderr
        return done.stdout


def test_an_upgrade_with_a_changed_constant_gives_the_same_rows(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.install(wheel)
    words = " ".join(map(str, READ))
    assert environment.run("-c", HEADERS) == f"{kafkascope.__version__} 0 {words}\n"
    assert environment.run("-c", HEADERS) == f"{kafkascope.__version__} 1 {words}\n"
    # The kernel of another file compares with it, and that file stays as it is.
    kinds = ("    FRAME = 0\n    TOKEN = 1\n", "    TOKEN = 0\n    FRAME = 1\n")
    environment.install(newer(wheel, tmp_path, "99.1", "kafkascope/capture/base/flow.py", *kinds))
    assert environment.run("-c", HEADERS) == f"99.1 0 {words}\n"


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="compiles all kernels four times")
def test_a_recording_read_after_each_upgrade_gives_the_same_rows(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.install(wheel)
    command = (str(Path(environment.python).with_name("kafkascope")), "read", str(CAPTURE), "--json")
    rows = environment.run(*command)
    assert len(rows.splitlines()) == 404
    for number, (module, old, new) in enumerate(CHANGES.values()):
        environment.install(newer(wheel, tmp_path, f"99.{number}", f"kafkascope/capture/{module}.py", old, new))
        assert environment.run(*command) == rows, module
