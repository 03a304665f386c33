"""The package as others get it: what the wheel holds, that its three dependencies are enough, what imports load."""

import fcntl
import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

import kafkascope
from kafkascope.schema.catalog import index

ROOT = Path(__file__).resolve().parents[1]
DATA = "kafkascope/schema/data"
DEPENDENCIES = ("click", "cramjam", "crc32c")
HEAVY = ("numba", "pyarrow", "pyspark", "deltalake", "pandas", "numpy")


@pytest.fixture(scope="session")
def installed(wheel: Path, shared: Path) -> Path:
    """The commands of an empty environment that holds the wheel and sees its dependencies, nothing else."""
    home = shared / "home"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
            python = str(home / "bin" / "python")
            pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet"]
            subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
            (packages,) = home.glob("lib/python*/site-packages")
            for name in DEPENDENCIES:
                for part in {file.parts[0] for file in distribution(name).files or ()} - {"..", "__pycache__"}:
                    (packages / part).symlink_to(str(distribution(name).locate_file(part)))
            (home / "ready").touch()
    return home / "bin"


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.environ["PATH"], "COLUMNS": "100"} | environment
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_the_wheel_holds_the_catalog_the_prose_and_the_type_marker(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "kafkascope/py.typed" in names
    assert {f"{DATA}/messages/{name}.txt" for name in index()} <= names
    source = ROOT / "src"
    data = {path.relative_to(source).as_posix() for path in (source / DATA).rglob("*") if path.is_file()}
    assert sorted(data - names) == []


def test_the_wheel_holds_the_pages_of_the_explorer(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    for folder in ("templates", "static"):
        files = {path.relative_to(source).as_posix() for path in (source / "kafkascope/explorer" / folder).iterdir()}
        assert files
        assert sorted(files - names) == []


MANUAL = "kafkascope/explorer/manual"


def test_the_wheel_holds_the_manual_as_it_is_in_the_repository(wheel: Path) -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").iterdir()]
    expected = {f"{MANUAL}/{path.relative_to(ROOT).as_posix()}": path.read_bytes() for path in pages}
    with zipfile.ZipFile(wheel) as opened:
        held = {name: opened.read(name) for name in opened.namelist() if name.startswith(f"{MANUAL}/")}
    assert len(held) > 30
    assert held == expected


def test_the_manual_of_the_wheel_is_rendered_without_a_checkout(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    script = (
        "from kafkascope.explorer import kinds, render; import kafkascope\n"
        "from kafkascope.manual_files import manual_file\n"
        "kind = next(kind for kind in kinds.KINDS if kind.name == 'manual_page')\n"
        "print(kafkascope.__file__, manual_file('docs/check.md'), sep='\\n')\n"
        "print(render.render(kind, {'name': 'check'}, static=True))"
    )
    done = run([sys.executable, "-c", script], tmp_path, PYTHONPATH=str(tmp_path), PYTHONUTF8="1")
    assert done.returncode == 0, done.stderr
    package, file, page = done.stdout.split("\n", 2)
    assert package == str(tmp_path / "kafkascope" / "__init__.py")
    assert file == str(tmp_path / MANUAL / "docs" / "check.md")
    assert 'href="../docs/findings.html' in page


def test_the_wheel_holds_nothing_but_the_package(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    # Spark looks for data sources in modules of this prefix.
    assert tops == {
        "kafkascope",
        "pyspark_kafkascope",
        "pyspark_kafkascope_share",
        f"kafkascope-{kafkascope.__version__}.dist-info",
    }


def test_the_wheel_carries_the_licence_and_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        info = f"kafkascope-{kafkascope.__version__}.dist-info"
        assert any(name.startswith(f"{info}/") and name.endswith("LICENSE") for name in opened.namelist())
        assert "kafkascope = kafkascope.cli.main:run" in opened.read(f"{info}/entry_points.txt").decode()
        metadata = opened.read(f"{info}/METADATA").decode()
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert sorted(line.split()[1].partition(">")[0] for line in needed) == sorted(DEPENDENCIES)


@pytest.mark.parametrize(
    "arguments", [["serve", "--no-browser"], ["site", "pages"]], ids=lambda arguments: arguments[0]
)
def test_a_command_without_its_extra_says_which_in_one_line(
    installed: Path, tmp_path: Path, arguments: list[str]
) -> None:
    done = run([str(installed / "kafkascope"), *arguments], tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        f"kafkascope: {arguments[0]} needs starlette, uvicorn, jinja2 and markdown-it-py: "
        "pip install 'kafkascope[explorer]'\n"
    )


def test_the_installed_command_shows_encodes_and_decodes(installed: Path, tmp_path: Path) -> None:
    command = str(installed / "kafkascope")
    shown = run([command, "show", "ShareFetchRequest:2"], tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Request header v2" in shown.stdout
    encoded = run([command, "encode", "HeartbeatRequest:4", '{"groupId": "g"}', "--frame"], tmp_path)
    assert encoded.returncode == 0, encoded.stderr
    decoded = run([command, "decode", encoded.stdout.strip(), "--json"], tmp_path)
    answer = json.loads(decoded.stdout)
    assert (answer["message"], answer["version"], answer["value"]["groupId"]) == ("HeartbeatRequest", 4, "g")


def test_the_installed_command_reads_record_batches(installed: Path, tmp_path: Path) -> None:
    command = str(installed / "kafkascope")
    frame = run([command, "example", "ProduceRequest:9", "--hex"], tmp_path).stdout.strip()
    decoded = run([command, "decode", frame, "--records", "--json"], tmp_path)
    assert json.loads(decoded.stdout)["records"][0]["batches"][0]["crcOk"] is True


def test_the_installed_package_is_whole_by_its_own_word(installed: Path, tmp_path: Path) -> None:
    result = run([str(installed / "kafkascope"), "doctor", "--json"], tmp_path)
    assert (result.returncode, json.loads(result.stdout)["ok"]) == (0, True)


@pytest.fixture
def watched(tmp_path: Path) -> str:
    """Stand-ins for the heavy libraries, so that importing one would show wherever the tests run."""
    for name in HEAVY:
        (tmp_path / f"{name}.py").touch()
    return str(tmp_path)


def loaded(statement: str, watched: str) -> list[str]:
    """The modules that are there after a statement has run in a new interpreter."""
    script = f"import sys\n{statement}\nprint(*sys.modules, sep=chr(10), file=sys.stderr)"
    done = run([sys.executable, "-c", script], ROOT, PYTHONPATH=watched)
    assert done.returncode == 0, done.stderr
    return done.stderr.split()


def test_importing_kafkascope_loads_nothing_else(watched: str) -> None:
    modules = loaded("import kafkascope", watched)
    assert [name for name in modules if name.startswith("kafkascope.")] == []
    assert not {"click", "cramjam", "crc32c", *HEAVY} & set(modules)


def test_decode_through_the_package_loads_no_command_line(watched: str) -> None:
    modules = loaded('import kafkascope; kafkascope.decode("ListGroupsRequest", 0, b"")', watched)
    assert not {"click", *HEAVY} & set(modules)
    assert [name for name in modules if name.startswith("kafkascope.cli")] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "ShareFetchRequest:2"],
        ["show", "ShareFetch"],
        ["apis"],
        ["error", "121"],
        ["decode", "000c 0000 0000 0007 ffff 0000 0000 0000 0000", "--json"],
        ["encode", "HeartbeatRequest:0", "{}"],
        ["example", "FetchResponse:17", "--annotated"],
    ],
    ids=" ".join,
)
def test_a_light_command_loads_no_heavy_library(arguments: list[str], watched: str) -> None:
    modules = loaded(f"from kafkascope.cli.main import main; assert main({arguments!r}) == 0", watched)
    assert sorted(set(HEAVY) & set(modules)) == []


def test_a_command_loads_only_its_own_module(watched: str) -> None:
    modules = set(loaded("from kafkascope.cli.main import main; main(['encode', 'HeartbeatRequest:0', '{}'])", watched))
    assert "kafkascope.cli.commands.encode" in modules
    others = {"apis", "show", "diff", "changelog", "decode", "example", "vectors", "catalog", "doctor"}
    assert sorted(name for name in others if f"kafkascope.cli.{name}" in modules) == []


def test_every_public_name_can_be_had() -> None:
    for name in kafkascope.__all__:
        assert getattr(kafkascope, name) is not None, name
    assert sorted(kafkascope.__all__) == sorted(set(kafkascope.__all__))


def test_the_public_names_are_those_of_the_documented_face() -> None:
    promised = {
        "decode",
        "encode",
        "decode_frame",
        "encode_frame",
        "to_json",
        "from_json",
        "DecodeError",
        "EncodeError",
    }
    assert promised <= set(kafkascope.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = kafkascope.nonsense
