"""Finds Chromium for the tests of the explorer, or installs Debian's package as root, printing what before it does.

python -m tools.chromium
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHOICE = "KAFKASCOPE_CHROMIUM"
MISSING = f"no Chromium: install it (Debian: apt-get install chromium) or name it in {CHOICE}"
UPDATE = ["apt-get", "update"]
INSTALL = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
WITHOUT = f"`{CHOICE}=none make test` installs nothing and skips them"


def chromium() -> str | None:
    """The path of its program."""
    named = os.environ.get(CHOICE)
    if named:
        return named if Path(named).is_file() else None
    return next((found for found in map(shutil.which, NAMES) if found), None)


def install() -> None:
    """By Debian's own package, which only root can do. Every command is printed before it runs, and every package
    before it is installed."""
    if os.geteuid() or shutil.which("apt-get") is None:
        return
    steps = " && ".join(shlex.join(step) for step in (UPDATE, INSTALL))
    print(f"installing chromium for the tests of the explorer: {steps}; {WITHOUT}", flush=True)
    _run(UPDATE)
    packages = re.findall(r"^Inst (\S+)", _run([*INSTALL, "--simulate"]), re.MULTILINE)
    if packages:
        print(f"packages that apt-get installs now: {' '.join(packages)}", flush=True)
        _run(INSTALL)


def _run(command: list[str]) -> str:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True).stdout


def main() -> None:
    """A machine without one can still run all other tests, so this never fails."""
    if chromium() is None and not os.environ.get(CHOICE):
        install()
    if chromium() is None:
        print(f"{MISSING}; tests that need it are skipped", file=sys.stderr)


if __name__ == "__main__":
    main()
