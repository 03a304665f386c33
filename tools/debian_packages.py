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

# Without the windows of a whole browser, the same engine takes a third of the time.
_SHELL = "chromium-headless-shell"
_NAMES = (_SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHOICE = "KAFKASCOPE_CHROMIUM"
MISSING = f"no Chromium: install it (Debian: apt-get install {_SHELL}) or name it in {CHOICE}"
_UPDATE = ["apt-get", "update"]
_INSTALL = ["apt-get", "install", "--yes", "--no-install-recommends"]
# Each is called like its package.
_PROGRAMS = ("tcpdump", "tshark", "xxd", "lz4")
_WITHOUT = f"`{CHOICE}=none make test` installs nothing and skips them"


def chromium() -> str | None:
    """The path of its program."""
    named = os.environ.get(CHOICE)
    if named:
        return named if Path(named).is_file() else None
    return next((path for path in map(shutil.which, _NAMES) if path), None)


def _install(packages: list[str]) -> None:
    """Debian's own packages, which only root can do. Every command is printed before it runs, and every package before
    it is installed."""
    if os.geteuid() or shutil.which("apt-get") is None:
        return
    command = [*_INSTALL, *packages]
    steps = " && ".join(shlex.join(step) for step in (_UPDATE, command))
    print(f"installing {' and '.join(packages)} for tests: {steps}; {_WITHOUT}", flush=True)
    _run(_UPDATE)
    installed = re.findall(r"^Inst (\S+)", _run([*command, "--simulate"]), re.MULTILINE)
    if installed:
        print(f"packages that apt-get installs now: {' '.join(installed)}", flush=True)
        _run(command)


def _run(command: list[str]) -> str:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True).stdout


def main() -> None:
    """A machine without them can still run all other tests, so this never fails."""
    missing = _missing_packages()
    if missing and not os.environ.get(CHOICE):
        _install(list(missing))
    for line in _missing_packages().values():
        print(f"{line}; tests that need it are skipped", file=sys.stderr)


def _missing_packages() -> dict[str, str]:
    """Package to what to do about it."""
    programs = {name: f"no {name}: install it (Debian: apt-get install {name})" for name in _PROGRAMS}
    lines = {name: line for name, line in programs.items() if shutil.which(name) is None}
    return lines if chromium() else {_SHELL: MISSING} | lines


if __name__ == "__main__":
    main()
