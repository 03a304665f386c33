"""Chromium for the tests of the explorer: where it is, or how it comes here.

python -m tools.chromium    # finds it, or installs Debian's as root; else says in one line what to install
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHOICE = "KAFKASCOPE_CHROMIUM"
MISSING = f"no Chromium: install it (Debian: apt-get install chromium) or name it in {CHOICE}"


def chromium() -> str | None:
    """The path of its program."""
    named = os.environ.get(CHOICE)
    if named:
        return named if Path(named).is_file() else None
    return next((found for found in map(shutil.which, NAMES) if found), None)


def install() -> None:
    """By Debian's own package, which only root can do."""
    if os.geteuid() or shutil.which("apt-get") is None:
        return
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        subprocess.run(["apt-get", *step], check=False, env=environment, **quiet)  # type: ignore[call-overload]


def main() -> None:
    """A machine without one can still run all other tests, so this never fails."""
    if chromium() is None and not os.environ.get(CHOICE):
        print("installing Chromium, for the tests of the explorer", flush=True)
        install()
    if chromium() is None:
        print(f"{MISSING}; tests that need it are skipped", file=sys.stderr)


if __name__ == "__main__":
    main()
