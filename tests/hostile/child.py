"""A fresh Python that runs some code and reports its output, and its peak memory above what its imports took.

The peak is the kernel's own (VmHWM in /proc): what a parent is told of its children has the parent's memory in it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_REPORT = """
import sys
def _peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """`peak` is in bytes."""

    output: str
    peak: int


def run(imports: str, code: str, *arguments: str, timeout: float = 300) -> Ran:
    """`code` finds `arguments` in `sys.argv[1:]`. What it prints is the output."""
    script = f"{_REPORT}\n{imports}\n_before = _peak()\n{code}\nprint(_peak() - _before)"
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *lines, peak = done.stdout.splitlines()
    return Ran("\n".join(lines), int(peak))


def peak_of(pid: int) -> int:
    """Of a process that runs."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status[status.index("VmHWM:") + 6 :].split(maxsplit=1)[0])
