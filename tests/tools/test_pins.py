"""The pins of `make setup`: a hash for every file, no address, nothing installed without one."""

import hashlib
import re
import zipfile
from importlib.metadata import distributions, requires
from pathlib import Path

import pytest

from lab.jars import CLIENT_PINS, PYTHON_CLIENTS
from tools.install import pip_install
from tools.pin_files import FILE, Pin, canonical, read, written

NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


@pytest.mark.parametrize("file", [FILE, CLIENT_PINS], ids=lambda file: file.name)
def test_the_file_holds_names_versions_and_hashes_alone(file: Path) -> None:
    comment, _, pins = file.read_text(encoding="utf-8").partition("\n")
    assert comment.startswith("# ") and "://" not in comment
    wrong = [
        line
        for line in pins.splitlines()
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*==[\w.]+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line)
    ]
    assert not wrong
    assert pins == written(read(file))


@pytest.mark.parametrize("file", [FILE, CLIENT_PINS], ids=lambda file: file.name)
def test_every_pin_has_a_hash(file: Path) -> None:
    assert [pin.requirement for pin in read(file) if not pin.hashes] == []


def test_every_installed_package_is_pinned_to_its_version() -> None:
    pinned = {canonical(pin.name): pin.version for pin in read(FILE)}
    installed = {canonical(distribution.name): distribution.version for distribution in distributions()}
    del installed["kafkascope"]
    assert {name: version for name, version in installed.items() if pinned.get(name) != version} == {}


def test_every_dependency_of_ours_is_pinned() -> None:
    pinned = {canonical(pin.name) for pin in read(FILE)}
    needed = {canonical(match[0]) for match in map(NAME.match, requires("kafkascope") or []) if match}
    assert "numba" in needed
    assert needed - pinned == {"kafkascope"}


def test_the_clients_of_the_lab_are_pinned() -> None:
    assert sorted(pin.requirement for pin in read(CLIENT_PINS)) == sorted(PYTHON_CLIENTS)


@pytest.mark.parametrize("line", ["--no-binary=click", "click", "click==8.5.1 --hash=md5:00", "click==8.5.1 --pre"])
def test_a_line_that_is_no_pin_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "pins.txt").write_text(f"{line}\n")
    with pytest.raises(SystemExit, match=r"^pins\.txt: .* is not a pin with hashes: run `make pins`$"):
        read(tmp_path / "pins.txt")


def test_another_file_than_the_pinned_one_is_not_installed(tmp_path: Path) -> None:
    wheel = tmp_path / "pinned-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pinned.py", "")
        archive.writestr("pinned-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pinned\nVersion: 1.0\n")
        archive.writestr("pinned-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("pinned-1.0.dist-info/RECORD", "")
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    file, folder = tmp_path / "pins.txt", tmp_path / "installed"
    arguments = ["--no-index", "--no-deps", "--no-warn-conflicts", f"--find-links={tmp_path}", f"--target={folder}"]
    arguments += ["--require-hashes", "-r", str(file)]
    file.write_text(written([Pin("pinned", "1.0", ("0" * 64, "1" * 64))]))
    with pytest.raises(SystemExit, match=rf"^pinned==1\.0: sha256 {sha256} is not in .*`make pins`$"):
        pip_install(*arguments)
    assert not folder.exists()
    file.write_text(written([Pin("pinned", "1.0", ("0" * 64, sha256))]))
    pip_install(*arguments)
    assert (folder / "pinned.py").exists()
