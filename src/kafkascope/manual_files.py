"""Finds the files of the manual: docs/, the README, CONTRIBUTING and the changelog.

A wheel has them as package data; an editable install reads the checkout."""

from functools import cache
from pathlib import Path

from kafkascope.errors import InputError


def manual_file(file: str) -> Path:
    """`file` is a path of the repository: `docs/check.md`."""
    return _root() / file


def manual_text(file: str) -> str:
    return manual_file(file).read_text(encoding="utf-8")


@cache
def _root() -> Path:
    here = Path(__file__).parent
    packaged = here / "explorer" / "manual"
    root = packaged if packaged.is_dir() else here.parents[1]
    if not (root / "README.md").is_file() or not (root / "docs").is_dir():
        raise InputError(f"{packaged}: the manual is missing; install kafkascope again")
    return root
