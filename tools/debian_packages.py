"""Finds the programs that tests take from Debian: Chromium for the explorer, tcpdump for the lab, tshark, xxd and lz4
as judges. Installs the missing ones as root, and prints what before it does.

python -m tools.debian_packages
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
INSTALL = ["apt-get", "install", "--yes", "--no-install-recommends"]
# Each is called like its package.
PROGRAMS = ("tcpdump", "tshark", "xxd", "lz4")
WITHOUT = f"`{CHOICE}=none make test` installs nothing and skips them"


def chromium() -> str | None:
    """The path of its program."""
    named = os.environ.get(CHOICE)
    if named:
        return named if Path(named).is_file() else None
    return next((found for found in map(shutil.which, NAMES) if found), None)


def install(wanted: list[str]) -> None:
    """Debian's own packages, which only root can do. Every command is printed before it runs, and every package before
    it is installed."""
    if os.geteuid() or shutil.which("apt-get") is None:
        return
    command = [*INSTALL, *wanted]
    steps = " && ".join(shlex.join(step) for step in (UPDATE, command))
    print(f"installing {' and '.join(wanted)} for tests: {steps}; {WITHOUT}", flush=True)
    _run(UPDATE)
    packages = re.findall(r"^Inst (\S+)", _run([*command, "--simulate"]), re.MULTILINE)
    if packages:
        print(f"packages that apt-get installs now: {' '.join(packages)}", flush=True)
        _run(command)


def _run(command: list[str]) -> str:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True).stdout


def main() -> None:
    """A machine without them can still run all other tests, so this never fails."""
    missing = missing_packages()
    if missing and not os.environ.get(CHOICE):
        install(list(missing))
    for line in missing_packages().values():
        print(f"{line}; tests that need it are skipped", file=sys.stderr)


def missing_packages() -> dict[str, str]:
    """Package to what to do about it."""
    programs = {name: f"no {name}: install it (Debian: apt-get install {name})" for name in PROGRAMS}
    lines = {name: line for name, line in programs.items() if shutil.which(name) is None}
    return lines if chromium() else {"chromium": MISSING} | lines


if __name__ == "__main__":
    main()
