"""The kernel reads and writes inside its buffers alone, whatever the frames say: guard pages and patterns prove it.

`KAFKASCOPE_SOAK` set: every layout and many mutations; otherwise a sample of both.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.pairs import CHUNKS

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
MUTATIONS = 2_000 if SOAK else 40
ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=3_600, check=False)


@pytest.mark.parametrize("chunk", range(CHUNKS) if SOAK else [3])
def test_no_access_outside_of_frames_and_columns(chunk: int, record_property: Callable[[str, object], None]) -> None:
    done = run("-m", "tests.columnar.guarded", str(chunk), str(MUTATIONS))
    assert done.returncode == 0, done.stderr[-2_000:]
    record_property("measured", f"guard pages, chunk {chunk}: {done.stdout.strip()}")


def test_the_guards_bite() -> None:
    """A page that can be touched after all would prove nothing."""
    for offset in ("-1", "size"):
        program = (
            "import ctypes; from tests.columnar.guarded import Guarded; size = 4096; made = Guarded(size);"
            f"ctypes.memset(made.address + {offset}, 0, 1)"
        )
        assert run("-c", program).returncode < 0
