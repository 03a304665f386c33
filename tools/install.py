"""Installs the pinned packages for `make setup`. No file is unpacked or run whose hash is not in `constraints.txt`.

pip checks no hash of what it fetches to build a package from source, and pyspark is published as source alone. So the
builders come first, by hash as well, and pip builds with them.
"""

import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.pin_files import FILE, ROOT, Pin, canonical, read, written

_BUILDERS = ("pip", "setuptools")
_MISMATCH = re.compile(r"^ +(\S+==\S+) from .*?\n +Expected sha256 .*?Got +([0-9a-f]{64})", re.MULTILINE | re.DOTALL)
_UNHASHED = "pip install -e '.[all,dev,bench]' in an environment of your own installs without hashes"


def main() -> None:
    if sys.implementation.name != "cpython" or not (3, 11) <= sys.version_info < (3, 15) or not _pinned_machine():
        here = f"{platform.python_implementation()} {platform.python_version()}, {platform.platform()}"
        sys.exit(f"constraints.txt has no hashes for {here}, see docs/dependencies.md; {_UNHASHED}")
    pins = read(FILE)
    for pin in pins:
        if not pin.hashes:
            sys.exit(f"constraints.txt: {pin.requirement} has no hash: run `make pins`")
    install_builders(pins)
    pip_install("--require-hashes", "--no-build-isolation", "-r", str(FILE))
    pip_install("--no-index", "--no-deps", "--no-build-isolation", "-e", str(ROOT))


def install_builders(pins: list[Pin]) -> None:
    """By hash; `make pins` may find one whose version was just changed, and has none yet."""
    builders = [pin for pin in pins if canonical(pin.name) in _BUILDERS]
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder, "builders.txt")
        first.write_text(written(builders))
        pip_install(*(["--require-hashes"] if all(pin.hashes for pin in builders) else []), "-r", str(first))


def _pinned_machine() -> bool:
    system, machine = platform.system(), platform.machine()
    if system == "Linux":
        return machine in ("x86_64", "aarch64") and platform.libc_ver()[0] == "glibc"
    return (system, machine) == ("Darwin", "arm64")


def pip_install(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        return
    mismatch = _MISMATCH.search(done.stderr)
    if mismatch:
        sys.exit(
            f"{mismatch[1]}: sha256 {mismatch[2]} is not in constraints.txt, so it is not installed: another file "
            "than the one pinned; if the version was changed on purpose, run `make pins`"
        )
    sys.exit(done.stderr.strip())


if __name__ == "__main__":
    main()
