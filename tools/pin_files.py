"""Pins in a requirements file of pip: `name==version`, then one sha256 for each file that may be installed as it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "constraints.txt"
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Pin:
    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


def canonical(name: str) -> str:
    """PEP 503: the form in which two spellings of a name are equal."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read(file: Path) -> list[Pin]:
    """A line that is neither pin nor comment is refused: it could say where packages come from."""
    pins = []
    for line in file.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        requirement, *options = line.split()
        name, _, version = requirement.partition("==")
        hashes = [match[1] for match in map(_HASH.fullmatch, options) if match]
        if not version or len(hashes) != len(options):
            raise SystemExit(f"{file.name}: {requirement} is not a pin with hashes: run `make pins`")
        pins.append(Pin(name, version, tuple(hashes)))
    return pins


def written(pins: Iterable[Pin]) -> str:
    ordered = sorted(pins, key=lambda pin: (canonical(pin.name), pin.version))
    return "".join(" \\\n    ".join([p.requirement, *(f"--hash=sha256:{h}" for h in p.hashes)]) + "\n" for p in ordered)
