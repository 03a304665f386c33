"""Writes `constraints.txt` and `lab/clients.txt`: names, versions and hashes, never where files come from.

python -m tools.pins              # keeps the versions of the file, drops what nothing needs, adds what is missing
python -m tools.pins --upgrade    # takes the newest versions that fit pyproject.toml
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.jars import CLIENT_PINS, PYTHON_CLIENTS
from tools.install import install_builders
from tools.pin_files import FILE, ROOT, Pin, canonical, read, written

_WANTED = (".[all,dev,bench]", "pip", "setuptools")
_HEADER = "# What `make setup` installs. `make pins` writes this file, see docs/dependencies.md.\n"
_CLIENTS_HEADER = "# The Python clients of the lab, each installed alone. `make pins` writes this file.\n"

_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# The oldest system of each kind: pip takes the newest file whose hash is listed, so newer systems take the same ones.
_GLIBC = 28
_MACOS = 12


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of machine: what pip calls it, newest tag first, and its Python."""

    platforms: tuple[str, ...]
    python: str


def _targets() -> Iterator[Target]:
    for python in _PYTHONS:
        for machine in ("x86_64", "aarch64"):
            # PEP 600: a wheel for an older glibc runs on a newer one; the last three are old names
            numbered = [f"manylinux_2_{minor}_{machine}" for minor in range(_GLIBC, 4, -1)]
            yield Target((*numbered, *(f"manylinux{name}_{machine}" for name in ("2014", "2010", "1"))), python)
        yield Target((f"macosx_{_MACOS}_0_arm64",), python)


def main() -> None:
    upgrade = sys.argv[1:] == ["--upgrade"]
    if sys.argv[1:] and not upgrade:
        sys.exit("usage: python -m tools.pins [--upgrade]")
    print("resolving", flush=True)
    # What comes with a new environment is too old to read pyproject.toml.
    install_builders(read(FILE))
    versions = "" if upgrade else "".join(f"{pin.requirement}\n" for pin in read(FILE))
    clients = _client_pins()
    pins = _add_hashes(resolve(versions), list(_targets()))
    FILE.write_text(_HEADER + written(pins))
    CLIENT_PINS.write_text(_CLIENTS_HEADER + written(clients))
    print(f"{len(pins)} packages, {sum(len(pin.hashes) for pin in pins)} hashes in {FILE.name}", flush=True)


def _client_pins() -> list[Pin]:
    """For Linux alone, where the lab records. Two releases of one client cannot be asked for together."""
    linux = [target for target in _targets() if target.platforms[0].startswith("manylinux")]
    return [pin for client in PYTHON_CLIENTS for pin in _add_hashes([_unhashed(client)], linux)]


def _unhashed(requirement: str) -> Pin:
    name, version = requirement.split("==")
    return Pin(name, version, ())


def resolve(versions: str) -> list[Pin]:
    """What this machine would install. A package has a hash already where it is published as source alone."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as limits:
        limits.write(versions)
        limits.flush()
        files = _ask(["--no-build-isolation", "-c", limits.name, *_WANTED])
    return [file.pin if not file.wheel else Pin(file.pin.name, file.pin.version, ()) for file in files]


def _add_hashes(pins: list[Pin], machines: list[Target]) -> list[Pin]:
    """Those of the wheels that fit these machines. A wheel that fits every machine is asked for once."""
    hashes = {canonical(pin.name): set(pin.hashes) for pin in pins}
    open_pins = [pin for pin in pins if not pin.hashes]
    for target in machines:
        if not open_pins:
            break
        print(f"Python {target.python}, {target.platforms[0]}: {len(open_pins)} packages", flush=True)
        flags = ["--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={target.python}"]
        flags += [f"--platform={platform}" for platform in target.platforms]
        # pip installs for other machines into a folder only; with --dry-run it stays empty
        with tempfile.TemporaryDirectory() as folder:
            files = list(_ask([*flags, f"--target={folder}", *(pin.requirement for pin in open_pins)]))
        for file in files:
            hashes[canonical(file.pin.name)].update(file.pin.hashes)
        universal = {canonical(file.pin.name) for file in files if file.universal}
        open_pins = [pin for pin in open_pins if canonical(pin.name) not in universal]
    return [Pin(pin.name, pin.version, tuple(sorted(hashes[canonical(pin.name)]))) for pin in pins]


@dataclass(frozen=True, slots=True)
class File:
    """What pip would fetch for one package."""

    pin: Pin
    wheel: bool
    universal: bool


def _ask(arguments: list[str]) -> Iterable[File]:
    """pip's own report of what it would install, from the index that it is configured with."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check"]
        command += ["--ignore-installed", "--report", report.name, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"pip cannot resolve this, and nothing was written: {done.stderr.strip().splitlines()[-1]}")
        items: list[dict[str, Any]] = json.loads(Path(report.name).read_text())["install"]
    return [_file(item) for item in items if "archive_info" in item["download_info"]]


def _file(item: dict[str, Any]) -> File:
    about, source = item["metadata"], item["download_info"]
    name = re.sub(r"[?#].*", "", source["url"])
    sha256 = source["archive_info"]["hashes"]["sha256"]
    return File(Pin(about["name"], about["version"], (sha256,)), name.endswith(".whl"), name.endswith("-none-any.whl"))


if __name__ == "__main__":
    main()
