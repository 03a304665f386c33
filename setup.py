"""Adds the manual to the wheel: the README, CONTRIBUTING, the changelog and docs/, as `kafkascope/explorer/manual`.

An editable install has no copy: the explorer reads the checkout. Everything else is in pyproject.toml.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_ROOT = Path(__file__).resolve().parent
_TARGET = Path("kafkascope", "explorer", "manual")
_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*")


class BuildWithManual(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for source, target in self._manual():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *(str(target) for _, target in self._manual())]

    def _manual(self) -> Iterator[tuple[Path, Path]]:
        for pattern in _PAGES:
            for source in sorted(_ROOT.glob(pattern)):
                if source.is_file():
                    yield source, Path(self.build_lib) / _TARGET / source.relative_to(_ROOT)


setup(cmdclass={"build_py": BuildWithManual})
